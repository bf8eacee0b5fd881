--- The queue's calls, as programs make them, and what is known of each job.

local each = require("fuzz.each")
local Texts = require("fuzz.texts")

-- Small functions around one call each, none of them a tail call: the errors must name this file.
local function push(q, fn, opts) local id, why = q:push(fn, opts); return id, why end
local function every(q, ms, fn, opts) local id, why = q:every(ms, fn, opts); return id, why end
local function run(q) local n = q:run(); return n end
local function poll(q, max) local n = q:poll(max); return n end
local function clear(q) local n = q:clear(); return n end
local function stop(q) q:stop() end
local function cancel(q, id) local n = q:cancel(id); return n end
local function set_priority(q, id, to) local n = q:set_priority(id, to); return n end
local function pause(q, ms) q:pause(ms) end
local function resume(q) q:resume() end
local function retry(q, id) local got, why = q:retry(id); return got, why end

local refusals = { ["queue is stopped"] = true, ["queue is full"] = true, ["duplicate id"] = true }

--- A copy of options, without those the module does not know yet.
local function known(opts, has)
  local sent = {}
  for key, value in each(opts) do
    if has[key] ~= false then sent[key] = value end
  end
  return sent
end

local FAR = 5                                             -- ms; whoever waits longer than this waits "for ever"

return function(w)
  local queue = w.queue

  local function is_count(n) return type(n) == "number" and n >= 0 and n == math.floor(n) end

  local function expect_count(name, n)
    if not is_count(n) then w.fail("%s returned %s, which is no count", name, tostring(n)) end
  end

  -- Callbacks ---------------------------------------------------------------------------------------------------

  --- A callback of the queue's, with the checks that go before it.
  local function told(rec, name, body, check)
    return function(...)
      rec.told[name] = rec.told[name] + 1
      w.fuel = w.fuel - 1
      check(...)
      if w.trace then w.trace("  " .. rec.name .. " " .. name) end
      -- What a callback raises is reported on standard error; what it raises by mistake must be seen.
      if body and not w.over() then
        local ok, thrown = pcall(body, ...)
        if not ok then
          w.judge_thrown(name, thrown)
          error(thrown, 0)
        end
      end
    end
  end

  local function job_of(info)
    return type(info) == "table" and type(info.payload) == "table" and info.payload.job or nil
  end

  --- What is true of the table that any callback gets.
  local function check_info(rec, name, info)
    local job = job_of(info)
    if not job then return w.fail("%s: the payload has not come through", name) end
    if job.queue ~= rec then w.fail("%s is told of another queue's job", name) end
    if info.id ~= job.id and job.id then w.fail("%s: id %s instead of %s", name, tostring(info.id), job.id) end
    if info.retries ~= job.retries then w.fail("%s: retries %s instead of %s", name, info.retries, job.retries) end
    -- A hook may have made the retry run before anybody was told of it.
    if not job.again and not job.series and not w.shaken and info.attempts ~= job.runs then
      w.fail("%s: %s attempts told of, %d seen", name, tostring(info.attempts), job.runs)
    end
    return job
  end

  local function on_error(rec, msg, info)
    local job = check_info(rec, "on_error", info)
    if type(msg) ~= "string" then return w.fail("on_error got a %s for its message", type(msg)) end
    if w.is_broken(msg) then w.fail("on_error was told %q", msg) end
    if not job then return end
    if info.expired then
      if msg ~= ('job "%s" expired before it ran'):format(info.id) then w.fail("a shed job is told of as %q", msg) end
      if not job.timeout then w.fail("a job without a deadline has expired") end
      if not job.series and queue.now() < job.due + (job.timeout or 0) then w.fail("a job expired too early") end
      if job.series then
        if w.fuel <= 0 then w.wind_up(rec) end
      else
        w.forget(job, "it has expired")
      end
    else
      w.judge_thrown("a job", info.error)
      if not job.series and job.runs > 0 then w.forget(job, "it has failed") end
    end
  end

  local function on_retry(rec, msg, info)
    local job = check_info(rec, "on_retry", info)
    if type(msg) ~= "string" then w.fail("on_retry got a %s for its message", type(msg)) end
    if type(info.delay_ms) ~= "number" then w.fail("on_retry: delay_ms is a %s", type(info.delay_ms)) end
    if job and not job.series then job.parked = true end
  end

  local function on_success(rec, info)
    local job = check_info(rec, "on_success", info)
    -- A finalizer or a hook may have run the next beat before anybody was told of this one.
    local is_ahead = w.shaken and job and job.series
    if job and job.returned ~= true and not is_ahead then w.fail("on_success for a job that has not returned") end
  end

  -- Making a queue ------------------------------------------------------------------------------------------------

  --- A queue under a name. Options the module does not know yet are left out.
  function w.new(name, opts)
    if not w.enter("new", queue, name) and w.fuel <= 0 then return nil end
    local rec = {
      kind = "queue", name = name, capacity = opts.capacity or 0, concurrency = opts.concurrency or 1,
      keep = w.has.new.keep_failed and opts.keep_failed or 0,
      cleared = 0, refused = 0, started = 0, returned = 0, counted = 0, pumping = 0, clearing = 0, numbered = 0,
      told = { on_error = 0, on_retry = 0, on_success = 0 },
      waiting = {}, waits = 0, jobs = 0, all = {}, sweeps = 0,
    }
    local sent = known(opts, w.has.new)
    rec.hears = opts.on_error ~= nil
    if opts.on_error then
      sent.on_error = told(rec, "on_error", opts.on_error, function(...) on_error(rec, ...) end)
    end
    if sent.on_retry then
      sent.on_retry = told(rec, "on_retry", opts.on_retry, function(...) on_retry(rec, ...) end)
    end
    if sent.on_success then
      sent.on_success = told(rec, "on_success", opts.on_success, function(...) on_success(rec, ...) end)
    end
    rec.has_on_retry, rec.has_on_success, rec.limit = sent.on_retry, sent.on_success, sent.limit
    local function make() local q = queue.new(sent); return q end
    local ok, q = w.call_guarded("new", Texts.none, make)
    if ok then return w.keep(q, rec) end
  end

  -- Jobs ------------------------------------------------------------------------------------------------------------

  --- Notes that a job must not start any more, and why.
  function w.forget(job, why)
    if job.queue.waiting[job] then
      job.queue.waiting[job] = nil
      job.queue.waits = job.queue.waits - 1
    end
    job.dead = why
  end

  --- Pending jobs of the queue that `which` picks are gone for good.
  local function forget_all(rec, why, which)
    rec.sweeps = rec.sweeps + 1
    local list = {}
    for job in each(rec.waiting) do
      if not which or which(job) then list[#list + 1] = job end
    end
    for _, job in ipairs(list) do w.forget(job, why) end
    for job in each(rec.parked or {}) do
      if job.parked and (not which or which(job)) then job.dead = why end
    end
    for job in each(rec.series or {}) do
      if not which or which(job) then job.dead = why end
    end
  end

  local function started(rec, job, ...)
    local now = queue.now()
    rec.started, job.runs, job.parked = rec.started + 1, job.runs + 1, false
    -- A finalizer or a hook may have struck when the job had been taken and not been called.
    if w.shaken then job.dead = nil end
    if job.dead then w.fail("job %s of %s ran though %s", tostring(job.id), rec.name, job.dead) end
    if rec.stopped and not w.shaken then w.fail("job %s of %s started after stop", tostring(job.id), rec.name) end
    if now < job.due then w.fail("job %s of %s ran %g ms too early", tostring(job.id), rec.name, job.due - now) end
    local allowed = job.allowed
    if job.series then
      local beats = math.floor((now - job.due) / job.interval + 0.001) + 1
      allowed = beats * (job.retries + 1) + job.extra
    end
    if job.runs > allowed then w.fail("job %s of %s ran %d times", tostring(job.id), rec.name, job.runs) end
    local n = select("#", ...)
    if job.args and n ~= job.args then w.fail("%d arguments instead of %d", n, job.args) end
    if rec.limit then
      local windows = math.floor((now - rec.made) / rec.limit.per_ms + 0.001) + 1
      if rec.started > windows * rec.limit.jobs then
        w.fail("%d starts in %d windows of a limit", rec.started, windows)
      end
    end
    local first = rec.waiting[job]
    if first then
      rec.waiting[job] = nil
      rec.waits = rec.waits - 1
    end
    -- Priorities are strict, and equals go in push order.
    if w.exact() and (first or not rec.moved) then
      for other in each(rec.waiting) do
        if other.ready and other.sure and (other.priority > job.priority
          or first and other.priority == job.priority and other.order < job.order) then
          w.fail("job %s (%s) of %s started before %s (%s)", tostring(job.id), tostring(job.priority), rec.name,
            tostring(other.id), tostring(other.priority))
        end
      end
    end
    job.parked, job.since = false, now
    -- Beats of a series go by its phase; any other job that comes again does so after its backoff.
    if type(job.backoff) == "number" and not job.series then job.due = math.max(job.due, now + job.backoff) end
  end

  --- Where a program has used up its calls it must come to an end: series stop.
  function w.wind_up(rec)
    -- A queue that only a finalizer holds is no more among the objects, but it is at work.
    local q = w.objects[rec.number] or rec.at_work
    if q and not rec.stopped then
      rec.stopped = true
      q:stop()
    end
  end

  local function body_of(rec, job, body)
    local function left(...)
      w.busy = math.max(0, w.busy - 1)
      rec.returned, job.returned = rec.returned + 1, true
      return ...
    end
    return function(...)
      started(rec, job, ...)
      -- A series goes on until the program's calls are used up, and each beat takes its time.
      w.fuel = w.fuel - (job.series and 8 or 1)
      if w.trace then w.trace(("  job %s of %s, run %d"):format(tostring(job.id), rec.name, job.runs)) end
      if w.fuel <= 0 and (job.series or job.runs > 50) then w.wind_up(rec) end
      if w.over() then
        rec.returned, job.returned = rec.returned + 1, true
        return
      end
      w.busy = w.busy + 1
      job.returned = false
      return left(body(job, ...))
    end
  end

  local function backoff_of(rec, job, answer)
    return function(attempts, thrown)
      w.judge_thrown("a backoff", thrown)
      if not is_count(attempts) or attempts < 1 then w.fail("backoff_ms got %s attempts", tostring(attempts)) end
      if w.over() then return nil end
      w.fuel = w.fuel - 1
      local ms = answer(attempts, thrown)
      if type(ms) == "number" and ms > FAR and rec.pumping > 0 then ms = 0.1 end
      if type(ms) == "number" and ms > FAR then rec.far = true end
      if type(ms) == "number" and ms == ms and not job.series then job.due = math.max(job.due, job.since + ms) end
      return ms
    end
  end

  --- A time that a pump at work could not wait out becomes a short one.
  local function near(rec, ms)
    if type(ms) ~= "number" or ms ~= ms or ms <= FAR then return ms end
    if rec.pumping > 0 then return 0.1 end
    if ms ~= math.huge then rec.far = true end
    return ms
  end

  --- The module's options, from the program's, and the job's record.
  local function prepare(rec, opts, body, interval)
    rec.jobs = rec.jobs + 1
    local job = {
      queue = rec, id = opts.id, runs = 0, extra = 0, retries = opts.retries or 0, priority = opts.priority or 0,
      order = rec.jobs, sweeps = rec.sweeps, args = opts.args and (opts.args.n or #opts.args), interval = interval,
    }
    rec.all[job] = true
    local sent = known(opts, w.has.push)
    sent.callable = nil
    sent.delay_ms = near(rec, opts.delay_ms)
    sent.payload = { job = job, user = opts.payload }
    if type(opts.backoff_ms) == "function" then
      sent.backoff_ms = backoff_of(rec, job, opts.backoff_ms)
    else
      sent.backoff_ms = near(rec, opts.backoff_ms)
      job.backoff = sent.backoff_ms
    end
    -- Of a series whose beats are all shed nobody would ever hear, and `run` would never end.
    if interval and not rec.hears then sent.timeout_ms = nil end
    if (sent.timeout_ms or 0) > 0 then job.timeout = sent.timeout_ms end
    job.allowed = job.retries + 1
    job.ready = (sent.delay_ms or 0) <= 0 and not interval
    -- Whether its end is certain to be heard of.
    job.sure = rec.hears or not job.timeout
    if interval then
      job.series = true
      job.due = queue.now() + math.max(0, sent.delay_ms or interval)
    else
      job.due = queue.now() + math.max(0, sent.delay_ms or 0)
    end
    local fn = body_of(rec, job, body)
    if opts.callable then
      local inner = fn
      fn = setmetatable({}, { __call = function(_, ...) return inner(...) end })
    end
    return job, sent, fn
  end

  local function check_refusal(q, rec, why, unique)
    rec.refused = rec.refused + 1
    if not refusals[why] then return w.fail("a push was refused with %s", tostring(why)) end
    if why == "queue is stopped" and not q:is_stopped() then w.fail("refused as stopped, and is not") end
    if not w.exact() then return end
    if q:is_stopped() and why ~= "queue is stopped" then w.fail("a stopped queue says %s", why) end
    if why == "queue is full" and (rec.capacity == 0 or q:size() < rec.capacity) then
      w.fail("refused as full with %d of %d", q:size(), rec.capacity)
    end
    if why == "duplicate id" and not unique then w.fail("refused as a duplicate, and need not be unique") end
  end

  --- After a push: the id, or the reason, and the record among those that wait.
  local function filed(q, rec, job, opts, ok, id, why)
    if not ok then
      job.dead = "its push raised"
      return nil
    end
    if id == nil then
      job.dead = "its push was refused"
      check_refusal(q, rec, why, opts.unique)
      return nil
    end
    if type(id) ~= "string" then return w.fail("push returned a %s for an id", type(id)) end
    job.id = id
    if opts.id and id ~= opts.id then w.fail("push of %s returned %s", opts.id, id) end
    if not opts.id then
      rec.numbered = rec.numbered + 1
      if w.exact() and id ~= "job-" .. rec.numbered then w.fail("id %s where job-%d was due", id, rec.numbered) end
    end
    if job.series then
      rec.series = rec.series or setmetatable({}, { __mode = "k" })
      rec.series[job] = true
    elseif job.runs == 0 and not job.dead and job.sweeps == rec.sweeps then
      -- Neither has it run by now nor has a finalizer or a hook swept it away.
      rec.waiting[job] = true
      rec.waits = rec.waits + 1
    end
    if not job.series and job.retries > 0 and rec.has_on_retry then
      rec.parked = rec.parked or setmetatable({}, { __mode = "k" })
      rec.parked[job] = true
    end
    if w.exact() and rec.capacity > 0 and not job.series and q:size() > rec.capacity then
      w.fail("%d pending where %d fit, after a push", q:size(), rec.capacity)
    end
    return id
  end

  function w.push(q, body, opts)
    opts = opts or {}
    local rec = w.enter("push", q)
    if not rec then return nil end
    local job, sent, fn = prepare(rec, opts, body)
    return filed(q, rec, job, opts, w.call_guarded("push", Texts.none, push, q, fn, sent))
  end

  function w.every(q, ms, body, opts)
    if not w.has.queue.every then return nil end
    opts = opts or {}
    local rec = w.enter("every", q, ms)
    if not rec then return nil end
    ms = near(rec, ms)
    local job, sent, fn = prepare(rec, opts, body, ms)
    return filed(q, rec, job, opts, w.call_guarded("every", Texts.none, every, q, ms, fn, sent))
  end

  -- Pumps -----------------------------------------------------------------------------------------------------------

  --- Counts a pump in and out, whatever way it takes.
  local function pumped(rec, name, fn, q, ...)
    if not w.may_pump() then return nil end
    rec.pumping, w.pumps, rec.pumpings = rec.pumping + 1, w.pumps + 1, (rec.pumpings or 0) + 1
    local busy, outer = w.busy, rec.at_work
    rec.at_work = w.aside > 0 and q or outer
    local ok, n = w.call_guarded(name, Texts.pump, fn, q, ...)
    rec.pumping, w.pumps, w.busy = rec.pumping - 1, w.pumps - 1, busy
    rec.at_work = outer
    if not ok then
      if not tostring(n):find("queue is already running", 1, true) then rec.doubt = true end
      return nil
    end
    expect_count(name, n)
    if is_count(n) then rec.counted = rec.counted + n end
    return n
  end

  function w.poll(q, max)
    local rec = w.enter("poll", q, max)
    if not rec then return nil end
    local before, pumps, alone = rec.started, rec.pumpings, rec.pumping == 0
    local n = pumped(rec, "poll", poll, q, max)
    if n and alone and max and max > 0 and rec.pumpings == (pumps or 0) + 1 and rec.started - before > max then
      w.fail("poll(%d) started %d", max, rec.started - before)
    end
    return n
  end

  function w.run(q)
    local rec = w.enter("run", q)
    if not rec then return nil end
    -- Waits that are meant to be long are not waited out: clear the way first.
    if rec.far then w.clear(q) end
    if rec.far then return w.poll(q) end
    local n = pumped(rec, "run", run, q)
    if n and w.exact() and not q:is_stopped() and not rec.paused then
      if q:size() > 0 then w.fail("run of %s returned with %d pending", rec.name, q:size()) end
      if rec.concurrency > 1 and q:in_flight() > 0 then
        w.fail("run of %s returned with %d in flight", rec.name, q:in_flight())
      end
    end
    return n
  end

  -- The rest ----------------------------------------------------------------------------------------------------------

  function w.stop(q)
    local rec = w.enter("stop", q)
    if not rec then return end
    w.call_guarded("stop", Texts.none, stop, q)
    rec.stopped = true
    forget_all(rec, "its queue was stopped")
    rec.waiting, rec.waits = {}, 0
    if w.quiet(q.is_stopped, q) == false then w.fail("not stopped after stop") end
  end

  function w.clear(q)
    local rec = w.enter("clear", q)
    if not rec then return nil end
    local size = w.exact() and q:size()
    rec.clearing = rec.clearing + 1
    local ok, n = w.call_guarded("clear", Texts.none, clear, q)
    rec.clearing = rec.clearing - 1
    if not ok then return nil end
    expect_count("clear", n)
    rec.cleared = rec.cleared + n
    if size and n ~= size then w.fail("clear of %d returned %d", size, n) end
    -- A finalizer in the midst of the call may have pushed one that is not cleared.
    if w.exact() then
      forget_all(rec, "it was cleared")
      if q:in_flight() == 0 then rec.far = nil end
    else
      rec.waiting, rec.waits, rec.sweeps = {}, 0, rec.sweeps + 1
    end
    return n
  end

  --- How many jobs of an id are pending, and how many beats of a series are in flight.
  local function alive(q, rec, id)
    local pending, beats = 0, 0
    for _, job in ipairs(q:jobs()) do
      if job.id == id and job.status ~= "running" then pending = pending + 1 end
      if job.id == id and job.status == "running" then beats = beats + 1 end
    end
    return pending, rec.series and beats or 0
  end

  function w.cancel(q, id)
    if not w.has.queue.cancel then return nil end
    local rec = w.enter("cancel", q, id)
    if not rec then return nil end
    local pending, beats
    if w.exact() and w.has.queue.jobs then pending, beats = alive(q, rec, id) end
    local ok, n = w.call_guarded("cancel", Texts.none, cancel, q, id)
    if not ok then return nil end
    expect_count("cancel", n)
    if pending and (n < pending or n > pending + beats) then w.fail("cancel of %d returned %d", pending, n) end
    if w.exact() then
      forget_all(rec, "it was cancelled", function(job) return job.id == id end)
    else
      rec.waiting, rec.waits, rec.sweeps = {}, 0, rec.sweeps + 1
    end
    return n
  end

  function w.set_priority(q, id, to)
    if not w.has.queue.set_priority then return nil end
    local rec = w.enter("set_priority", q, id, to)
    if not rec then return nil end
    local pending = w.exact() and w.has.queue.jobs and alive(q, rec, id)
    local ok, n = w.call_guarded("set_priority", Texts.none, set_priority, q, id, to)
    if not ok then return nil end
    expect_count("set_priority", n)
    if pending and n ~= pending then w.fail("set_priority of %d returned %d", pending, n) end
    for job in each(rec.waiting) do
      if job.id == id then job.priority = to end
    end
    -- What is not known to wait may be a retry, which keeps the new one too.
    for job in each(rec.parked or {}) do
      if job.id == id then job.priority = to end
    end
    for job in each(rec.series or {}) do
      if job.id == id then job.priority = math.huge end
    end
    rec.moved = true
    return n
  end

  function w.pause(q, ms)
    if not w.has.queue.pause then return end
    local rec = w.enter("pause", q, ms)
    if not rec then return end
    w.call_guarded("pause", Texts.none, pause, q, ms)
    rec.paused = ms == nil or ms == math.huge
  end

  function w.resume(q)
    if not w.has.queue.resume then return end
    local rec = w.enter("resume", q)
    if not rec then return end
    w.call_guarded("resume", Texts.none, resume, q)
    rec.paused = false
    if w.exact() and q:is_paused() then w.fail("paused after resume") end
  end

  function w.retry(q, id)
    if not w.has.queue.retry then return nil end
    local rec = w.enter("retry", q, id)
    if not rec then return nil end
    -- Which job it is nobody tells, so every one of that id may run again.
    for job in each(rec.all) do
      if job.id == id and job.runs > 0 then
        job.dead, job.again = nil, true
        job.allowed, job.extra = job.allowed + job.retries + 1, job.extra + job.retries + 1
      end
    end
    local ok, got, why = w.call_guarded("retry", Texts.none, retry, q, id)
    if not ok then return nil end
    if got == nil then
      if why ~= "no such job" then check_refusal(q, rec, why, true) end
    elseif got ~= id then
      w.fail("retry of %s returned %s", id, tostring(got))
    end
    return got
  end

  function w.backoff(opts)
    if not w.has.module.backoff then return 0.1 end
    local function make() local fn = queue.backoff(opts); return fn end
    local ok, fn = w.call_guarded("backoff", Texts.none, make)
    if not ok then return 0.1 end
    for _, attempt in ipairs{ 1, 2, 10, 1000, 2 ^ 53 } do
      local ms = fn(attempt)
      if type(ms) ~= "number" or not (ms >= 0 and ms <= (opts.max_ms or 60000)) then
        w.fail("backoff(%g) is %s", attempt, tostring(ms))
      end
    end
    return fn
  end
end
