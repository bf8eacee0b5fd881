--- Looks at queues and channels, and the laws that hold whenever one looks.

local each = require("fuzz.each")

return function(w)
  local queue = w.queue

  local counts = { "enqueued", "processed", "succeeded", "failed", "retried", "expired", "dropped", "cancelled",
    "pending", "in_flight" }
  local states = { running = 1, ready = 2, delayed = 3 }

  local function check_figures(rec, m)
    for _, name in ipairs(counts) do
      local n = m[name]
      if type(n) ~= "number" or n < 0 or n ~= math.floor(n) or math.type and math.type(n) ~= "integer" then
        w.fail("%s.%s is %s", rec.name, name, tostring(n))
      end
    end
    for _, kind in ipairs{ "wait_ms", "exec_ms" } do
      local avg, max, last = m["avg_" .. kind], m["max_" .. kind], 0
      if not (avg >= 0 and avg <= max * 1.000001) then w.fail("%s: avg_%s %g, max %g", rec.name, kind, avg, max) end
      for _, part in ipairs{ "p50_", "p95_", "p99_" } do
        local p = m[part .. kind]
        if p and (p < last or p ~= p) then w.fail("%s: %s%s is %g", rec.name, part, kind, p) end
        last = p or last
      end
    end
  end

  local function check_law(rec, m)
    local gone = m.succeeded + m.failed + m.expired + m.cancelled + rec.cleared
    if m.enqueued ~= gone + m.pending + m.in_flight then
      w.fail("%s: enqueued %d, accounted for %d (succeeded %d, failed %d, expired %d, cancelled %d, cleared %d, "
        .. "pending %d, in flight %d)", rec.name, m.enqueued, gone + m.pending + m.in_flight, m.succeeded, m.failed,
        m.expired, m.cancelled, rec.cleared, m.pending, m.in_flight)
    end
    -- An attempt has ended before it is known what becomes of it: a backoff function, or a variable that is closed, is
    -- called in between.
    local open = m.processed - m.succeeded - m.failed - m.retried
    if open < 0 or open > (rec.pumping > 0 and m.in_flight or 0) then
      w.fail("%s: processed %d, ended %d", rec.name, m.processed, m.processed - open)
    end
    if m.dropped ~= rec.refused + rec.cleared then
      w.fail("%s: dropped %d, refused %d and cleared %d", rec.name, m.dropped, rec.refused, rec.cleared)
    end
  end

  --- What the metrics say against what was seen from inside the jobs and callbacks.
  local function check_seen(rec, m)
    -- LuaJIT compiles around hooks, and counts on code that a hook has not interrupted.
    if w.stormed and rawget(_G, "jit") then return end
    if m.succeeded ~= rec.returned then w.fail("%s: succeeded %d, returned %d", rec.name, m.succeeded, rec.returned) end
    local begun = m.succeeded + m.failed + m.retried + m.in_flight
    if rec.started < begun or rec.started > begun + m.cancelled then
      w.fail("%s: %d started, %d processed, %d in flight, %d cancelled", rec.name, rec.started, m.processed,
        m.in_flight, m.cancelled)
    end
    local told = rec.told
    if rec.hears and told.on_error ~= m.failed + m.expired then
      w.fail("%s: on_error called %d times for %d failed and %d expired", rec.name, told.on_error, m.failed, m.expired)
    end
    if rec.has_on_retry and told.on_retry ~= m.retried then
      w.fail("%s: on_retry called %d times for %d retries", rec.name, told.on_retry, m.retried)
    end
    if rec.has_on_success and told.on_success ~= m.succeeded then
      w.fail("%s: on_success called %d times for %d successes", rec.name, told.on_success, m.succeeded)
    end
    if rec.pumping == 0 and not rec.doubt and rec.counted ~= m.processed then
      w.fail("%s: run and poll returned %d in all, processed %d", rec.name, rec.counted, m.processed)
    end
    local sure = 0
    for job in each(rec.waiting) do
      if job.sure then sure = sure + 1 end
    end
    if sure > m.pending then w.fail("%s: %d jobs wait, %d are pending", rec.name, sure, m.pending) end
  end

  local function check_jobs(q, rec, m)
    local list = q:jobs()
    local pending, running, last, ready_last = 0, 0, 1, math.huge
    for _, job in ipairs(list) do
      local state = states[job.status]
      if not state then return w.fail("%s: a job is %s", rec.name, tostring(job.status)) end
      if state < last then w.fail("%s: %s after %s in jobs()", rec.name, job.status, last) end
      last = state
      if state == 1 then running = running + 1 else pending = pending + 1 end
      if (job.running_ms ~= nil) ~= (state == 1) or (job.due_ms == nil) ~= (state == 1) then
        w.fail("%s: a %s job with due_ms %s, running_ms %s", rec.name, job.status, tostring(job.due_ms),
          tostring(job.running_ms))
      end
      if state == 2 then
        if job.priority > ready_last then w.fail("%s: jobs() is not in order", rec.name) end
        ready_last = job.priority
        if job.due_ms ~= 0 then w.fail("%s: ready and due in %g", rec.name, job.due_ms) end
      end
      local status = q:status(job.id)
      if not states[status] or states[status] > state then
        w.fail("%s: %s is %s in jobs(), status() says %s", rec.name, job.id, job.status, tostring(status))
      end
    end
    if pending ~= m.pending or running ~= m.in_flight then
      w.fail("%s: jobs() has %d and %d, the metrics %d and %d", rec.name, pending, running, m.pending, m.in_flight)
    end
  end

  local function examine_queue(q, rec)
    local size, length, flying, stopped = q:size(), #q, q:in_flight(), q:is_stopped()
    local due, text, m = q:next_due(), tostring(q), q:metrics()
    if w.aside > 0 or rec.clearing > 0 then return end
    if size ~= m.pending or length ~= size or q:empty() ~= (size == 0) or flying ~= m.in_flight then
      w.fail("%s: size %d, # %d, in flight %d, the metrics say %d and %d", rec.name, size, length, flying, m.pending,
        m.in_flight)
    end
    if text ~= ("queue(pending=%d%s)"):format(size, stopped and ", stopped" or "") then w.fail("tostring: %s", text) end
    if stopped ~= (rec.stopped or false) then w.fail("%s: is_stopped %s", rec.name, tostring(stopped)) end
    local none = flying == 0 and (size == 0 or stopped)
    if (due == nil) ~= none or due and (due < 0 or due ~= due) then
      w.fail("%s: next_due %s with %d pending, %d in flight, stopped %s", rec.name, tostring(due), size, flying,
        tostring(stopped))
    end
    if flying > rec.concurrency and rec.concurrency > 1 then w.fail("%s: %d in flight", rec.name, flying) end
    check_figures(rec, m)
    check_law(rec, m)
    check_seen(rec, m)
    if w.has.queue.jobs then check_jobs(q, rec, m) end
    if w.has.queue.failed then
      local list = q:failed()
      if #list > rec.keep then w.fail("%s: %d failed jobs kept", rec.name, #list) end
      for _, info in ipairs(list) do
        if type(info.message) ~= "string" then w.fail("%s: a failed job without a message", rec.name) end
      end
    end
  end

  local function examine_channel(ch, rec)
    local len, cap, closed, dirty, text = ch:len(), ch:cap(), ch:is_closed(), ch:dirty(), tostring(ch)
    local length = #ch
    if w.aside > 0 then return end
    if rec.kind == "shared" then cap = ch:cap() end
    if length ~= len and rec.kind ~= "timer" then w.fail("%s: # %d, len %d", rec.name, length, len) end
    if rec.capacity and cap ~= rec.capacity then w.fail("%s: cap %d", rec.name, cap) end
    -- What was handed to a job that was collected before it could take it is there again, whether it fits or not.
    if len > cap + rec.open_calls then w.fail("%s: %d values where %d fit", rec.name, len, cap) end
    if rec.closed and not closed then w.fail("%s is open again", rec.name) end
    -- A timer's channel may change between two looks.
    if rec.kind == "timer" then return end
    if text ~= ("channel(%d/%d%s)"):format(len, cap, closed and ", closed" or "") then w.fail("tostring: %s", text) end
    if (len > 0 or closed) and not dirty then w.fail("%s: %s is not dirty", rec.name, text) end
    if not rec.closed and closed then w.fail("%s: closed by nobody", rec.name) end
  end

  --- Looks at everything there is to see of an object.
  function w.look(object)
    local rec = w.enter("look", object)
    if not rec then return end
    w.quiet(rec.kind == "queue" and examine_queue or examine_channel, object, rec)
  end

  --- The descriptors, and what socket libraries ask for.
  function w.descriptors(object)
    local rec = w.enter("descriptors", object)
    if not rec then return end
    w.quiet(function()
      local fd, why = object:getfd()
      if type(fd) ~= "number" and not (fd == nil and type(why) == "string") then
        w.fail("%s: getfd %s, %s", rec.name, tostring(fd), tostring(why))
      end
      if rec.kind == "queue" then return end
      if object:pollfd() ~= fd then w.fail("%s: pollfd is another one", rec.name) end
      if object:events() ~= "r" or object:timeout() ~= nil then w.fail("%s: events, timeout", rec.name) end
    end)
  end

  local function wind_down(q, rec)
    w.look(q)
    if not rec.stopped and not rec.paused and w.random:chance(2) then
      for _ = 1, 20 do w.poll(q) end
      w.look(q)
    end
    w.stop(q)
    w.poll(q)
    w.look(q)
    w.clear(q)
    w.look(q)
  end

  --- The end of a program: everything that still lives is looked at, wound down, and looked at once more.
  function w.finish()
    w.fuel, w.aside = 1e6, 0
    -- Bodies of jobs do no more than end.
    w.ending = true
    collectgarbage()
    for number = 1, w.made do
      local object = w.objects[number]
      local rec = object ~= nil and w.records[object]
      if rec and rec.kind == "queue" then wind_down(object, rec) end
    end
    for number = 1, w.made do
      local object = w.objects[number]
      local rec = object ~= nil and w.records[object]
      if rec and rec.kind ~= "queue" then w.drain(object, rec) end
    end
    w.settle_values()
    w.fuel = 0
    if w.aside ~= 0 then w.fail("a finalizer has not ended") end
    if queue.now() < 0 then w.fail("a clock below zero") end
  end
end
