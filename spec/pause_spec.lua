--- A pause: no job starts, nothing is shed, and what is pending stays.
local H = require("spec.helper")
local G = require("spec.go_helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local fail = J.fail
local not51 = G.its(function() return it, pending end)

describe("pause without a time", function()
  it("starts nothing until resume: run returns at once, poll has nothing to do", function()
    for _, n in ipairs(J.widths) do
      for _, forever in ipairs{ "none", "nil", "huge" } do
        local q = queue.new{ concurrency = n }; local l, note = H.log()
        q:push(note("a")); q:push(note("b"), { delay_ms = 1 })
        eq(q:is_paused(), false)
        if forever == "none" then q:pause() elseif forever == "nil" then q:pause(nil) else q:pause(math.huge) end
        eq(q:is_paused(), true); queue.sleep(3)
        local t = H.timed(function() eq(q:run(), 0); eq(q:poll(), 0); eq(q:poll(5), 0) end)
        H.between(t, 0, H.patience(1000)); eq(#l, 0); eq(q:size(), 2); eq(q:next_due(), math.huge)
        q:resume(); eq(q:is_paused(), false); eq(q:next_due(), 0); eq(q:run(), 2); list(l, "a b"); H.conserved(q)
      end
    end
  end)

  it("makes run return although a job is due later", function()
    local q = queue.new(); q:push(noop, { delay_ms = 1e7 }); q:pause()
    H.between(H.timed(function() eq(q:run(), 0) end), 0, H.patience(1000)); eq(q:next_due(), math.huge); eq(q:size(), 1)
  end)

  it("of an empty queue leaves nothing to wait for", function()
    local q = queue.new(); q:pause(); eq(q:next_due(), nil); eq(q:run(), 0); eq(q:poll(), 0); eq(q:is_paused(), true)
  end)

  it("holds what is pushed meanwhile, by priority and bound", function()
    local q = queue.new{ capacity = 2 }; local l, note = H.log()
    q:pause(); eq(q:push(note("low")), "job-1"); eq(q:push(note("high"), { priority = 1 }), "job-2")
    H.results(H.pack(q:push(noop)), nil, "queue is full"); eq(q:run(), 0)
    q:resume(); eq(q:run(), 2); list(l, "high low"); H.conserved(q, { refused = 1 })
  end)

  it("leaves everything else at work: status, jobs, cancel, set_priority, clear, stop", function()
    local q = queue.new()
    for _, id in ipairs{ "a", "b", "c" } do q:push(noop, { id = id }) end
    q:pause(); eq(q:status("a"), "ready"); eq(q:set_priority("c", 1), 1); eq(q:cancel("b"), 1)
    list(J.ids(q), "c a"); eq(J.row(q, "a").due_ms, 0); eq(J.row(q, "a").status, "ready")
    eq(q:clear(), 2); eq(q:next_due(), nil); q:push(noop); q:stop(); eq(q:run(), 0); eq(q:next_due(), nil)
    q:resume(); eq(q:run(), 0, "a stop is final"); eq(q:size(), 1); H.conserved(q, { cleared = 2 })
  end)

  it("twice is once: one resume ends it, and a resume too many does nothing", function()
    local q, n = queue.new(), 0; q:push(function() n = n + 1 end)
    q:pause(); q:pause(); q:resume(); eq(q:is_paused(), false); q:resume(); q:resume()
    eq(q:run(), 1); eq(n, 1); q:push(noop); q:pause(); eq(q:run(), 0)
  end)
end)

describe("pause with a time", function()
  it("is waited out by run, and by run alone", function()
    for _, n in ipairs(J.widths) do
      local q, started = queue.new{ concurrency = n }, nil
      q:push(function() started = queue.now() end)
      local from, ms = queue.now(), H.patience(30); q:pause(ms)
      eq(q:poll(), 0); eq(q:is_paused(), true); eq(q:run(), 1)
      H.between(started - from, ms, H.patience(1000), "ms to the start"); eq(q:is_paused(), false); H.conserved(q)
    end
  end)

  it("ends by itself, and next_due tells when", function()
    local q = queue.new(); q:push(noop); q:pause(H.patience(40))
    H.between(q:next_due(), 0.001, H.patience(40), "next_due")
    queue.sleep(q:next_due()); eq(q:next_due(), 0); eq(q:is_paused(), false); eq(q:poll(), 1)
  end)

  it("adds nothing to a delay that is longer, and next_due tells the later of the two", function()
    local q = queue.new(); q:push(noop, { delay_ms = 5000 }); q:pause(20)
    H.between(q:next_due(), 5000 - H.patience(2000), 5000); q:pause(9000); H.between(q:next_due(), 5001, 9000)
    q:clear(); eq(q:next_due(), nil); q:push(noop, { delay_ms = math.huge }); eq(q:next_due(), math.huge)
  end)

  it("is never cut short", function()
    local q = queue.new()
    for _, ms in ipairs{ 0.5, 3, 11.75 } do
      local started; q:push(function() started = queue.now() end)
      local from = queue.now(); q:pause(ms); q:run(); H.between(started - from, ms, ms + H.patience(500), ms .. " ms")
    end
  end)

  it("does not burn the processor", function()
    local q = queue.new(); q:push(noop); q:pause(300)
    local cpu = os.clock(); eq(q:run(), 1); H.between(os.clock() - cpu, 0, 0.1 * H.slow, "seconds of processor time")
  end)

  it("of nothing or less is none, and ends one that lasts", function()
    for _, ms in ipairs{ 0, -1, -0.5, -math.huge } do
      local q = queue.new(); q:push(noop); q:pause(); q:pause(ms); eq(q:is_paused(), false); eq(q:next_due(), 0)
      eq(q:poll(), 1); q:pause(ms); q:push(noop); eq(q:run(), 1)
    end
  end)

  it("may be of any size: nothing wraps, nothing starts", function()
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 32, 2 ^ 53, 2 ^ 63, 2 ^ 64, 1e19, 1e300 } do
      local q = queue.new(); q:push(noop); q:pause(ms); eq(q:poll(), 0); eq(q:is_paused(), true)
      ok(q:next_due() > 2 ^ 30); q:resume(); eq(q:poll(), 1)
    end
  end)

  it("the last call counts, longer or shorter", function()
    local q = queue.new(); q:push(noop)
    q:pause(1e7); q:pause(5); H.between(q:next_due(), 0, 5); q:pause(1e6); ok(q:next_due() > 5e5); q:pause()
    eq(q:next_due(), math.huge); q:pause(5); H.between(q:next_due(), 0, 5)
    eq(q:run(), 1); q:push(noop); q:pause(1); q:pause(); queue.sleep(3); eq(q:is_paused(), true); eq(q:run(), 0)
    q:resume(); q:pause(1e6); q:resume(); eq(q:run(), 1)
  end)

  it("raises in a run that waits for ever behind it", function()
    local q = queue.new(); q:push(noop, { delay_ms = math.huge }); q:pause(5)
    H.raises("deadlock: run", function() q:run() end); eq(q:size(), 1)
  end)
end)

describe("pause from within", function()
  it("a job lets that job end, and starts no other", function()
    for _, n in ipairs(J.widths) do
      for _, method in ipairs{ "run", "poll" } do
        local q = queue.new{ concurrency = n }; local l, note = H.log()
        q:push(function() q:pause(); l[#l + 1] = "pauses" end); q:push(note("b")); q:push(note("c"))
        eq(q[method](q), 1); list(l, "pauses"); eq(q:size(), 2); eq(q:is_paused(), true)
        q:resume(); eq(q:run(), 2); list(l, "pauses b c")
      end
    end
  end)

  it("a job, for a while, makes its run wait", function()
    local q, at = queue.new(), {}
    q:push(function() at[1] = queue.now(); q:pause(25) end); q:push(function() at[2] = queue.now() end)
    eq(q:run(), 2); H.between(at[2] - at[1], 25, H.patience(1000))
  end)

  it("a job that resumes as well changes nothing", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() q:pause(); q:resume() end); q:push(note("b")); eq(q:run(), 2); list(l, "b")
  end)

  it("a nested run ends that run; a resume by the outer job lets the outer go on", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() q:pause(); eq(q:run(), 0); eq(q:poll(), 0); l[#l + 1] = "still"; q:resume() end)
    q:push(note("a")); eq(q:run(), 2); list(l, "still a"); eq(H.conserved(q).failed, 0)
  end)

  it("a nested run, for a while, is waited out there", function()
    local q, t, inner = queue.new(), nil, nil
    q:push(function() t = H.timed(function() q:pause(20); inner = q:run() end) end); q:push(noop)
    eq(q:run(), 1); eq(inner, 1); H.between(t, 20, H.patience(1000))
  end)

  it("holds the retry of the very job that pauses", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; if a == 1 then q:pause(); error("x") end end, { retries = 1 })
    eq(q:run(), 1); eq(a, 1); eq(q:size(), 1); eq(H.conserved(q).retried, 1); q:resume(); eq(q:run(), 1); eq(a, 2)
  end)

  it("backoff_ms and on_error is as good as any", function()
    local q
    q = queue.new{ on_error = function() q:pause() end }
    q:push(fail, { priority = 1 }); q:push(noop); eq(q:run(), 1); eq(q:size(), 1); q:resume(); eq(q:run(), 1)
    q:push(fail, { retries = 1, backoff_ms = function() q:pause(); return 0 end }); eq(q:run(), 1); eq(q:size(), 1)
  end)
end)

describe("while paused", function()
  it("nothing is shed; after it, what is too late is", function()
    local q, seen = J.watched()
    q:push(noop, { id = "late", timeout_ms = 5 }); q:push(noop, { id = "patient", timeout_ms = 1e7 }); q:pause()
    queue.sleep(10); eq(q:poll(), 0); eq(q:run(), 0); eq(q:metrics().expired, 0); eq(#seen, 0); eq(q:size(), 2)
    eq(q:status("late"), "ready"); q:resume(); eq(q:run(), 1); list(J.told(seen), "error late success patient")
    eq(seen[1].info.expired, true); eq(H.conserved(q).expired, 1)
  end)

  it("for a time, nothing is shed before its end", function()
    local q, told = nil, nil
    q = queue.new{ on_error = function() told = queue.now() end }
    q:push(noop, { timeout_ms = 5 })
    local from = queue.now(); q:pause(30); eq(q:run(), 0); H.between(told - from, 30, H.patience(1000)); eq(q:size(), 0)
  end)

  it("the time counts as a wait of the attempt that was ready", function()
    local q = queue.new(); q:push(noop); q:pause(20); q:run(); H.between(q:metrics().max_wait_ms, 20, H.patience(1000))
  end)

  it("a retry that is parked becomes ready, and stays", function()
    local q = queue.new(); q:push(fail, { id = "p", retries = 1, backoff_ms = 5 }); q:poll(); q:pause(); queue.sleep(8)
    eq(q:status("p"), "ready"); eq(q:poll(), 0); q:resume(); eq(q:poll(), 1); eq(H.conserved(q).failed, 1)
  end)

  it("a series keeps its phase, and of the beats that were missed one is made up", function()
    local q, n = queue.new(), 0
    q:every(20, function() n = n + 1 end, { id = "s" }); local low, high = J.due(q, "s")
    q:pause(); queue.sleep(110); eq(q:poll(), 0); eq(n, 0); q:resume()
    eq(q:poll(1), 1); eq(q:size(), 1)
    -- The beat of the first time has run; five more were missed.
    eq(q:status("s"), "ready"); eq(q:poll(1), 1); eq(n, 2); J.on_phase(q, "s", 20, low, high)
    eq(q:cancel("s"), 1); H.conserved(q)
  end)
end)

describe("jobs in flight and a pause", function()
  it("go on, and run returns once they are done; no other starts", function()
    local q, l = G.crew(2), {}
    q:push(function() queue.sleep(3); l[#l + 1] = "a"; queue.sleep(3); l[#l + 1] = "a" end)
    q:push(function() q:pause() end); q:push(function() l[#l + 1] = "b" end)
    eq(q:run(), 2); list(l, "a a"); eq(q:size(), 1); eq(q:in_flight(), 0)
    q:resume(); eq(G.run(q), 1); list(l, "a a b")
  end)

  it("may resume it, and then the rest starts", function()
    local q, l = G.crew(2), {}
    q:push(function() queue.sleep(10); l[#l + 1] = "resumes"; q:resume() end); q:push(function() q:pause() end)
    q:push(function() l[#l + 1] = "b" end)
    eq(G.run(q), 3); list(l, "resumes b")
  end)

  it("go on while run waits a pause out", function()
    local q, l = G.crew(2), {}
    q:push(function() queue.sleep(5); l[#l + 1] = "slept" end); q:push(function() q:pause(30) end)
    local from, at = queue.now(), nil
    q:push(function() l[#l + 1] = "b"; at = queue.now() end)
    eq(G.run(q), 3); list(l, "slept b"); H.between(at - from, 30, H.patience(1000))
  end)

  it("under poll go on too", function()
    local q, ch = G.crew(2), queue.channel()
    q:push(function() ch:receive() end); q:poll(); q:push(noop); q:pause()
    eq(q:next_due(), math.huge); eq(q:poll(), 0); ok(ch:try_send(1)); eq(q:next_due(), 0); eq(q:poll(), 1)
    eq(q:size(), 1); eq(q:next_due(), math.huge); eq(q:in_flight(), 0); q:resume(); eq(q:poll(), 1); G.fine(q)
  end)

  it("that sleep make next_due finite", function()
    local q = G.crew(2); q:push(function() queue.sleep(5000) end); q:poll(); q:push(noop); q:pause()
    H.between(q:next_due(), 5000 - H.patience(2000), 5000); q:stop()
  end)

  it("that wait for a job which is held for ever get the deadlock error", function()
    local q, seen = G.crew(2); local ch = queue.channel()
    q:push(function() q:pause(); ch:receive() end, { id = "w" }); q:push(function() ch:send(1) end)
    eq(q:run(), 1); eq(#seen, 1); H.has(seen[1].msg, "deadlock: receive on channel(0/0) can never complete")
    eq(q:size(), 1); H.conserved(q)
  end)

  it("that wait for a job which is held for a while get what they wait for", function()
    local q, got = G.crew(2), nil
    local ch = queue.channel()
    q:push(function() q:pause(15); got = ch:receive() end); q:push(function() ch:send("v") end)
    eq(G.run(q), 2); eq(got, "v")
  end)

  it("of another queue do not care", function()
    local a, b = queue.new(), queue.new(); local l, note = H.log()
    b:push(note("b")); a:push(function() a:pause(); eq(b:run(), 1) end); a:push(note("a"))
    eq(a:run(), 1); list(l, "b"); eq(b:is_paused(), false); eq(H.conserved(a).failed, 0)
  end)

  not51("of a queue that is run inside them are held with theirs alone", function()
    local outer, inner, l = G.crew(), G.crew(), {}
    inner:pause(15); inner:push(function() l[#l + 1] = "inner" end)
    outer:push(function() inner:run() end); outer:push(function() queue.sleep(1); l[#l + 1] = "outer" end)
    G.run(outer); G.fine(inner); list(l, "outer inner")
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local arg, q = J.arg, nil

  for _, name in ipairs{ "pause", "resume", "is_paused" } do
    it(name .. " on what is no queue", function() J.wrong_self(name) end)
  end

  for _, case in ipairs{
    { "a string", arg(1, "pause", "number expected, got string"), function() q:pause("soon") end },
    { "a digit", arg(1, "pause", "number expected, got string"), function() q:pause("5") end },
    { "a table", arg(1, "pause", "number expected, got table"), function() q:pause({}) end },
    { "false", arg(1, "pause", "number expected, got boolean"), function() q:pause(false) end },
    { "a function", arg(1, "pause", "number expected, got function"), function() q:pause(noop) end },
    { "NaN", arg(1, "pause"), function() q:pause(0 / 0) end },
  } do
    it("pause of " .. case[1], function()
      q = queue.new(); H.raises(case[2], case[3]); J.untouched(q)
    end)
  end

  it("and a pause that lasts goes on as it was", function()
    local p = queue.new(); p:push(noop); p:pause()
    eq(pcall(p.pause, p, "x"), false); eq(pcall(p.pause, p, 0 / 0), false); eq(p:is_paused(), true)
    eq(p:next_due(), math.huge); p:resume(); eq(pcall(p.pause, p, {}), false); eq(p:is_paused(), false); eq(p:run(), 1)
  end)
end)
