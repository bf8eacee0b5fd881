--- A queue's state: bounds, stop, clear, the deadline on starting, and what it tells of itself.
local H = require("spec.helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local function fail() error("x") end

describe("capacity", function()
  it("bounds what is pending, delayed jobs included, and says so", function()
    local q = queue.new{ capacity = 2 }
    eq(q:push(noop), "job-1"); eq(q:push(noop, { delay_ms = 1e6 }), "job-2")
    H.results(H.pack(q:push(noop)), nil, "queue is full")
    eq(q:size(), 2); H.conserved(q, { refused = 1 })
    eq(q:poll(), 1); eq(q:push(noop), "job-3", "room again")
  end)

  it("of 0, or none, is no bound", function()
    for _, q in ipairs{ queue.new(), queue.new{}, queue.new{ capacity = 0 }, queue.new{ capacity = nil } } do
      for _ = 1, 100 do ok(q:push(noop)) end
      eq(q:run(), 100)
    end
  end)

  it("takes an integral float", function()
    local q = queue.new{ capacity = 1.0 }
    ok(q:push(noop)); eq((q:push(noop)), nil)
  end)

  it("does not count the job that runs, and never refuses a retry", function()
    local q, a = queue.new{ capacity = 1 }, 0
    q:push(function()
      a = a + 1
      if a == 1 then ok(q:push(noop), "room for one more"); error("x") end
    end, { retries = 1 })
    eq(q:poll(1), 1); eq(q:size(), 2, "over the bound by the retry")
    H.results(H.pack(q:push(noop)), nil, "queue is full")
    eq(q:run(), 2); eq(a, 2); H.conserved(q, { refused = 1 })
  end)

  it("can be large without taking room", function()
    local q = queue.new{ capacity = 2 ^ 53 }
    ok(q:push(noop)); eq(q:run(), 1)
  end)
end)

describe("stop", function()
  it("ends a run, refuses pushes, and keeps what is pending", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() l[#l + 1] = "stops"; q:stop() end, { priority = 1 })
    q:push(note("never")); q:push(note("never"), { delay_ms = 1 })
    eq(q:is_stopped(), false)
    eq(q:run(), 1); list(l, "stops")
    eq(q:is_stopped(), true); eq(q:size(), 2); eq(q:empty(), false)
    H.results(H.pack(q:push(noop)), nil, "queue is stopped")
    eq(q:run(), 0); eq(q:poll(), 0); eq(q:poll(5), 0); eq(q:size(), 2)
    H.conserved(q, { refused = 1 })
  end)

  it("is idempotent and final", function()
    local q = queue.new(); q:stop(); q:stop(); eq(q:is_stopped(), true); eq(q:run(), 0)
  end)

  it("comes before a full queue among the reasons", function()
    local q = queue.new{ capacity = 1 }; q:push(noop); q:stop()
    H.results(H.pack(q:push(noop)), nil, "queue is stopped")
  end)

  it("makes a job that fails after it fail for good", function()
    local q, told = nil, 0
    q = queue.new{ on_error = function(_, info) told = told + 1; eq(info.attempts, 1); eq(info.retries, 9) end }
    q:push(function() q:stop(); error("x") end, { retries = 9 })
    eq(q:run(), 1); eq(told, 1); eq(q:metrics().failed, 1); eq(q:metrics().retried, 0); eq(q:size(), 0)
  end)

  it("keeps a parked retry, and counts it", function()
    local q = queue.new(); q:push(fail, { retries = 1, backoff_ms = 1e6 })
    eq(q:poll(), 1); q:stop(); eq(q:size(), 1); eq(q:run(), 0); H.conserved(q)
  end)

  it("sheds nothing any more", function()
    local q, told = nil, 0
    q = queue.new{ on_error = function() told = told + 1 end }
    q:push(noop, { timeout_ms = 1 }); queue.sleep(5); q:stop()
    eq(q:run(), 0); eq(q:poll(), 0); eq(told, 0); eq(q:size(), 1); eq(q:metrics().expired, 0)
  end)

  it("still lets clear drop what is left", function()
    local q = queue.new(); q:push(noop); q:stop(); eq(q:clear(), 1); eq(q:size(), 0)
    H.conserved(q, { cleared = 1 })
  end)

  it("inside a nested run ends the outer one too", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() q:run(); l[#l + 1] = "back" end, { priority = 2 })
    q:push(function() l[#l + 1] = "stops"; q:stop() end, { priority = 1 })
    q:push(note("never"))
    eq(q:run(), 1); list(l, "stops back"); eq(q:size(), 1)
  end)
end)

describe("clear", function()
  it("drops ready and delayed jobs and parked retries, and says how many", function()
    local q = queue.new()
    q:push(fail, { retries = 1, backoff_ms = 1e6 }); q:poll()
    q:push(noop); q:push(noop, { delay_ms = 1e6 }); q:push(noop, { delay_ms = math.huge })
    eq(q:clear(), 4); eq(q:clear(), 0); eq(q:size(), 0); eq(q:run(), 0)
    H.conserved(q, { cleared = 4 })
  end)

  it("inside a job drops the others, not what is pushed after it", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() eq(q:clear(), 2); q:push(note("after")) end)
    q:push(note("never")); q:push(note("never"), { delay_ms = 1 })
    eq(q:run(), 2); list(l, "after"); H.conserved(q, { cleared = 2 })
  end)

  it("inside a job leaves that job its retries", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; if a == 1 then q:clear(); error("x") end end, { retries = 1 })
    eq(q:run(), 2); eq(a, 2); H.conserved(q)
  end)

  it("makes room in a bounded queue", function()
    local q = queue.new{ capacity = 1 }; q:push(noop); q:clear(); ok(q:push(noop)); eq(q:run(), 1)
  end)
end)

describe("timeout_ms", function()
  it("sheds a job that has not begun in time, and tells on_error", function()
    local seen, ran = {}, nil
    local q = queue.new{ on_error = function(msg, info) seen[#seen + 1] = { msg, info } end }
    q:push(function() ran = true end, { id = "stale", timeout_ms = 5, priority = 4, retries = 2, payload = "p" })
    queue.sleep(15)
    eq(q:size(), 1, "pending until its turn"); eq(q:next_due(), 0)
    eq(q:run(), 0, "no attempt"); eq(ran, nil); eq(#seen, 1); eq(q:size(), 0)
    local info = seen[1][2]
    eq(seen[1][1], 'job "stale" expired before it ran'); eq(info.expired, true); eq(info.attempts, 0)
    eq(info.id, "stale"); eq(info.priority, 4); eq(info.retries, 2); eq(info.payload, "p")
    local m = H.conserved(q); eq(m.expired, 1); eq(m.processed, 0); eq(m.failed, 0)
  end)

  it("takes room until its turn has come", function()
    local q = queue.new{ capacity = 1 }; q:push(noop, { timeout_ms = 1 }); queue.sleep(5)
    H.results(H.pack(q:push(noop)), nil, "queue is full")
    eq(q:poll(), 0); ok(q:push(noop)); eq(q:poll(), 1)
  end)

  it("counts from when the job may start, not from the push", function()
    local q, ran = queue.new(), nil
    q:push(function() ran = true end, { delay_ms = 120, timeout_ms = 100 })
    eq(q:run(), 1); eq(ran, true)
  end)

  it("of a retry counts from the retry's own time", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; queue.sleep(60); error("x") end,
      { retries = 2, backoff_ms = 5, timeout_ms = 50 })
    eq(q:run(), 3); eq(a, 3); eq(q:metrics().expired, 0); eq(q:metrics().failed, 1)
  end)

  it("sheds a retry that waits too long, after the attempts it had", function()
    local seen
    local q = queue.new{ on_error = function(_, info) seen = info end }
    q:push(fail, { retries = 5, backoff_ms = 1, timeout_ms = 40 })
    eq(q:poll(), 1)
    queue.sleep(60)
    eq(q:run(), 0); eq(seen.expired, true); eq(seen.attempts, 1)
    local m = H.conserved(q); eq(m.expired, 1); eq(m.retried, 1); eq(m.failed, 0)
  end)

  it("does not cut short a job that runs", function()
    local q, done = queue.new(), nil
    q:push(function() queue.sleep(80); done = true end, { timeout_ms = 50 })
    eq(q:run(), 1); eq(done, true)
  end)

  it("of 0, less, or math.huge is none", function()
    local q = queue.new()
    for _, ms in ipairs{ 0, -1, math.huge, 1e300 } do q:push(noop, { timeout_ms = ms }) end
    queue.sleep(5); eq(q:run(), 4); eq(q:metrics().expired, 0)
  end)

  it("looks at a job only in its turn: a higher one goes first", function()
    local l, note = H.log()
    local q = queue.new{ on_error = function() l[#l + 1] = "shed" end }
    q:push(noop, { timeout_ms = 1 }); q:push(note("high"), { priority = 1 }); queue.sleep(5)
    eq(q:run(), 1); list(l, "high shed")
  end)
end)

describe("what a queue tells", function()
  it("size, #, empty and tostring agree", function()
    local q = queue.new()
    eq(q:size(), 0); eq(#q, 0); eq(q:empty(), true); eq(tostring(q), "queue(pending=0)")
    q:push(noop); q:push(noop, { delay_ms = 1e6 })
    eq(q:size(), 2); eq(#q, 2); eq(q:empty(), false); eq(tostring(q), "queue(pending=2)")
    q:stop(); eq(tostring(q), "queue(pending=2, stopped)")
    q:clear(); eq(tostring(q), "queue(pending=0, stopped)")
  end)

  it("in_flight counts the jobs that have started, nested ones too", function()
    local q, seen = queue.new(), {}
    q:push(function() seen[1] = q:in_flight(); seen[2] = q:size(); q:run(); seen[4] = q:in_flight() end)
    q:push(function() seen[3] = q:in_flight() end)
    eq(q:in_flight(), 0); q:run(); list(seen, "1 1 2 1"); eq(q:in_flight(), 0)
  end)

  it("next_due tells how long until poll has something to do", function()
    local q = queue.new()
    eq(q:next_due(), nil)
    q:push(noop, { delay_ms = math.huge }); eq(q:next_due(), math.huge)
    q:push(noop, { delay_ms = 5000 }); H.between(q:next_due(), 5000 - H.patience(2000), 5000)
    q:push(noop, { delay_ms = 50 }); H.between(q:next_due(), 0, 50)
    queue.sleep(55); eq(q:next_due(), 0); eq(q:poll(), 1); H.between(q:next_due(), 5000 - H.patience(2000), 5000)
    q:push(noop); eq(q:next_due(), 0)
    q:stop(); eq(q:next_due(), nil)
  end)

  it("next_due is never too short: poll has something to do when it is over", function()
    local q = queue.new()
    for _ = 1, 20 do
      q:push(noop, { delay_ms = math.random() * 5 })
      queue.sleep(q:next_due()); eq(q:next_due(), 0); eq(q:poll(), 1)
    end
  end)

  it("metrics has every number, integers and floats apart", function()
    local q = queue.new()
    for round = 1, 2 do
      local m = q:metrics()
      for _, k in ipairs{ "enqueued", "processed", "succeeded", "failed", "retried", "expired", "dropped",
        "cancelled", "pending", "in_flight" } do
        eq(type(m[k]), "number", k)
        if H.integers then eq(math.type(m[k]), "integer", k) end
      end
      for _, k in ipairs{ "avg_wait_ms", "avg_exec_ms", "max_wait_ms", "max_exec_ms" } do
        eq(type(m[k]), "number", k)
        if H.integers then eq(math.type(m[k]), "float", k) end
        if round == 1 then eq(m[k], 0, k) end
      end
      q:push(function() queue.sleep(2) end); q:run()
    end
  end)

  it("metrics is a table of the caller's own", function()
    local q = queue.new()
    q:metrics().enqueued = 99
    eq(q:metrics().enqueued, 0); ok(q:metrics() ~= q:metrics())
  end)

  it("metrics measures the wait to the start and the time of running", function()
    local q = queue.new()
    q:push(function() queue.sleep(20) end); q:push(noop)
    queue.sleep(10); q:run()
    local m = q:metrics()
    H.between(m.max_wait_ms, 30, H.patience(1000), "max_wait_ms")
    H.between(m.avg_wait_ms, 20, m.max_wait_ms, "avg_wait_ms")
    H.between(m.max_exec_ms, 20, H.patience(1000), "max_exec_ms")
    H.between(m.avg_exec_ms, 10, m.max_exec_ms, "avg_exec_ms")
  end)

  it("metrics does not count a delay or a backoff as a wait", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; if a == 1 then error("x") end end, { delay_ms = 200, retries = 1, backoff_ms = 200 })
    eq(q:run(), 2)
    H.between(q:metrics().avg_wait_ms, 0, H.patience(150), "avg_wait_ms")
  end)

  it("nothing is lost at any time: in a job, in on_error, after each step", function()
    local q, cleared = nil, 0
    q = queue.new{ on_error = function() H.conserved(q, { cleared = cleared }) end }
    for i = 1, 200 do
      q:push(function()
        H.conserved(q, { cleared = cleared })
        if i % 3 == 0 then error("x") end
        if i % 49 == 0 then cleared = cleared + q:clear() end
      end, { retries = i % 4, timeout_ms = i % 5 == 0 and 1e-3 or 0, priority = i % 7 })
    end
    while q:poll(3) > 0 or q:size() > 0 do H.conserved(q, { cleared = cleared }) end
    local m = H.conserved(q, { cleared = cleared })
    eq(m.enqueued, 200); ok(m.failed > 0 and m.succeeded > 0 and m.retried > 0 and m.expired > 0 and cleared > 0)
  end)
end)

describe("<close>", function()
  local function with_close(text) return assert(load("local queue, noop = ... " .. text)) end

  it("stops and clears a queue at the end of its block", function()
    if not H.lua54 then return pending("the syntax is of 5.4") end
    local q = with_close("local q <close> = queue.new() q:push(noop) q:push(noop, { delay_ms = 1e6 }) return q")(queue, noop)
    eq(q:is_stopped(), true); eq(q:size(), 0); H.conserved(q, { cleared = 2 })
  end)

  it("does so when an error leaves the block, and lets the error pass", function()
    if not H.lua54 then return pending("the syntax is of 5.4") end
    local kept
    local done, err = pcall(with_close("local q <close> = queue.new() q:push(noop) noop(q) error('out', 0)"), queue,
      function(q) kept = q end)
    eq(done, false); eq(err, "out"); eq(kept:is_stopped(), true); eq(kept:size(), 0)
  end)
end)
