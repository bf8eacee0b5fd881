--- A limit on starts: at most so many in any stretch of so long, whoever drives the queue.
local H = require("spec.helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local fail, huge, nan = J.fail, math.huge, 0 / 0

--- A queue with that limit, and a list of when its jobs began.
local function limited(jobs, per_ms, options)
  local all = { limit = { jobs = jobs, per_ms = per_ms } }
  for k, v in pairs(options or {}) do all[k] = v end
  local q, at = queue.new(all), {}
  return q, at, function() at[#at + 1] = queue.now() end
end

--- No stretch of `per_ms` holds more than `jobs` of these starts.
local function held(at, jobs, per_ms)
  for i = jobs + 1, #at do
    local t = at[i] - at[i - jobs]
    if t < per_ms - H.slow then
      error(("starts %d to %d lie within %.3f ms"):format(i - jobs, i, t), 2)
    end
  end
end

--- A start is noted after it was made, and on a busy machine long after: three tries.
local function tries(title, fn) it(title, function() H.eventually(3, fn) end) end

describe("a limit", function()
  tries("of 5 per 100 ms lets 50 jobs start in 900 ms, and no stretch holds a sixth", function()
    local q, at, job = limited(5, 100)
    for _ = 1, 50 do q:push(job) end
    local t = H.timed(function() eq(q:run(), 50) end)
    eq(#at, 50); held(at, 5, 100); H.between(t, 900, H.patience(1100), "ms in all"); H.conserved(q)
  end)

  tries("holds for jobs side by side", function()
    local q, at, job = limited(3, 40, { concurrency = 10 })
    for _ = 1, 12 do q:push(function() job(); queue.sleep(50) end) end
    local t = H.timed(function() eq(q:run(), 12) end)
    eq(#at, 12); held(at, 3, 40); H.between(t, 170, H.patience(1000)); H.conserved(q)
  end)

  it("lets as many start at once as it allows, and keeps their order", function()
    local q = limited(3, H.patience(20)); local l, note = H.log()
    for i, p in ipairs{ 0, 2, 1, 2, 0 } do q:push(note(i), { priority = p }) end
    eq(q:poll(), 3); list(l, "2 4 3"); eq(q:run(), 2); list(l, "2 4 3 1 5")
  end)

  tries("counts retries, at the time of their start", function()
    local q, at, job = limited(2, 30)
    q:push(function() job(); fail() end, { retries = 6 })
    local t = H.timed(function() eq(q:run(), 7) end)
    held(at, 2, 30); H.between(t, 90, H.patience(1000)); eq(H.conserved(q).retried, 6)
  end)

  it("counts starts, not ends: a job as long as the stretch costs the next one nothing", function()
    local q = limited(1, 20); q:push(function() queue.sleep(25) end); q:push(noop)
    eq(q:poll(1), 1); eq(q:next_due(), 0); eq(q:poll(1), 1)
    q:push(noop); ok(q:next_due() > 0); H.between(q:next_due(), 0, 20)
  end)

  tries("is a window that slides, not one that begins anew", function()
    local ms = H.patience(60)
    local q, at, job = limited(2, ms)
    for _ = 1, 4 do q:push(job) end
    eq(q:poll(1), 1); queue.sleep(0.7 * ms); eq(q:poll(1), 1); eq(q:poll(), 0)
    -- The first start has left the stretch, the second has not.
    queue.sleep(q:next_due()); eq(q:poll(), 1); H.between(at[3] - at[1], ms - 1, huge)
    H.between(q:next_due(), 0.3 * ms, ms); queue.sleep(q:next_due()); eq(q:poll(), 1); held(at, 2, ms)
  end)

  tries("is not used up by time in which nothing started", function()
    local q, at, job = limited(2, H.patience(15)); queue.sleep(H.patience(50))
    for _ = 1, 6 do q:push(job) end
    eq(q:poll(), 2); eq(q:poll(), 0); q:run(); eq(#at, 6); held(at, 2, H.patience(15))
  end)

  tries("outlives a run: the next one waits as well", function()
    local q, at, job = limited(1, 30); q:push(job); q:run(); q:push(job); q:run(); q:push(job); q:run()
    held(at, 1, 30)
  end)

  tries("holds a nested run, too, and counts its starts", function()
    local q, at, job = limited(2, 30)
    q:push(function() job(); eq(q:run(), 4) end); for _ = 1, 4 do q:push(job) end
    eq(q:run(), 1); eq(#at, 5); held(at, 2, 30); eq(H.conserved(q).failed, 0)
  end)

  it("does not burn the processor", function()
    local q = limited(1, 300); q:push(noop); q:push(noop)
    local cpu = os.clock(); eq(q:run(), 2); H.between(os.clock() - cpu, 0, 0.1 * H.slow, "seconds of processor time")
  end)

  it("that is wide lets everything pass, and costs no room", function()
    for _, jobs in ipairs{ 1000, 1e6, 2 ^ 53 } do
      local q, n = limited(jobs, 1000), 0
      for _ = 1, 500 do q:push(function() n = n + 1 end) end
      eq(q:run(), 500); eq(n, 500)
    end
  end)

  tries("takes an integral float, and a time that is a fraction or very long", function()
    local q = limited(2.0, 1e300); for _ = 1, 3 do q:push(noop) end
    eq(q:poll(), 2); eq(q:poll(), 0); ok(q:next_due() > 2 ^ 30)
    local p, at, job = limited(1, 0.5); for _ = 1, 5 do p:push(job) end
    H.between(H.timed(function() eq(p:run(), 5) end), 2, H.patience(1000)); held(at, 1, 0.5)
  end)

  it("reads its options once", function()
    local limit = { jobs = 1, per_ms = 1e6 }; local q = queue.new{ limit = limit }
    limit.jobs, limit.per_ms = 100, 1; q:push(noop); q:push(noop); queue.sleep(3); eq(q:poll(), 1); eq(q:poll(), 0)
    eq(limit.jobs, 100)
  end)

  it("is each queue's own", function()
    local a, b, c = limited(1, 1e6), limited(1, 1e6), queue.new()
    for _, q in ipairs{ a, b, c } do q:push(noop); q:push(noop) end
    eq(a:poll(), 1); eq(b:poll(), 1); eq(c:poll(), 2)
  end)
end)

describe("what a limit holds", function()
  it("is left by poll, and next_due tells for how long", function()
    local q = limited(3, 1e6); for _ = 1, 5 do q:push(noop, { id = "j" }) end
    eq(q:next_due(), 0); eq(q:poll(2), 2); eq(q:next_due(), 0); eq(q:poll(), 1); eq(q:poll(), 0); eq(q:poll(9), 0)
    eq(q:size(), 2); H.between(q:next_due(), 1e6 - H.patience(5000), 1e6); eq(q:status("j"), "ready")
    local r = q:jobs()[1]; eq(r.status, "ready"); eq(r.due_ms, 0); eq(q:cancel("j"), 2); eq(q:next_due(), nil)
    H.conserved(q)
  end)

  tries("is due when next_due is over, never later than the window", function()
    local q, at, job = limited(1, 15); for _ = 1, 5 do q:push(job) end
    for i = 1, 5 do
      queue.sleep(q:next_due()); eq(q:next_due(), 0); eq(q:poll(), 1); if i < 5 then H.between(q:next_due(), 0, 15) end
    end
    eq(q:next_due(), nil); held(at, 1, 15)
  end)

  it("waits for the later of its delay and the window", function()
    local q = limited(1, 5000); q:push(noop); q:poll()
    q:push(noop, { delay_ms = 20 }); H.between(q:next_due(), 5000 - H.patience(2000), 5000)
    q:clear(); q:push(noop, { delay_ms = 1e5 }); H.between(q:next_due(), 1e5 - H.patience(2000), 1e5)
    q:pause(2e5); H.between(q:next_due(), 2e5 - H.patience(2000), 2e5); q:pause(); eq(q:next_due(), huge)
    q:resume(); q:stop(); eq(q:next_due(), nil)
  end)

  it("is not shed before its turn, and a job that is shed is no start", function()
    local ms = H.patience(40)
    local q, seen = J.watched{ limit = { jobs = 1, per_ms = ms } }
    q:push(noop, { id = "a" }); q:push(noop, { id = "late", timeout_ms = ms / 8 }); q:push(noop, { id = "b" })
    eq(q:poll(), 1); queue.sleep(ms / 4); eq(q:poll(), 0); eq(q:metrics().expired, 0); eq(q:size(), 2)
    eq(q:run(), 1); list(J.told(seen), "success a error late success b"); eq(H.conserved(q).expired, 1)
  end)

  it("is shed by a run without an attempt where nothing else is left", function()
    local q, seen = J.watched{ limit = { jobs = 1, per_ms = 30 } }
    q:push(noop, { id = "a" }); q:push(noop, { id = "late", timeout_ms = 5 })
    eq(q:run(), 1); list(J.told(seen), "success a error late")
  end)

  it("does not keep run after a stop, a clear or a pause without end", function()
    for _, how in ipairs{ "stop", "clear", "pause" } do
      local q = limited(1, 1e7); q:push(function() q[how](q) end); q:push(noop); q:push(noop)
      H.between(H.timed(function() eq(q:run(), 1) end), 0, H.patience(1000)); eq(q:size(), how == "clear" and 0 or 2)
    end
  end)

  it("by priority and set_priority: the best at the time of the start", function()
    local q = limited(1, H.patience(15)); local l, note = H.log()
    for _, id in ipairs{ "a", "b", "c" } do q:push(note(id), { id = id }) end
    eq(q:poll(), 1); q:set_priority("c", 1); eq(q:poll(), 0); q:push(note("d"), { priority = 2 }); q:run()
    list(l, "a d c b")
  end)

  tries("beats of a series, of which those missed are merged", function()
    local q, at, job = limited(1, 25)
    local n = 0
    q:every(2, function() job(); n = n + 1; if n == 4 then q:cancel("s") end end, { id = "s" })
    eq(q:run(), 4); held(at, 1, 25); local m = H.conserved(q); eq(m.enqueued, 4)
  end)

  it("the wait that it costs is a wait of the attempt", function()
    local q = limited(1, 20); q:push(noop); q:push(noop); q:run()
    H.between(q:metrics().max_wait_ms, 20, H.patience(1000))
  end)

  it("lets jobs in flight go on meanwhile", function()
    local q, l = queue.new{ concurrency = 3, limit = { jobs = 1, per_ms = 40 } }, {}
    q:push(function() queue.sleep(5); l[#l + 1] = "first" end); q:push(function() l[#l + 1] = "second" end)
    eq(q:run(), 2); list(l, "first second")
  end)

  it("ends a wait for it in time: no dead end", function()
    local q, got = queue.new{ concurrency = 2, limit = { jobs = 1, per_ms = 20 } }, nil
    local ch = queue.channel()
    q:push(function() got = ch:receive() end); q:push(function() ch:send("v") end)
    eq(q:run(), 2); eq(got, "v"); eq(H.conserved(q).failed, 0)
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local any = "'new'"
  for _, case in ipairs{
    { "limit a number", J.option("limit", "new", "table expected, got number"), function() queue.new{ limit = 5 } end },
    { "limit a string", J.option("limit", "new", "table expected, got string"),
      function() queue.new{ limit = "5" } end },
    { "limit false", J.option("limit", "new", "table expected, got boolean"),
      function() queue.new{ limit = false } end },
    { "limit a queue", J.option("limit", "new", "table expected, got queue"),
      function() queue.new{ limit = queue.new() } end },
    { "nothing in it", any, function() queue.new{ limit = {} } end },
    { "no jobs", any, function() queue.new{ limit = { per_ms = 5 } } end },
    { "no per_ms", any, function() queue.new{ limit = { jobs = 5 } } end },
    { "jobs 0", any, function() queue.new{ limit = { jobs = 0, per_ms = 5 } } end },
    { "jobs negative", any, function() queue.new{ limit = { jobs = -1, per_ms = 5 } } end },
    { "jobs 1.5", any, function() queue.new{ limit = { jobs = 1.5, per_ms = 5 } } end },
    { "jobs NaN", any, function() queue.new{ limit = { jobs = nan, per_ms = 5 } } end },
    { "jobs without end", any, function() queue.new{ limit = { jobs = huge, per_ms = 5 } } end },
    { "jobs text", any, function() queue.new{ limit = { jobs = "5", per_ms = 5 } } end },
    { "per_ms 0", any, function() queue.new{ limit = { jobs = 5, per_ms = 0 } } end },
    { "per_ms negative", any, function() queue.new{ limit = { jobs = 5, per_ms = -1 } } end },
    { "per_ms without end", any, function() queue.new{ limit = { jobs = 5, per_ms = huge } } end },
    { "per_ms NaN", any, function() queue.new{ limit = { jobs = 5, per_ms = nan } } end },
    { "per_ms text", any, function() queue.new{ limit = { jobs = 5, per_ms = "5" } } end },
    { "per_ms a table", any, function() queue.new{ limit = { jobs = 5, per_ms = {} } } end },
    { "a typo in it", "job.*'new'", function() queue.new{ limit = { job = 5, per_ms = 5 } } end },
    { "a typo beside good ones", "per.*'new'", function() queue.new{ limit = { jobs = 5, per_ms = 5, per = 5 } } end },
    { "an array", any, function() queue.new{ limit = { 5, 100 } } end },
    { "an option of push", "limit.*'push'",
      function() queue.new():push(noop, { limit = { jobs = 5, per_ms = 5 } }) end },
  } do
    it(case[1], function() H.raises(case[2], case[3]) end)
  end

  it("the message names what is wrong", function()
    for _, bad in ipairs{ { jobs = 0, per_ms = 5 }, { jobs = 1.5, per_ms = 5 }, { jobs = {}, per_ms = 5 } } do
      local done, err = pcall(queue.new, { limit = bad }); eq(done, false); H.has(err, "jobs")
    end
    for _, bad in ipairs{ { jobs = 1, per_ms = 0 }, { jobs = 1, per_ms = huge }, { jobs = 1, per_ms = {} } } do
      local done, err = pcall(queue.new, { limit = bad }); eq(done, false); H.has(err, "per_ms")
    end
  end)
end)
