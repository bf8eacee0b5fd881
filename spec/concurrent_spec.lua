--- Jobs side by side: turns, bounds, retries, waits of every kind, dead ends, yields outward, runs within runs.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, has, noop = H.queue, H.eq, H.ok, H.list, H.has, H.noop
local yield, wrap = coroutine.yield, coroutine.wrap
local crew, add = G.crew, G.add
local not51, since54, collected = G.its(function() return it, pending end)

describe("a job that waits", function()
  --- At concurrency 2 the second job goes on while the first is in `wait`; at 1 it does not.
  local function waits(what, make)
    it("by " .. what .. " lets the others go on, and at concurrency 1 it does not", function()
      if H.lua51 and (what == "iter" or what:find("a job of another queue")) then return pending("stock 5.1 cannot yield there") end
      for n, want in pairs{ "a b", "b a" } do
        if n == 2 or not what:find("bare yield") then
          local q, l = crew(n), {}
          local wait, help = make()
          q:push(function() wait(); l[#l + 1] = "a" end); q:push(function() l[#l + 1] = "b"; if n == 2 and help then help() end end)
          eq(G.run(q), 2); list(l, want, "concurrency " .. n)
        end
      end
    end)
  end
  waits("sleep", function() return function() queue.sleep(5) end end)
  waits("sleep of 0", function() return function() queue.sleep(0); queue.sleep(0) end end)
  waits("a bare yield", function() return function() yield(); yield() end end)
  waits("receive", function() local t = queue.after(5); return function() t:receive() end end)
  waits("receive with a time", function() local ch = queue.channel(); return function() ch:receive(5) end end)
  waits("send with a time", function() local ch = queue.channel(); return function() ch:send(1, 5) end end)
  waits("select", function() local t = queue.after(5); return function() queue.select{ t, false } end end)
  waits("select with a time", function() return function() queue.select({}, 5) end end)
  waits("iter", function() local t = queue.after(5); return function() for _ in t:iter() do noop() end end end)
  waits("another queue's run", function()
    local inner = queue.new(); inner:push(noop, { delay_ms = 5 })
    return function() eq(inner:run(), 1) end
  end)
  waits("a job of another queue of one job at a time", function()
    local inner = queue.new(); inner:push(function() queue.sleep(5) end)
    return function() eq(inner:run(), 1); eq(inner:metrics().failed, 0) end
  end)
  waits("a job of another queue of many", function()
    local inner = crew(); inner:push(function() queue.sleep(5) end); inner:push(function() queue.sleep(5) end)
    return function() eq(G.run(inner), 2) end
  end)

  it("by send until another receives", function()
    local ch, l = queue.channel(), {}
    G.jobs(function() ch:send("v"); l[#l + 1] = "sent" end, function() l[#l + 1] = "other" end,
      function() add(l, ch:receive()) end)
    list(l, "other v sent")
  end)

  it("runs in a coroutine of its own, which can yield", function()
    local seen = {}
    G.jobs(function() seen[1] = coroutine.running(); queue.sleep(1) end, function() seen[2] = coroutine.running(); queue.sleep(1) end)
    eq(type(seen[1]), "thread"); eq(type(seen[2]), "thread"); ok(seen[1] ~= seen[2])
  end)

  it("gets its args, nils and all, and may be anything that can be called", function()
    local q, got = crew(2), nil
    q:push(function(...) queue.sleep(1); got = H.pack(...) end, { args = { nil, 2, nil, n = 3 } })
    q:push(setmetatable({}, { __call = function(self, a) queue.sleep(1); self.a = a; eq(a, "x") end }), { args = { "x" } })
    eq(G.run(q), 2); H.results(got, nil, 2, nil)
  end)

  it("burns no processor time", function()
    local q = crew(); local ch = queue.channel()
    q:push(function() ch:receive(150) end); q:push(function() queue.sleep(150) end)
    local before = os.clock(); G.run(q)
    H.between(os.clock() - before, 0, 0.05 * H.slow, "seconds of processor time")
  end)

  it("is not woken early", function()
    local q, times = crew(), {}
    for i = 1, 20 do q:push(function() local start = queue.now(); queue.sleep(i / 2); times[i] = queue.now() - start end) end
    local t = H.timed(function() G.run(q) end)
    for i = 1, 20 do H.between(times[i], i / 2, H.patience(1000), "sleep " .. i) end
    H.between(t, 10, H.patience(1000))
  end)

  it("while the clock goes on for all: a hundred sleeps take as long as one", function()
    local q = crew(); for _ = 1, 100 do q:push(function() queue.sleep(20) end) end
    H.eventually(3, function() H.between(H.timed(function() G.run(q) end), 0, H.patience(500)) end)
  end)

  it("may be ten thousand jobs at once", function()
    local q, n, done, most = crew(), H.count(10000), 0, 0
    local gate = queue.channel()
    for _ = 1, n do q:push(function() local _, open = gate:receive(); eq(open, false); done = done + 1 end) end
    q:push(function() most = q:in_flight(); queue.sleep(1); eq(done, 0); gate:close() end)
    eq(G.run(q), n + 1); eq(done, n); eq(most, n + 1)
    -- and once more on the same queue
    for _ = 1, n do q:push(function() queue.sleep(0); done = done + 1 end) end
    eq(G.run(q), n); eq(done, 2 * n)
  end)
end)

describe("a turn", function()
  it("resumes each job once, then starts others while there is room", function()
    local q, l = crew(2), {}
    for name in ("abc"):gmatch(".") do
      q:push(function() for i = 1, 2 do l[#l + 1] = name .. i; queue.sleep(0) end l[#l + 1] = name .. "." end)
    end
    local seen = {}
    while q:next_due() do
      eq(q:next_due(), 0); q:poll(); seen[#seen + 1] = table.concat(l, " "); l = {}
    end
    eq(table.concat(seen, "|"), "a1 b1|a2 b2|a. b. c1|c2|c."); G.fine(q)
  end)

  it("by coroutine.yield without values too", function()
    local q, l = crew(2), {}
    for _, n in ipairs{ "a", "b" } do q:push(function() for i = 1, 3 do l[#l + 1] = n .. i; yield() end end) end
    G.run(q); list(l, "a1 b1 a2 b2 a3 b3")
  end)

  it("starts pending jobs by priority", function()
    local q, l = crew(2), {}
    for i, p in ipairs{ 1, 5, 3, 5, 2 } do q:push(function() l[#l + 1] = i; queue.sleep(0) end, { priority = p }) end
    G.run(q); list(l, "2 4 3 5 1")
  end)

  it("resumes what could go on before it starts what has a high priority", function()
    local q, l = crew(), {}
    q:push(function() l[#l + 1] = "a1"; q:push(function() l[#l + 1] = "high" end, { priority = 9 }); queue.sleep(0); l[#l + 1] = "a2" end)
    q:poll(); list(l, "a1"); q:poll(); list(l, "a1 a2 high"); G.fine(q)
  end)

  it("leaves a job that was woken in it to the next, and next_due says 0", function()
    local q, l, ch = crew(), {}, queue.channel()
    q:push(function() add(l, ch:receive()) end); q:push(function() ch:send("v"); l[#l + 1] = "sent" end)
    eq(q:poll(), 1); list(l, "sent"); eq(q:next_due(), 0); eq(q:in_flight(), 1)
    eq(q:poll(), 1); list(l, "sent v"); eq(q:next_due(), nil); G.fine(q)
  end)

  it("leaves it even where the job that woke it was resumed itself", function()
    local q, l, a, b = crew(), {}, queue.channel(), queue.channel()
    q:push(function() add(l, a:receive()); b:send("b"); l[#l + 1] = "x" end)
    q:push(function() add(l, b:receive()) end)
    q:poll(); eq(q:next_due(), math.huge)
    ok(a:try_send("a")); eq(q:next_due(), 0)
    eq(q:poll(), 1); list(l, "a x"); eq(q:next_due(), 0)
    eq(q:poll(), 1); list(l, "a x b"); G.fine(q)
  end)

  it("resumes in the order in which the jobs became able to", function()
    local q, l = crew(), {}
    local chans = {}
    for i = 1, 4 do chans[i] = queue.channel(); q:push(function() chans[i]:receive(); l[#l + 1] = i end) end
    q:poll()
    for _, i in ipairs{ 3, 1, 4, 2 } do ok(chans[i]:try_send(true)) end
    q:poll(); list(l, "3 1 4 2"); G.fine(q)
  end)

  it("resumes sleepers in the order of their times", function()
    local q, l = crew(), {}
    for _, ms in ipairs{ 9, 3, 6, 1 } do q:push(function() queue.sleep(ms); l[#l + 1] = ms end) end
    q:poll(); queue.sleep(15); q:poll(); list(l, "1 3 6 9"); G.fine(q)
  end)

  it("resumes yielders, woken jobs and sleepers without starving any", function()
    local q, l, spin, ch = crew(3), {}, 0, queue.channel()
    local stop
    q:push(function() while not stop do spin = spin + 1; queue.sleep(0) end end)
    q:push(function() queue.sleep(10); l[#l + 1] = "slept"; ch:send("v") end)
    q:push(function() add(l, ch:receive()) end)
    q:push(function() l[#l + 1] = "started"; stop = true end)
    G.run(q); list(l, "slept started v"); ok(spin > 3)
  end)

  it("of two who pass a value for ever keeps nobody out", function()
    local q, a, b, over = crew(), queue.channel(), queue.channel(), false
    q:push(function() while not over do a:send(1); b:receive() end a:close() end)
    q:push(function() while true do local _, open = a:receive(); if not open then return end b:send(1) end end)
    q:push(function() queue.sleep(5); over = true end)
    q:push(function() over = over and true end, { delay_ms = 2 })
    H.between(H.timed(function() G.run(q) end), 5, H.patience(2000))
  end)

  it("of poll starts at most max, and none is lost", function()
    local q, n = crew(), 0
    for _ = 1, 10 do q:push(function() n = n + 1; queue.sleep(0) end) end
    eq(q:poll(3), 0); eq(n, 3); eq(q:in_flight(), 3); eq(q:size(), 7)
    eq(q:poll(1), 3); eq(n, 4); eq(q:poll(), 1); eq(n, 10); eq(q:poll(), 6); G.fine(q)
  end)

  it("of poll ends, though jobs push jobs and go on for ever", function()
    local q, n = crew(), 0
    local function again() n = n + 1; q:push(again); queue.sleep(0); q:push(again) end
    q:push(again); eq(q:poll(), 0); eq(n, 1); eq(q:poll(), 1); eq(n, 2); eq(q:size(), 2)
    q:stop(); q:run(); q:clear()
  end)

  it("counts each attempt in the call that saw it end", function()
    local q, ch = crew(), queue.channel()
    q:push(function() ch:receive() end); q:push(noop); q:push(function() queue.sleep(5) end)
    eq(q:poll(), 1); queue.sleep(8); eq(q:poll(), 1); ch:try_send(1); eq(q:run(), 1); G.fine(q)
  end)
end)

describe("next_due", function()
  it("is the time of the next sleeper, time limit, delay or timer", function()
    local q = crew(); eq(q:next_due(), nil)
    q:push(function() queue.channel():receive() end); q:poll(); eq(q:next_due(), math.huge)
    q:push(function() queue.sleep(1e6) end); q:poll(); H.between(q:next_due(), 9e5, 1e6)
    q:push(function() queue.channel():receive(1e5) end); q:poll(); H.between(q:next_due(), 9e4, 1e5)
    q:push(noop, { delay_ms = 1e4 }); H.between(q:next_due(), 9e3, 1e4)
    local t = queue.after(1e3); q:push(function() t:receive() end); q:poll(); H.between(q:next_due(), 1, 1e3)
    local u = queue.tick(500); q:push(function() queue.select{ u, false } end); q:poll(); H.between(q:next_due(), 0, 500)
    q:push(noop); eq(q:next_due(), 0)
  end)

  it("is 0 once a timer has fed a job, and where its wait is over", function()
    local q, t = crew(), queue.after(3)
    q:push(function() t:receive() end); q:push(function() queue.sleep(3) end)
    q:poll(); queue.sleep(6); eq(q:next_due(), 0); ok(H.wait_for(1000, function() q:poll(); return q:in_flight() == 0 end))
    G.fine(q)
  end)

  it("does not count what is ready while no slot is free", function()
    local q = crew(2)
    q:push(function() queue.sleep(1e5) end); q:push(function() queue.channel():receive() end); q:push(noop)
    q:poll(); eq(q:size(), 1); H.between(q:next_due(), 9e4, 1e5)
  end)

  it("of a stopped queue is that of what is in flight, then nil", function()
    local q = crew(2)
    q:push(function() queue.sleep(1e5) end); q:poll(); q:push(noop); q:stop()
    H.between(q:next_due(), 9e4, 1e5)
    local p, ch = crew(), queue.channel()
    p:push(function() ch:receive() end); p:poll(); p:push(noop, { delay_ms = 5 }); p:stop()
    eq(p:next_due(), math.huge); ch:close(); eq(p:next_due(), 0); eq(p:poll(), 1); eq(p:next_due(), nil); eq(p:size(), 1)
  end)
end)

describe("the bound on what is in flight", function()
  for _, n in ipairs{ 2, 3, 7, 2 ^ 40, math.huge } do
    it("is kept: " .. n, function()
      local q, now, top = crew(n), 0, 0
      for i = 1, 20 do
        q:push(function() now = now + 1; top = math.max(top, now); eq(q:in_flight(), now); queue.sleep(i % 3); now = now - 1 end)
      end
      eq(G.run(q), 20); eq(top, math.min(n, 20)); eq(now, 0)
    end)
  end

  it("an integral float is an integer", function() eq(G.run((crew(2.0))), 0) end)

  it("is kept over retries and failures", function()
    local q, now, top = queue.new{ concurrency = 3, on_error = noop }, 0, 0
    for i = 1, 12 do
      q:push(function()
        now = now + 1; top = math.max(top, now); queue.sleep(1); now = now - 1
        if i % 2 == 0 then error("x") end
      end, { retries = 2 })
    end
    eq(q:run(), 24); eq(top, 3); eq(H.conserved(q).failed, 6)
  end)

  it("leaves the capacity to pending jobs alone", function()
    local q = queue.new{ concurrency = 2, capacity = 1 }
    local refused = 0
    q:push(function() queue.sleep(1) end); q:poll(); ok(q:push(noop))
    eq(select(2, q:push(noop)), "queue is full"); refused = refused + 1
    eq(q:run(), 2); H.conserved(q, { refused = refused })
  end)
end)

describe("retries, deadlines and on_error", function()
  it("a job that waited and raised is tried again, at the back of its priority, on_error hears the last", function()
    local q, seen = crew(2)
    local l = {}
    q:push(function() queue.sleep(1); l[#l + 1] = "x"; error("no") end, { retries = 2, id = "x" })
    for i = 1, 3 do q:push(function() l[#l + 1] = i; queue.sleep(3) end) end
    eq(q:run(), 6); eq(#seen, 1); eq(seen[1].info.attempts, 3); eq(seen[1].info.retries, 2); has(seen[1].msg, ": no")
    eq(table.concat(l, " "):match("^1 x"), "1 x"); local m = H.conserved(q); eq(m.retried, 2); eq(m.succeeded, 3)
  end)

  it("a retry waits out its backoff while others go on, and the function hears attempts and error", function()
    local q, heard, l = crew(), {}, {}
    local a = 0
    q:push(function() a = a + 1; queue.sleep(1); if a < 3 then error({ a }) end l[#l + 1] = "done" end, {
      retries = 5, backoff_ms = function(n, err) heard[#heard + 1] = n .. ":" .. err[1]; return 10 end })
    q:push(function() queue.sleep(5); l[#l + 1] = "other" end)
    H.between(H.timed(function() eq(G.run(q), 4) end), 20, H.patience(2000))
    list(heard, "1:1 2:2"); list(l, "other done")
  end)

  it("backoff_ms that raises or is no duration fails the job", function()
    for _, fn in ipairs{ function() error("bad") end, function() return "x" end, function() return 0 / 0 end } do
      local q, seen = crew()
      q:push(function() queue.sleep(0); error("mine", 0) end, { retries = 3, backoff_ms = fn })
      eq(q:run(), 1); has(seen[1].msg, "backoff_ms failed: "); eq(seen[1].info.error, "mine")
    end
  end)

  it("backoff_ms that says nil gives up", function()
    local q, seen = crew()
    q:push(function() queue.sleep(0); error("mine", 0) end, { retries = 3, backoff_ms = function() return nil end })
    eq(q:run(), 1); eq(seen[1].msg, "mine"); eq(seen[1].info.attempts, 1)
  end)

  it("whatever was thrown is in info.error, and msg is a string", function()
    local object = setmetatable({}, { __tostring = function() return "an object" end })
    for _, thrown in ipairs{ object, {}, 42, false, "text", print } do
      local q, seen = crew(2)
      q:push(function() queue.sleep(0); error(thrown, 0) end); eq(q:run(), 1)
      eq(seen[1].info.error, thrown); eq(type(seen[1].msg), "string")
      if thrown == object then eq(seen[1].msg, "an object") end
    end
    local q, seen = crew(2); q:push(function() queue.sleep(0); error(nil) end); eq(q:run(), 1)
    eq(seen[1].info.error, nil); eq(type(seen[1].msg), "string")
  end)

  it("the traceback is the job's own, also after a wait, also deep", function()
    local q, seen = crew()
    local function deepest() queue.sleep(1); error("deep") end
    local function deeper() deepest(); noop() end
    q:push(function() deeper(); noop() end); q:push(function() error("at once") end); q:run()
    for _, s in ipairs(seen) do
      local trace = s.info.traceback
      eq(type(trace), "string"); has(trace, "concurrent_spec.lua:"); ok(not trace:find("front.lua"), trace)
      ok(not trace:find("busted"), "the traceback is that of the pump: " .. trace)
    end
    has(seen[2].info.traceback, "deepest"); has(seen[2].info.traceback, "deeper"); has(seen[2].msg, ": deep")
  end)

  it("a job that fails leaves the next untouched, and its slot free", function()
    local q, seen = crew(2)
    local n = 0
    for i = 1, 50 do q:push(function() queue.sleep(0); n = n + 1; if i % 2 == 0 then error("x") end end) end
    eq(q:run(), 50); eq(n, 50); eq(#seen, 25); eq(q:in_flight(), 0); H.conserved(q)
  end)

  it("a start deadline is looked at when a slot is free, and cuts no wait short", function()
    local q, seen = crew(2)
    for _ = 1, 2 do q:push(function() queue.sleep(30) end, { timeout_ms = 10 }) end
    q:push(noop, { timeout_ms = 10, id = "late" }); q:push(noop, { timeout_ms = 1e6, id = "in time" })
    q:poll(); queue.sleep(15); q:poll()
    eq(q:size(), 2, "it is pending until its turn has come"); eq(q:metrics().expired, 0); eq(#seen, 0)
    eq(q:run(), 3); eq(#seen, 1); eq(seen[1].id, "late"); eq(seen[1].msg, 'job "late" expired before it ran')
    eq(seen[1].info.expired, true); eq(seen[1].info.attempts, 0); eq(H.conserved(q).expired, 1)
  end)

  it("on_error and backoff_ms block the thread where they wait", function()
    local l = {}
    local q = queue.new{ concurrency = 3, on_error = function() queue.sleep(15); l[#l + 1] = "on_error" end }
    q:push(function() queue.sleep(5); l[#l + 1] = "sleeper" end)
    q:push(function() queue.sleep(0); error("x") end)
    eq(q:run(), 2); list(l, "on_error sleeper")
    l = {}
    q:push(function() queue.sleep(5); l[#l + 1] = "sleeper" end)
    local function backoff() queue.sleep(15); l[#l + 1] = "backoff"; return false end
    q:push(function() queue.sleep(0); error("x") end, { retries = 1, backoff_ms = backoff })
    eq(q:run(), 2); list(l, "backoff on_error sleeper")
  end)

  it("a wait without end in a callback raises there, whoever might have sent", function()
    local ch, done, err = queue.channel(), nil, nil
    local q = queue.new{ concurrency = 3, on_error = function() done, err = pcall(ch.receive, ch) end }
    q:push(function() queue.sleep(2); ch:try_send(1) end); q:push(function() error("x") end)
    eq(q:run(), 2); eq(done, false); has(err, "deadlock: receive on channel(0/0) can never complete")
  end)

  it("on_error may push, stop and clear while others are parked", function()
    local q, l
    q = queue.new{ concurrency = 5, on_error = function(_, info)
      if info.id == "pusher" then q:push(function() l[#l + 1] = "pushed" end)
      elseif info.id == "clearer" then add(l, "cleared " .. q:clear())
      else q:stop() end
    end }
    l = {}
    q:push(function() queue.sleep(3); l[#l + 1] = "parked" end)
    q:push(function() error("x") end, { id = "pusher" }); q:push(function() queue.sleep(1); error("x") end, { id = "clearer" })
    q:push(function() queue.sleep(2); error("x") end, { id = "stopper" })
    q:push(noop, { delay_ms = 1e6 })
    q:run(); list(l, "pushed cleared 1 parked"); eq(q:is_stopped(), true); H.conserved(q, { cleared = 1 })
  end)
end)

describe("stop, clear and metrics", function()
  it("stop lets what is in flight finish and starts nothing more", function()
    local q, l = crew(2), {}
    q:push(function() queue.sleep(5); l[#l + 1] = "slow"; queue.sleep(1); l[#l + 1] = "slower" end)
    q:push(function() q:stop() end); q:push(function() l[#l + 1] = "never" end)
    eq(q:run(), 2); list(l, "slow slower"); eq(q:size(), 1); eq(q:run(), 0)
    eq(select(2, q:push(noop)), "queue is stopped"); H.conserved(q, { refused = 1 })
  end)

  it("a job in flight that raises after the stop has failed and is not retried", function()
    local q, seen = crew(2)
    q:push(function() queue.sleep(3); error("x") end, { retries = 5 }); q:push(function() q:stop() end)
    eq(q:run(), 2); eq(#seen, 1); eq(seen[1].info.attempts, 1); eq(H.conserved(q).retried, 0)
  end)

  it("a parked retry stays after a stop, and is counted", function()
    local q = crew(2)
    q:push(function() queue.sleep(0); error("x") end, { retries = 1, backoff_ms = 1 })
    q:poll(); q:poll(); q:stop(); q:run()
    local m = H.conserved(q); eq(m.pending, 1); eq(m.retried, 1); eq(m.failed, 0)
  end)

  it("run returns once stopped though another thread of work waits for ever outside", function()
    local q, ch = crew(2), queue.channel(1)
    q:push(function() ch:send(1); queue.sleep(1); q:stop() end); eq(G.run(q), 1)
  end)

  it("clear drops what is pending and leaves what is parked", function()
    local q, done = crew(2), 0
    for _ = 1, 5 do q:push(function() queue.sleep(2); done = done + 1 end) end
    q:poll(); eq(q:in_flight(), 2); eq(q:clear(), 3); eq(q:in_flight(), 2); H.conserved(q, { cleared = 3 })
    eq(q:run(), 2); eq(done, 2); H.conserved(q, { cleared = 3 })
  end)

  it("in_flight is the started ones, size the pending", function()
    local q, ch = crew(3), queue.channel()
    for _ = 1, 5 do q:push(function() ch:receive() end) end
    eq(q:in_flight(), 0); q:poll(); local m = H.conserved(q)
    eq(m.in_flight, 3); eq(q:in_flight(), 3); eq(m.pending, 2); eq(#q, 2); eq(q:empty(), false)
    eq(tostring(q), "queue(pending=2)"); ch:close(); eq(q:run(), 5); H.conserved(q)
  end)

  it("the time of an attempt includes its waits, and waiting for a slot is a wait", function()
    local q = crew(2)
    for _ = 1, 3 do q:push(function() queue.sleep(15) end) end
    G.run(q)
    local m = q:metrics(); H.between(m.max_exec_ms, 15, H.patience(1000)); H.between(m.max_wait_ms, 15, H.patience(1000))
    H.between(m.avg_exec_ms, 15, H.patience(1000))
  end)

  it("nothing is lost, whatever happens", function()
    for seed = 1, H.count(60) do
      math.randomseed(seed)
      local r, ch = math.random, queue.channel(2)
      local q = queue.new{ concurrency = r(2, 5), capacity = r(10, 40), on_error = noop }
      local lost = { refused = 0, cleared = 0 }
      local function job()
        local x = r(8)
        if x == 1 then queue.sleep(r() / 2) elseif x == 2 then ch:send(1, 0.3) elseif x == 3 then ch:receive(0.3)
        elseif x == 4 then error("x") elseif x == 5 then queue.sleep(0); error("y")
        elseif x == 6 then queue.select({ ch, { ch, 1 } }, 0.2) elseif x == 7 then queue.sleep(0); queue.sleep(0)
        elseif not q:push(noop) then lost.refused = lost.refused + 1 end
        H.conserved(q, lost)
      end
      for _ = 1, 60 do
        local x = r(10)
        if x < 7 then
          local id = q:push(job, { retries = r(0, 2), delay_ms = r(0, 1), timeout_ms = r(0, 2), priority = r(3), backoff_ms = r(0, 1) })
          if not id then lost.refused = lost.refused + 1 end
        elseif x < 10 then q:poll(r(0, 3)) else lost.cleared = lost.cleared + q:clear() end
        H.conserved(q, lost)
      end
      if seed % 3 == 0 then q:stop() end
      q:run(); eq(H.conserved(q, lost).in_flight, 0)
    end
  end)
end)

describe("a run inside a job", function()
  it("at concurrency 1 drains the rest of its own queue, and does not wait for its own job", function()
    local q, l = queue.new{ concurrency = 1 }, {}
    local inner
    q:push(function() l[#l + 1] = "a"; inner = q:run(); l[#l + 1] = "z" end)
    for i = 1, 3 do q:push(function() l[#l + 1] = i end) end
    eq(q:run(), 1); eq(inner, 3); list(l, "a 1 2 3 z")
    q:push(function() l = {}; inner = q:poll(1) end); q:push(noop); q:push(noop)
    eq(q:run(), 2); eq(inner, 1); H.conserved(q)
  end)

  --- Above 1, each way in raises where another is inside.
  local function refused(title, enter)
    it("above 1 of its own queue raises: " .. title, function()
      local q, seen = crew(2)
      q:push(function() enter(q) end); q:push(noop)
      eq(q:run(), 2); eq(#seen, 1); has(seen[1].msg, "queue is already running"); eq(H.conserved(q).succeeded, 1)
      G.at(enter, seen[1].msg, "queue is already running")
      q:push(noop); eq(q:run(), 1)
    end)
  end
  refused("run", function(q) q:run() end)
  refused("poll", function(q) q:poll() end)
  refused("poll of one", function(q) q:poll(1) end)

  it("above 1 from a callback, or from under a poll, raises too", function()
    local said = {}
    local q
    q = queue.new{ concurrency = 2, on_error = function() said[#said + 1] = select(2, pcall(q.run, q)) end }
    q:push(function() error("x") end); q:run(); q:push(function() error("x") end); q:poll()
    eq(#said, 2); has(said[1], "queue is already running"); has(said[2], "queue is already running")
  end)

  not51("of another queue waits as that job, three deep", function()
    local a, b, c, l = crew(), crew(), crew(), {}
    c:push(function() queue.sleep(4); l[#l + 1] = "c" end)
    b:push(function() eq(c:run(), 1); l[#l + 1] = "b" end); b:push(function() queue.sleep(2); l[#l + 1] = "b2" end)
    a:push(function() eq(b:run(), 2); l[#l + 1] = "a" end); a:push(function() queue.sleep(1); l[#l + 1] = "a2" end)
    eq(G.run(a), 2); G.fine(b); G.fine(c); list(l, "a2 b2 c b a")
  end)

  not51("gets its values from jobs of the outer one", function()
    for _, n in ipairs{ 1, 4 } do
      local outer, inner, ch, got = crew(), crew(n), queue.channel(), {}
      for _ = 1, 3 do inner:push(function() add(got, ch:receive()) end) end
      outer:push(function() eq(inner:run(), 3) end)
      outer:push(function() for i = 1, 3 do ch:send(i) end end)
      G.run(outer); G.fine(inner); list(got, "1 2 3", "concurrency " .. n)
    end
  end)

  not51("goes on when an outer job pushes to it", function()
    local outer, inner, l = crew(), crew(2), {}
    inner:push(function() queue.sleep(10); l[#l + 1] = "first" end)
    outer:push(function() eq(inner:run(), 2) end)
    outer:push(function() queue.sleep(1); inner:push(function() l[#l + 1] = "pushed" end) end)
    G.run(outer); G.fine(inner); list(l, "pushed first")
  end)

  it("at concurrency 1 goes on when an outer job pushes while it waits out a delay", function()
    local outer, inner, l = crew(), queue.new(), {}
    inner:push(function() l[#l + 1] = "delayed" end, { delay_ms = 20 })
    outer:push(function() eq(inner:run(), 2) end)
    outer:push(function() queue.sleep(1); inner:push(function() l[#l + 1] = "pushed" end) end)
    G.run(outer); list(l, "pushed delayed")
  end)

  not51("of one queue in two jobs: at 1 they share the work, above 1 the second is refused", function()
    local outer, inner, ends, n = crew(), queue.new(), {}, 0
    for _ = 1, 6 do inner:push(function() queue.sleep(1); n = n + 1 end) end
    for i = 1, 2 do outer:push(function() ends[i] = inner:run() end) end
    G.run(outer); eq(n, 6); eq(ends[1] + ends[2], 6); ok(ends[1] > 0 and ends[2] > 0); H.conserved(inner)

    local two, seen = crew()
    local shared = crew(2); shared:push(function() queue.sleep(1) end)
    for _ = 1, 2 do two:push(function() shared:run() end) end
    eq(two:run(), 2); eq(#seen, 1); has(seen[1].msg, "queue is already running"); G.fine(shared)
  end)

  it("may be a poll, which takes one turn and parks nobody", function()
    local outer, inner, l = crew(), crew(), {}
    inner:push(function() queue.sleep(2); l[#l + 1] = "inner" end)
    outer:push(function() eq(inner:poll(), 0); l[#l + 1] = "polled"; queue.sleep(4); eq(inner:poll(), 1) end)
    outer:push(function() l[#l + 1] = "other" end)
    G.run(outer); G.fine(inner); list(l, "polled other inner")
  end)

  not51("is ended by a stop from outside it", function()
    local outer, inner = crew(), crew()
    inner:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(inner:run(), 0) end)
    outer:push(function() queue.sleep(1); inner:stop() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000)); eq(inner:size(), 1)
    local plain = queue.new(); plain:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(plain:run(), 0) end)
    outer:push(function() queue.sleep(1); plain:stop() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000))
  end)

  it("is ended by a clear from outside it", function()
    local outer, inner = crew(), crew(1)
    inner:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(inner:run(), 0) end)
    outer:push(function() queue.sleep(1); inner:clear() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000))
  end)
end)

describe("a yield with values", function()
  not51("goes to who resumed the run, and what comes back goes to the job; the queue waits", function()
    local q, l = crew(2), {}
    q:push(function() l[#l + 1] = "a"; local back = H.pack(yield("out", nil, 3)); H.results(back, "in", nil); l[#l + 1] = "a2" end)
    q:push(function() l[#l + 1] = "b" end)
    local co = coroutine.create(function() return "ran", q:run() end)
    H.results(H.pack(coroutine.resume(co)), true, "out", nil, 3); list(l, "a"); eq(q:in_flight(), 1); eq(q:size(), 1); H.conserved(q)
    H.results(H.pack(coroutine.resume(co, "in", nil)), true, "ran", 2); list(l, "a a2 b"); G.fine(q)
  end)

  not51("may be one nil or false", function()
    local q = crew(2)
    q:push(function() H.results(H.pack(yield(nil)), 1); H.results(H.pack(yield(false))) end)
    local co = coroutine.create(function() return q:run() end)
    H.results(H.pack(coroutine.resume(co)), true, nil); H.results(H.pack(coroutine.resume(co, 1)), true, false)
    H.results(H.pack(coroutine.resume(co)), true, 1); G.fine(q)
  end)

  not51("of many jobs and many times, mixed with waits", function()
    local q, sum = crew(5), 0
    for i = 1, 20 do
      q:push(function() for j = 1, 5 do queue.sleep(0); eq(yield(i * j), -i * j); sum = sum + 1; queue.sleep(j % 2 / 10) end end)
    end
    local co, back, n = coroutine.create(function() return "done", q:run() end), nil, 0
    while true do
      local r = H.pack(coroutine.resume(co, back)); eq(r[1], true, tostring(r[2]))
      if r[2] == "done" then eq(r[3], 20); break end
      back, n = -r[2], n + 1
    end
    eq(n, 100); eq(sum, 100); G.fine(q)
  end)

  not51("under poll too", function()
    local q = crew(2); q:push(function() eq(yield("out"), "in") end)
    local co = coroutine.create(function() return "polled", q:poll() end)
    H.results(H.pack(coroutine.resume(co)), true, "out"); H.results(H.pack(coroutine.resume(co, "in")), true, "polled", 1); G.fine(q)
  end)

  not51("goes through the runs of other queues, to the outermost", function()
    for _, n in ipairs{ 1, 3 } do
      local outer, inner = crew(2), crew(n)
      inner:push(function() eq(yield("deep"), "answer") end)
      outer:push(function() eq(inner:run(), 1) end); outer:push(function() queue.sleep(1) end)
      local co = coroutine.create(function() return "done", outer:run() end)
      H.results(H.pack(coroutine.resume(co)), true, "deep"); H.results(H.pack(coroutine.resume(co, "answer")), true, "done", 2)
      G.fine(inner); G.fine(outer)
    end
  end)

  not51("keeps the queue running: another run or poll is refused meanwhile", function()
    local q = crew(2); q:push(function() yield("out") end); q:push(noop)
    local co = coroutine.create(function() return q:run() end); coroutine.resume(co)
    local run = function() q:run() end
    local poll = function() q:poll() end
    H.raises("queue is already running", run); H.raises("queue is already running", poll)
    H.results(H.pack(coroutine.resume(co)), true, 2); G.fine(q)
  end)

  not51("of a run that nobody resumes again does no harm: what is pending stays, and the queue is collected", function()
    local q = crew(2)
    do
      q:push(function() yield("out") end); q:push(noop)
      local co = coroutine.create(function() q:run() end); coroutine.resume(co)
    end
    H.collect(); H.collect()
    H.conserved(q); eq(q:size(), 1)
    local weak = setmetatable({ q }, { __mode = "v" })
    q = nil; H.collect(); H.collect(); eq(weak[1], nil)
  end)

  it("where run is in no coroutine fails that job, with the interpreter's own error", function()
    local q, seen = crew(2)
    local ran
    q:push(function() yield("out") end, { id = "bad", retries = 0 }); q:push(function() queue.sleep(1); ran = true end)
    eq(G.unyieldable(function() return q:run() end), 2)
    eq(#seen, 1); eq(seen[1].id, "bad"); has(seen[1].msg, "yield"); eq(ran, true); H.conserved(q)
    q:push(noop); eq(q:run(), 1)
  end)

  it("where run is in no coroutine is an attempt like any other: it is retried", function()
    local q, seen = crew(2)
    q:push(function() yield("out") end, { retries = 2 }); eq(G.unyieldable(function() return q:run() end), 3)
    eq(seen[1].info.attempts, 3)
  end)

  not51("that comes back as an error of the host's does not come back at all", function()
    local q = crew(2); local held = {}
    q:push(function() held[1] = true; yield("out"); held[2] = true end)
    local co = coroutine.create(function() q:run() end); coroutine.resume(co)
    if coroutine.close then coroutine.close(co); eq(held[2], nil) end
  end)
end)

describe("a dead end among jobs", function()
  --- Each wait, alone in a queue, fails at its own line; run neither hangs nor raises.
  local function dead(title, text, fn)
    it("fails the job at its own line: " .. title, function()
      local q, seen = crew()
      q:push(fn); eq(q:run(), 1); eq(#seen, 1); G.at(fn, seen[1].msg, "deadlock: " .. text .. " can never complete")
      eq(seen[1].info.error, seen[1].msg); has(seen[1].info.traceback, "concurrent_spec.lua"); eq(H.conserved(q).failed, 1)
    end)
  end
  dead("receive", "receive on channel(0/1)", function() queue.channel(1):receive() end)
  dead("receive for ever", "receive on channel(0/0)", function() queue.channel():receive(math.huge) end)
  dead("send", "send on channel(0/0)", function() queue.channel():send(1) end)
  dead("send to a full one", "send on channel(1/1)", function() local c = queue.channel(1); c:send(1); c:send(2) end)
  dead("send for ever", "send on channel(0/0)", function() queue.channel():send(1, math.huge) end)
  dead("select", "select", function() queue.select{ queue.channel(), { queue.channel(), 1 }, false } end)
  dead("select of nothing", "select", function() queue.select({}, math.huge) end)
  dead("sleep", "sleep", function() queue.sleep(math.huge) end)
  dead("a timer that never fires", "receive on channel(0/1)", function() queue.after(math.huge):receive() end)
  dead("a ticker that never ticks", "receive on channel(0/1)", function() queue.tick(math.huge):receive() end)
  dead("run", "run", function() local p = queue.new(); p:push(noop, { delay_ms = math.huge }); p:run() end)
  dead("run of many", "run", function() local p = crew(2); p:push(noop, { delay_ms = math.huge }); p:run() end)
  not51("fails the job at its own line: iter", function()
    local q, seen = crew(); local ch = queue.channel()
    local fn = function() for _ in ch:iter() do noop() end end
    q:push(fn); eq(q:run(), 1); G.at(fn, seen[1].msg, "deadlock: receive on channel(0/0) can never complete")
  end)

  it("accuses the one that has waited longest, then the next", function()
    local q, seen = crew(); local ch = queue.channel()
    q:push(function() queue.sleep(2); ch:receive() end, { id = "b" }); q:push(function() ch:receive() end, { id = "a" })
    q:push(function() queue.sleep(4); ch:receive() end, { id = "c" })
    eq(q:run(), 3); eq(#seen, 3); eq(seen[1].id .. seen[2].id .. seen[3].id, "abc")
  end)

  not51("can be caught, and then the others go on", function()
    local q, a, b, l = crew(), queue.channel(), queue.channel(), {}
    q:push(function() local done, err = pcall(a.receive, a); eq(done, false); has(err, "deadlock"); l[#l + 1] = "caught"; b:send("v") end)
    q:push(function() add(l, b:receive()) end)
    eq(G.run(q), 2); list(l, "caught v")
  end)

  not51("that is caught and entered again is caught again", function()
    local q, n = crew(), 0
    local ch = queue.channel()
    q:push(function() for _ = 1, 100 do if not pcall(ch.receive, ch) then n = n + 1 end end end)
    G.run(q); eq(n, 100)
  end)

  it("is an error like any other: retries apply", function()
    local q, seen = crew(); local n, ch = 0, queue.channel()
    q:push(function() n = n + 1; ch:receive() end, { retries = 3 }); eq(q:run(), 4); eq(n, 4); eq(seen[1].info.attempts, 4)
    local m, a = 0, queue.channel(1)
    q:push(function() m = m + 1; if m == 2 then a:send(1) end a:receive() end, { retries = 3 }); eq(q:run(), 2); eq(m, 2)
  end)

  it("of the longest waiting lets the rest go on where its end wakes them", function()
    local q, seen = queue.new{ concurrency = 5 }, nil
    local ch, other = queue.channel(), queue.channel()
    q = queue.new{ concurrency = 5, on_error = function(_, info) seen = info.id; ch:close() end }
    q:push(function() other:receive() end, { id = "accused" }); local n = 0
    for _ = 1, 3 do q:push(function() eq(select(2, ch:receive()), false); n = n + 1 end) end
    eq(q:run(), 4); eq(seen, "accused"); eq(n, 3); eq(q:metrics().failed, 1)
  end)

  it("leaves the channel as if nobody had waited", function()
    local q, a, b = crew(), queue.channel(), queue.channel(1)
    b:send("kept")
    q:push(function() a:receive() end); q:push(function() a:receive() end); q:push(function() b:send("lost") end)
    q:push(function() queue.select{ a, { b, "lost" } } end); eq(q:run(), 4)
    eq(select(2, a:try_send(1)), "full"); eq((b:receive()), "kept"); eq(b:len(), 0)
  end)

  describe("is none where", function()
    --- `feed` is what keeps the others from being accused.
    local function none(title, fn) it(title, fn) end
    none("a job that could feed it is due later", function()
      local q, ch, v = crew(), queue.channel(), nil
      q:push(function() v = ch:receive() end); q:push(function() ch:send("late") end, { delay_ms = 15 })
      eq(G.run(q), 2); eq(v, "late")
    end)
    none("a retry that could feed it is due later", function()
      local q, ch, n = crew(), queue.channel(), 0
      q:push(function() ch:receive() end)
      q:push(function() n = n + 1; if n == 1 then error("x") end ch:send(1) end, { retries = 1, backoff_ms = 10 }); eq(G.run(q), 3)
    end)
    none("another sleeps, or has a time limit", function()
      local ch = queue.channel()
      G.jobs(function() ch:receive() end, function() queue.sleep(10); ch:send(1) end)
      G.jobs(function() ch:receive() end, function() queue.channel():receive(10); ch:send(1) end)
      G.jobs(function() ch:receive() end, function() queue.select({}, 10); ch:send(1) end)
    end)
    none("another waits on a timer", function()
      local ch, t, u = queue.channel(), queue.after(10), queue.tick(10)
      G.jobs(function() ch:receive() end, function() t:receive(); ch:send(1) end)
      G.jobs(function() ch:receive() end, function() queue.select{ false, u }; ch:send(1) end)
      u:stop()
    end)
    none("the accused of a full crew makes room for who feeds the rest", function()
      local q, seen = crew(2); local ch, l = queue.channel(), {}
      for i = 1, 2 do q:push(function() ch:receive(); l[#l + 1] = i end, { id = "w" .. i }) end
      q:push(function() ch:send(1) end)
      eq(q:run(), 3); eq(#seen, 1); eq(seen[1].id, "w1"); list(l, "2")
    end)
    none("a timer is stopped by another: that closes it", function()
      local t = queue.after(1e6)
      G.jobs(function() eq(select(3, t:receive()), "closed") end, function() queue.sleep(2); t:stop() end)
    end)
  end)

  it("is one once the only timer has fired for someone else", function()
    local q, seen = crew(); local t = queue.after(5)
    local ch = queue.channel()
    q:push(function() queue.sleep(1); ch:receive() end, { id = "x" }); q:push(function() t:receive() end)
    eq(q:run(), 2); eq(#seen, 1); eq(seen[1].id, "x")
  end)

  it("is one in a stopped queue though a job is pending", function()
    local q, seen = crew(2); local ch = queue.channel()
    q:push(function() ch:receive() end); q:push(function() q:stop() end); q:push(function() ch:send(1) end)
    eq(q:run(), 2); eq(#seen, 1); has(seen[1].msg, "deadlock: receive"); eq(q:size(), 1)
  end)

  it("is one where what is pending is due at math.huge, and run raises when nothing else is left", function()
    local q, seen = crew(2); local ch = queue.channel()
    q:push(function() ch:receive() end); q:push(function() ch:send(1) end, { delay_ms = math.huge })
    local run = function() q:run() end
    H.raises("deadlock: run can never complete", run); eq(#seen, 1); has(seen[1].msg, "deadlock: receive")
    eq(q:size(), 1); eq(q:in_flight(), 0); H.conserved(q)
    q:push(noop); H.raises("deadlock: run", run); eq(q:metrics().succeeded, 1)
  end)

  it("is not judged by poll", function()
    local q, seen = crew(); local ch = queue.channel()
    q:push(function() ch:receive() end)
    for _ = 1, 5 do eq(q:poll(), 0) end
    eq(#seen, 0); eq(q:in_flight(), 1); eq(q:next_due(), math.huge)
    q:push(noop, { delay_ms = math.huge }); eq(q:poll(), 0); ch:try_send(1); eq(q:poll(), 1); G.fine(q)
  end)

  not51("of a job in another queue's run accuses that job, not the one that runs the queue", function()
    for _, n in ipairs{ 1, 4 } do
      local outer, outer_seen = crew()
      local inner, seen = crew(n)
      local ch, l = queue.channel(), {}
      inner:push(function() ch:receive() end, { id = "inner" })
      outer:push(function() inner:run(); l[#l + 1] = "inner is over" end); outer:push(function() ch:receive() end, { id = "later" })
      eq(outer:run(), 2)
      eq(#seen, 1, "concurrency " .. n); eq(seen[1].id, "inner"); list(l, "inner is over")
      eq(#outer_seen, 1); eq(outer_seen[1].id, "later")
    end
  end)

  not51("of a job inside another queue is none while an outer job can feed it", function()
    local outer, inner, ch = crew(), crew(), queue.channel()
    inner:push(function() eq((ch:receive()), "v") end); inner:push(function() eq((ch:receive()), "w") end)
    outer:push(function() inner:run() end); outer:push(function() queue.sleep(5); ch:send("v") end)
    outer:push(function() ch:send("w") end, { delay_ms = 10 })
    G.run(outer); G.fine(inner)
  end)

  not51("of a job outside is none while a job inside another queue is due", function()
    local outer, inner, ch = crew(), crew(), queue.channel()
    inner:push(function() ch:send("v") end, { delay_ms = 10 })
    outer:push(function() eq((ch:receive()), "v") end); outer:push(function() inner:run() end)
    G.run(outer); G.fine(inner)
  end)

  not51("accuses the longest of all, wherever it waits", function()
    local order = {}
    local function watched() return queue.new{ concurrency = 5, on_error = function(_, info) order[#order + 1] = info.id end } end
    local outer, inner, ch = watched(), watched(), queue.channel()
    outer:push(function() queue.sleep(2); ch:receive() end, { id = "2" }); outer:push(function() inner:run() end)
    inner:push(function() ch:receive() end, { id = "1" }); inner:push(function() queue.sleep(4); ch:receive() end, { id = "3" })
    eq(outer:run(), 2); list(order, "1 2 3")
  end)

  not51("is one inside a queue that was stopped, though a job of it is due, and inside one that is full", function()
    for kind = 1, 2 do
      local outer, inner, ch, l = crew(), nil, queue.channel(), {}
      inner = queue.new{ concurrency = 2, on_error = function(_, info) add(l, info.id) end }
      inner:push(function() ch:receive() end, { id = "first" })
      if kind == 1 then inner:push(noop, { delay_ms = 1e6 }); outer:push(function() queue.sleep(1); inner:stop() end)
      else inner:push(function() ch:receive() end, { id = "second" }); inner:push(function() ch:send(1) end) end
      outer:push(function() inner:run(); add(l, "over") end)
      H.between(H.timed(function() G.run(outer) end), 0, H.patience(3000)); list(l, "first over", "kind " .. kind)
    end
  end)

  not51("of a job of a plain queue that two jobs run accuses that job, once the rest is done", function()
    local outer, l, ch = crew(), {}, queue.channel()
    local inner = queue.new{ on_error = function(msg) has(msg, "deadlock: receive"); add(l, "accused") end }
    inner:push(function() ch:receive() end); inner:push(function() add(l, "later") end, { delay_ms = 10 })
    for _ = 1, 2 do outer:push(function() inner:run() end) end
    G.run(outer); list(l, "later accused"); H.conserved(inner)
  end)

  it("is not seen where a queue that nobody runs holds the job that could help", function()
    local q, seen = crew(); local other, ch = queue.new(), queue.channel()
    other:push(function() ch:send(1) end)
    q:push(function() ch:receive() end); eq(q:run(), 1); eq(#seen, 1); eq(other:size(), 1)
  end)

  it("passes through a hundred jobs quickly", function()
    local q, seen = crew(); local ch, n = queue.channel(), H.count(1000)
    for _ = 1, n do q:push(function() ch:receive() end) end
    H.between(H.timed(function() eq(q:run(), n) end), 0, H.patience(3000)); eq(#seen, n)
  end)
end)

describe("a wait that blocks the thread", function()
  --- `blocking` waits 10 ms where it cannot park its job, so that the other job stands still.
  local function blocks(title, blocking)
    it("in a job: " .. title, function()
      local q, seen = crew(); local l = {}
      q:push(function() blocking(function() queue.sleep(10) end); l[#l + 1] = "blocked" end)
      q:push(function() l[#l + 1] = "other" end)
      eq(q:run(), 2)
      if #seen > 0 and H.lua51 then has(seen[1].msg, "attempt to yield"); return pending("stock 5.1 raises its own error there") end
      G.fine(q); list(l, "blocked other")
      if H.lua51 then return end
      local told
      q:push(function() blocking(function() told = select(2, pcall(queue.select, {})) end) end); q:push(function() queue.sleep(5) end)
      G.run(q); has(told, "deadlock: select")
    end)
  end
  blocks("in a coroutine of the job's own making", function(wait) wrap(wait)() end)
  blocks("in a coroutine in a coroutine", function(wait) wrap(function() wrap(wait)() end)() end)
  blocks("in a table.sort callback", function(wait)
    local once; table.sort({ 2, 1 }, function(a, b) if not once then once = true; wait() end return a < b end)
  end)
  blocks("in a gsub callback", function(wait) string.gsub("x", ".", function() wait() end) end)
  blocks("in a gsub callback in a coroutine", function(wait) wrap(function() string.gsub("x", ".", function() wait() end) end)() end)

  it("raises where it is endless, though a job could have fed it", function()
    local q, ch, done, err = crew(), queue.channel(), nil, nil
    q:push(function() local co = coroutine.create(function() ch:receive() end); done, err = coroutine.resume(co) end)
    q:push(function() queue.sleep(1); ch:try_send(1) end); G.run(q)
    eq(done, false); has(err, "deadlock: receive on channel(0/0) can never complete")
  end)

  it("is fed by a timer all the same, and leaves its job able to park again", function()
    local q, t, l = crew(), queue.after(3, "t"), {}
    q:push(function() add(l, wrap(function() return (t:receive()) end)()); queue.sleep(2); l[#l + 1] = "parked" end)
    q:push(function() l[#l + 1] = "other" end)
    G.run(q); list(l, "t other parked")
  end)

  it("a yield in a coroutine of the job's own making is that coroutine's", function()
    local q, l = crew(), {}
    q:push(function() local co = wrap(function() yield(1); yield(2) end); l[#l + 1] = co(); l[#l + 1] = co() end)
    q:push(function() l[#l + 1] = "other" end); G.run(q); list(l, "1 2 other")
  end)

  it("on stock 5.1, of a concurrent job under pcall raises the interpreter's own error", function()
    if not H.lua51 then return pending("about stock 5.1") end
    local q, seen = crew(); local err
    q:push(function() err = select(2, pcall(queue.sleep, 5)) end); q:push(function() queue.sleep(1) end)
    eq(q:run(), 2); eq(#seen, 0); has(err, "attempt to yield across")
    q:push(function() queue.sleep(1) end); eq(q:run(), 1); G.fine(q)
  end)

  not51("parks, not blocks, under pcall, an iterator, a metamethod", function()
    local q, l = crew(), {}
    local mt = { __index = function(_, k) queue.sleep(1); return k end }
    q:push(function()
      pcall(queue.sleep, 1); l[#l + 1] = setmetatable({}, mt).index
      for v in function(_, last) queue.sleep(1); if not last then return "iterator" end end do l[#l + 1] = v end
    end)
    q:push(function() l[#l + 1] = "other" end); G.run(q); list(l, "other index iterator")
  end)
end)

describe("channels among jobs", function()
  it("hand over without a buffer, in the order of the senders", function()
    local q, ch, l = crew(), queue.channel(), {}
    for i = 1, 50 do q:push(function() eq(ch:send(i), true) end) end
    q:push(function() for _ = 1, 50 do add(l, ch:receive()) end end)
    G.run(q); for i = 1, 50 do eq(l[i], i) end
  end)

  it("serve receivers in the order they came, buffered or not", function()
    for _, cap in ipairs{ 0, 1, 5 } do
      local q, ch, l = crew(), queue.channel(cap), {}
      for i = 1, 20 do q:push(function() local v = ch:receive(); l[#l + 1] = i .. ":" .. v end) end
      q:push(function() for v = 1, 20 do ch:send(v) end end)
      G.run(q); for i = 1, 20 do eq(l[i], i .. ":" .. i) end
    end
  end)

  it("let nobody overtake", function()
    local q, ch = crew(), queue.channel(1)
    q:push(function() ch:send(1); ch:send(2); ch:send(3) end); q:poll()
    eq(select(2, ch:try_send("overtaker")), "full"); eq((ch:try_receive()), 1)
    eq(select(2, ch:try_send("overtaker")), "full", "the room is the waiting sender's"); eq(ch:len(), 1)
    eq((ch:try_receive()), 2)
    q:poll(); eq((ch:try_receive()), 3); G.fine(q)
  end)

  it("let try_send succeed where a receiver waits, and then it is his", function()
    local q, ch, got = crew(), queue.channel(), nil
    eq(select(2, ch:try_send(1)), "full")
    q:push(function() got = ch:receive() end); q:poll()
    eq(ch:try_send("his"), true); eq(ch:len(), 0); eq(select(3, ch:try_receive()), "empty"); eq(select(2, ch:try_send(2)), "full")
    q:poll(); eq(got, "his"); G.fine(q)
  end)

  it("pass false, tables and functions as themselves", function()
    local ch, values = queue.channel(), { false, {}, print, 0 / 1, "", coroutine.create(noop) }
    G.jobs(function() for i = 1, 6 do ch:send(values[i]) end ch:close() end,
      function()
        for i = 1, 6 do H.results(H.pack(ch:receive()), values[i], true) end
        H.results(H.pack(ch:receive()), nil, false, "closed")
      end)
  end)

  it("closed: wake every receiver, and raise in every sender", function()
    local q, seen = crew(); local ch, n = queue.channel(), 0
    for _ = 1, 10 do q:push(function() H.results(H.pack(ch:receive()), nil, false, "closed"); n = n + 1 end) end
    q:push(function() ch:close() end); G.run(q); eq(n, 10)
    local full = queue.channel(1); full:send("kept")
    local fn = function() full:send("lost") end
    for _ = 1, 10 do q:push(fn) end
    q:push(function() full:close() end); q:run(); eq(#seen, 10)
    for _, s in ipairs(seen) do G.at(fn, s.msg, "send on closed channel") end
    eq((full:receive()), "kept"); eq(select(3, full:receive()), "closed")
  end)

  not51("are drained by iter, until closed, by many jobs, each value once", function()
    local q, ch, sum, n = crew(), queue.channel(3), 0, 0
    for _ = 1, 7 do q:push(function() for v in ch:iter() do sum = sum + v; n = n + 1; if v % 3 == 0 then queue.sleep(0) end end end) end
    q:push(function() for i = 1, 500 do ch:send(i) end ch:close() end)
    G.run(q); eq(n, 500); eq(sum, 125250)
  end)

  it("take values from outside between polls", function()
    local q, ch, l = crew(), queue.channel(2), {}
    q:push(function() while true do local v, open = ch:receive(); if not open then return end l[#l + 1] = v end end)
    for i = 1, 5 do eq(ch:try_send(i), true); q:poll() end
    ch:close(); eq(q:run(), 1); list(l, "1 2 3 4 5"); G.fine(q)
  end)
end)

describe("time limits", function()
  it("end a receive, a send, a select; values and states as outside", function()
    local ch, full = queue.channel(), queue.channel(1); full:send(1)
    local t = H.timed(function()
      G.jobs(function() H.results(H.pack(ch:receive(10)), nil, false, "timeout") end,
        function() H.results(H.pack(full:send(2, 10)), false, "timeout") end,
        function() H.results(H.pack(queue.select({ ch, { full, 2 } }, 10)), nil, "timeout") end,
        function() H.results(H.pack(ch:receive(0)), nil, false, "timeout"); H.results(H.pack(full:send(2, 0)), false, "timeout") end,
        function() H.results(H.pack(ch:receive(-5)), nil, false, "timeout") end,
        function() H.results(H.pack(queue.select({ ch }, -1)), nil, "timeout") end)
    end)
    H.between(t, 10, H.patience(2000)); eq(full:len(), 1)
    eq(select(2, ch:try_send(1)), "full"); eq(select(3, ch:try_receive()), "empty")
  end)

  it("of one leave the next value to the other", function()
    local q, ch, got = crew(), queue.channel(), nil
    q:push(function() eq(select(3, ch:receive(3)), "timeout") end); q:push(function() got = ch:receive() end)
    q:push(function() queue.sleep(8); ch:send("v") end); G.run(q); eq(got, "v")
  end)

  it("of a sender take its value along", function()
    local q, ch = crew(), queue.channel()
    q:push(function() eq(ch:send("lost", 3), false) end); q:push(function() eq(ch:send("kept"), true) end)
    q:push(function() queue.sleep(8); eq((ch:receive()), "kept") end); G.run(q)
  end)

  --- Spends `ms` without letting anybody go on.
  local function block(ms) local last = queue.now() + ms; while queue.now() < last do noop() end end

  it("and closes after the hand-over change nothing: a receive has succeeded", function()
    for _, cap in ipairs{ 0, 2 } do
      local q, ch = crew(), queue.channel(cap)
      q:push(function() H.results(H.pack(ch:receive(5)), "v", true) end)
      q:push(function() eq(ch:try_send("v"), true); block(10); ch:close() end); G.run(q)
      local p, ch2 = crew(), queue.channel(cap)
      p:push(function() H.results(H.pack(ch2:receive(5)), "v", true) end); p:poll()
      eq(ch2:try_send("v"), true); ch2:close(); block(10); eq(p:poll(), 1); G.fine(p)
    end
  end)

  it("and closes after the hand-over change nothing: a send has succeeded", function()
    local q, ch = crew(), queue.channel()
    q:push(function() H.results(H.pack(ch:send("v", 5)), true) end)
    q:push(function() H.results(H.pack(ch:try_receive()), "v", true); block(10); ch:close() end); G.run(q)
    local full = queue.channel(1); full:send("first")
    q:push(function() H.results(H.pack(full:send("second", 5)), true) end)
    q:push(function() eq((full:try_receive()), "first"); eq(full:len(), 1); full:close(); block(10) end)
    G.run(q); H.results(H.pack(full:receive()), "second", true)
  end)

  it("and closes after the hand-over change nothing: a select has succeeded", function()
    local q, a, b = crew(), queue.channel(), queue.channel()
    q:push(function() H.results(H.pack(queue.select({ a, { b, "sent" } }, 5)), 2, true) end)
    q:push(function() eq((b:try_receive()), "sent"); eq(select(2, a:try_send(1)), "full"); block(10); a:close(); b:close() end)
    G.run(q)
    local c = queue.channel()
    q:push(function() H.results(H.pack(queue.select({ false, c }, 5)), 2, "v", true) end)
    q:push(function() eq(c:try_send("v"), true); block(10); c:close() end); G.run(q)
  end)

  it("that passed before the value came win, though the job goes on later", function()
    local q, ch = crew(), queue.channel()
    q:push(function() H.results(H.pack(ch:receive(2)), nil, false, "timeout") end); q:poll()
    queue.sleep(5); eq(q:next_due(), 0); eq(q:poll(), 1); eq(select(2, ch:try_send(1)), "full"); G.fine(q)
  end)

  it("that passed before the value was taken are forgotten, where the sender was not resumed meanwhile", function()
    local q, ch, sent = crew(), queue.channel(), nil
    q:push(function() sent = H.pack(ch:send("v", 2)) end); q:poll(); queue.sleep(5)
    -- Whether it is still there is not said; but both sides must tell the same.
    local _, got = ch:try_receive(); q:poll(); eq(sent[1], got); G.fine(q)
  end)

  it("by the thousand are all kept, none early", function()
    local q, n, early = crew(), 0, 0
    local ch = queue.channel()
    for i = 1, H.count(2000) do
      local ms = i % 20 / 2
      q:push(function() local s = queue.now(); ch:receive(ms); n = n + 1; if queue.now() - s < ms then early = early + 1 end end)
    end
    G.run(q); eq(n, H.count(2000)); eq(early, 0)
  end)
end)

describe("a stranger who resumes a job's coroutine", function()
  --- `wait` is entered by a job; strangers poke; then `help` ends it, and the job must get what is its own.
  local function poked(title, wait, help)
    not51("does not end its " .. title, function()
      local q, co, done = crew(), nil, nil
      q:push(function() co = coroutine.running(); wait(); done = true end); q:poll()
      for _ = 1, 3 do coroutine.resume(co, "junk", 2); eq(done, nil) end
      q:push(function() coroutine.resume(co, "junk") end); q:poll(); eq(done, nil)
      q:push(function() help() end)
      -- A run would hang where one has ended the wait.
      ok(H.wait_for(1000, function() q:poll(); return q:in_flight() == 0 end), "its wait does not end"); G.fine(q); eq(done, true)
    end)
  end
  local ch, full
  poked("receive", function() ch = queue.channel(); H.results(H.pack(ch:receive()), "mine", true) end, function() ch:send("mine") end)
  poked("send", function() full = queue.channel(); eq(full:send("mine"), true) end, function() eq((full:receive()), "mine") end)
  poked("select", function() ch = queue.channel(); H.results(H.pack(queue.select{ false, ch }), 2, "mine", true) end,
    function() ch:send("mine") end)
  poked("sleep", function() local s = queue.now(); queue.sleep(20); H.between(queue.now() - s, 20, 1e6) end, noop)
  poked("receive with a time", function() H.results(H.pack(queue.channel():receive(20)), nil, false, "timeout") end, noop)
  poked("run of another queue", function()
    local p = crew(); p:push(function() queue.sleep(20) end); eq(G.run(p), 1)
  end, noop)
  poked("iter", function() ch = queue.channel(); local n = 0; for v in ch:iter() do n = n + v end eq(n, 3) end,
    function() ch:send(1); ch:send(2); ch:close() end)

  it("at a bare yield, or to its end, does no harm to the queue", function()
    local q, co, n = crew(2), nil, 0
    q:push(function() co = coroutine.running(); queue.sleep(0); n = n + 1 end); q:poll()
    for _ = 1, 5 do coroutine.resume(co) end
    for _ = 1, 5 do q:push(function() queue.sleep(0); n = n + 1 end) end
    q:run(); ok(n >= 5); eq(q:in_flight(), 0); H.conserved(q)
    for _ = 1, 5 do coroutine.resume(co, noop) end
    q:push(noop); q:run(); H.conserved(q)
  end)

  since54("by coroutine.close does no harm to the queue", function()
    local q, co = queue.new{ concurrency = 2, on_error = noop }, nil
    local ch2 = queue.channel()
    q:push(function() co = coroutine.running(); ch2:receive() end); q:poll()
    coroutine.close(co); ch2:try_send(1); q:push(noop)
    q:run(); q:push(noop); eq(q:run(), 1); eq(q:in_flight(), 0); H.conserved(q)
  end)
end)

describe("closing a queue with parked jobs", function()
  --- Lua 5.4's syntax, which the others cannot read.
  local function chunk(text) return assert(load(text)) end

  since54("closes their coroutines and counts them as cancelled", function()
    local q = crew(3)
    local log, ch = {}, queue.channel()
    local job = chunk[[
      local ch, log, name = ...
      local guard <close> = setmetatable({}, { __close = function(_, err) log[#log + 1] = name .. ":" .. tostring(err) end })
      ch:receive()
      log[#log + 1] = "went on"
    ]]
    for i = 1, 3 do q:push(job, { args = { ch, log, "job" .. i } }) end
    q:push(noop); q:push(noop, { delay_ms = 1e6 }); q:poll()
    chunk("local q <close> = ...")(q)
    table.sort(log); list(log, "job1:nil job2:nil job3:nil")
    local m = H.conserved(q, { cleared = 2 }); eq(m.cancelled, 3); eq(m.in_flight, 0); eq(m.pending, 0); eq(q:is_stopped(), true)
    eq(select(2, ch:try_send(1)), "full"); eq(q:run(), 0); eq(q:next_due(), nil); eq(m.failed, 0)
  end)

  since54("gives back what they had been handed, and drops what they wanted to send", function()
    local q, ch, out = crew(), queue.channel(2), queue.channel()
    q:push(function() ch:receive() end); q:push(function() out:send("never") end); q:push(function() queue.select{ { out, "nor" } } end)
    q:poll(); eq(ch:try_send("back"), true); eq(ch:len(), 0)
    chunk("local q <close> = ...")(q)
    eq(ch:len(), 1); H.results(H.pack(ch:try_receive()), "back", true); eq(select(3, out:try_receive()), "empty")
    eq(H.conserved(q).cancelled, 3)
  end)

  since54("gives back in order, to the next who waits where there is one", function()
    local a, b, ch, got = crew(), crew(), queue.channel(), nil
    a:push(function() ch:receive() end); a:poll(); b:push(function() got = ch:receive() end); b:poll()
    eq(ch:try_send("v"), true)
    chunk("local q <close> = ...")(a); eq(b:run(), 1); G.fine(b); eq(got, "v")
  end)

  since54("leaves a sender whose value was taken: that was sent", function()
    local q, ch = crew(), queue.channel()
    q:push(function() ch:send("v") end); q:poll(); eq((ch:try_receive()), "v"); chunk("local q <close> = ...")(q)
    eq(H.conserved(q).cancelled, 1); eq(select(3, ch:try_receive()), "empty")
  end)

  since54("takes an inner queue's waiting run along", function()
    local outer, inner, log = crew(), crew(), {}
    local job = chunk[[
      local log = ...
      local guard <close> = setmetatable({}, { __close = function() log[#log + 1] = "closed" end })
      ;(require("queue")).sleep(1e6)
    ]]
    package.loaded.queue = package.loaded.queue or queue
    inner:push(job, { args = { log } }); outer:push(function() inner:run() end); outer:poll()
    chunk("local q <close> = ...")(outer); eq(H.conserved(outer).cancelled, 1)
    chunk("local q <close> = ...")(inner); list(log, "closed"); H.conserved(inner)
  end)

  since54("of its own, from inside a job, is no crash", function()
    local q, ch = crew(), queue.channel()
    q:push(function() ch:receive() end); q:push(function() chunk("local q <close> = ...")(q) end); q:push(noop)
    q:run(); local m = H.conserved(q, { cleared = 1 }); eq(m.in_flight, 0); eq(m.cancelled, 1)
  end)

  since54("a failed job's own to-be-closed variables are closed, with the error", function()
    local q, seen = crew(); local log = {}
    local job = chunk[[
      local log, sleep = ...
      local guard <close> = setmetatable({}, { __close = function(_, err) log[#log + 1] = tostring(err) end })
      sleep(1); error("mine", 0)
    ]]
    q:push(job, { args = { log, queue.sleep } }); q:push(function() queue.sleep(2) end); q:run()
    list(log, "mine"); eq(seen[1].msg, "mine")
  end)
end)

describe("many jobs", function()
  it("100 pipelines of 3 move 100,000 values, in order, none lost or doubled", function()
    local q, each, total = crew(), H.count(1000), 0
    for _ = 1, 100 do
      local a, b = queue.channel(), queue.channel()
      q:push(function() for i = 1, each do a:send(i) end a:close() end)
      q:push(function() while true do local v, open = a:receive(); if not open then break end b:send(2 * v) end b:close() end)
      q:push(function()
        local last = 0
        while true do
          local v, open = b:receive()
          if not open then break end
          if v ~= last + 2 then error("after " .. last .. " came " .. v) end
          last, total = v, total + 1
        end
        eq(last, 2 * each)
      end)
    end
    eq(G.run(q), 300); eq(total, 100 * each)
  end)

  it("a sieve of 500 jobs gives the primes", function()
    local q, count, primes = crew(), H.count(500), {}
    local first = queue.channel()
    q:push(function() local i = 2; while #primes < count do first:send(i); i = i + 1 end first:close() end)
    local function filter(from)
      local p, open = from:receive()
      if not open then return end
      if #primes == count then
        while open do p, open = from:receive() end
        return
      end
      primes[#primes + 1] = p
      local to = queue.channel()
      q:push(filter, { args = { to } })
      while true do
        local v
        v, open = from:receive()
        if not open then break end
        if v % p ~= 0 then to:send(v) end
      end
      to:close()
    end
    q:push(filter, { args = { first } })
    G.run(q)
    local want, n = {}, 2
    while #want < count do
      local prime = true
      for _, p in ipairs(want) do if p * p > n then break end if n % p == 0 then prime = false; break end end
      if prime then want[#want + 1] = n end
      n = n + 1
    end
    eq(#primes, count); for i = 1, count do eq(primes[i], want[i]) end
    if count == 500 then eq(primes[500], 3571) end
  end)

  it("a token goes round a ring of 1,000", function()
    local q, n, rounds, hops = crew(), H.count(1000), 10, 0
    local ring = {}
    for i = 1, n do ring[i] = queue.channel() end
    for i = 1, n do
      q:push(function()
        for _ = 1, rounds do
          local v = ring[i]:receive(); hops = hops + 1
          if i < n or v < n * rounds then ring[i % n + 1]:send(v + 1) end
        end
      end)
    end
    q:push(function() ring[1]:send(1) end)
    G.run(q); eq(hops, n * rounds)
  end)

  it("two pass 100,000 values each way, with room for one and without", function()
    for _, cap in ipairs{ 0, 1 } do
      local a, b, n = queue.channel(cap), queue.channel(cap), H.count(100000)
      G.jobs(function() for i = 1, n do a:send(i); if b:receive() ~= -i then error("at " .. i) end end end,
        function() for i = 1, n do if a:receive() ~= i then error("at " .. i) end b:send(-i) end end)
    end
  end)

  it("come and go by the hundred thousand", function()
    local q, n = crew(10), 0
    for _ = 1, H.count(100000) do q:push(function() n = n + 1; if n % 5 == 0 then queue.sleep(0) end end) end
    G.run(q); eq(n, H.count(100000))
  end)

  it("each push the next, a chain of 10,000", function()
    local q, n = crew(2), 0
    local function link() n = n + 1; if n < H.count(10000) then q:push(link); queue.sleep(0) end end
    q:push(link); G.run(q); eq(n, H.count(10000))
  end)
end)

describe("interrupted! among concurrent jobs", function()
  it("thrown by a job ends the run; the others stay parked, and a later run goes on", function()
    local q, seen = crew(); local l, ch = {}, queue.channel()
    q:push(function() add(l, ch:receive()) end); q:push(function() queue.sleep(2); l[#l + 1] = "slept" end)
    q:push(function() queue.sleep(1); error("interrupted!", 0) end, { retries = 3, id = "i" }); q:push(noop, { delay_ms = 3 })
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(#seen, 1); eq(seen[1].id, "i"); eq(seen[1].info.attempts, 1)
    local m = H.conserved(q); eq(m.failed, 1); eq(m.in_flight, 2); eq(m.pending, 1); eq(m.retried, 0)
    ch:try_send("v"); eq(q:run(), 3); table.sort(l); list(l, "slept v"); H.conserved(q)
  end)

  it("thrown by on_error or backoff_ms ends the run too", function()
    for _, where in ipairs{ "on_error", "backoff_ms" } do
      local function stop() error("x.lua:3: interrupted!", 0) end
      local q = queue.new{ concurrency = 3, on_error = where == "on_error" and stop or noop }
      q:push(function() queue.sleep(3) end)
      q:push(function() error("x") end, { retries = where == "backoff_ms" and 1 or 0, backoff_ms = stop })
      local done, err = pcall(q.run, q); eq(done, false); eq(err, "x.lua:3: interrupted!")
      local m = H.conserved(q); eq(m.failed, 1); eq(m.in_flight, 1); eq(q:run(), 1); eq(H.conserved(q).succeeded, 1)
    end
  end)

  it("as a part of another text is an error like any other", function()
    local q, seen = crew()
    q:push(function() queue.sleep(0); error("upload interrupted!", 0) end); q:push(function() queue.sleep(1) end)
    eq(q:run(), 2); eq(#seen, 1)
  end)
end)

describe("is collected:", function()
  collected("a queue whose parked job captures it", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.channel():receive(); return q, m end); q:poll()
  end)
  collected("a queue whose sleeping job captures it", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.sleep(1e7); return q, m end); q:poll()
  end)
  collected("a queue with jobs that wait for each other", function(m)
    local q, a, b = queue.new{ concurrency = 3 }, queue.channel(), queue.channel()
    q:push(function() a:receive(); b:send(m) end); q:push(function() b:receive(); a:send(q) end); q:poll()
  end)
  collected("a value that a parked job wants to send", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.channel():send(m) end); q:poll()
  end)
  collected("values that a parked select wants to send", function(m)
    local q = queue.new{ concurrency = 2 }
    q:push(function() queue.select{ { queue.channel(), m }, { queue.channel(), q } } end); q:poll()
  end)
  collected("a queue in whose job another is run", function(m)
    local q, p = queue.new{ concurrency = 2 }, queue.new{ concurrency = 2 }
    p:push(function() queue.sleep(1e7); return m, q, p end); q:push(function() p:run() end); q:poll()
  end)
  collected("a queue whose job was handed a value", function(m)
    local q, ch = queue.new{ concurrency = 2 }, queue.channel()
    q:push(function() ch:receive(); return q end); q:poll(); ch:try_send(m)
  end)
  collected("what a job held that is done, though its coroutine serves on", (function()
    local q = queue.new{ concurrency = 2 }
    return function(m) q:push(function() queue.sleep(0); return m end, { args = { m } }); q:run() end
  end)())
  collected("what a job yielded and what it was answered", (function()
    local q = queue.new{ concurrency = 2 }
    return function(m)
      if H.lua51 then return end
      q:push(function() yield(m) end); local co = coroutine.create(function() q:run() end)
      coroutine.resume(co); coroutine.resume(co, m)
    end
  end)())

  it("and its parked jobs wait on the channel no more", function()
    local ch, full, other = queue.channel(), queue.channel(1), queue.channel()
    full:send("kept")
    for _ = 1, 3 do
      local q = queue.new{ concurrency = 9 }
      for _ = 1, 3 do
        q:push(function() ch:receive() end); q:push(function() full:send("lost") end); q:push(function() queue.select{ other, ch } end)
      end
      q:poll()
    end
    H.collect(); H.collect()
    eq(select(2, ch:try_send(1)), "full"); eq((full:try_receive()), "kept"); eq(full:len(), 0); eq(select(2, other:try_send(1)), "full")
  end)

  it("never while it is run", function()
    local n = 0
    local function go()
      local q = queue.new{ concurrency = 5 }
      for _ = 1, 20 do q:push(function() queue.sleep(0); collectgarbage(); n = n + 1; queue.sleep(0.1) end) end
      return q
    end
    eq(go():run(), 20); eq(n, 20)
  end)

  it("memory stays flat over parked jobs, queues and dead ends", function()
    local function work()
      for _ = 1, H.count(300) do
        local q, ch = queue.new{ concurrency = 10, on_error = noop }, queue.channel()
        for _ = 1, 10 do q:push(function() ch:receive(); return q end) end
        q:poll(); ch:try_send({}); q:poll()
      end
      local q = queue.new{ concurrency = 10, on_error = noop }
      for _ = 1, H.count(1000) do
        q:push(function() queue.select({ queue.channel() }, 0.01) end); q:push(function() queue.channel():receive() end)
      end
      q:run(); H.collect()
    end
    for _ = 1, 3 do work() end
    local lua, resident = collectgarbage("count"), H.resident()
    for _ = 1, 5 do work() end
    H.between(collectgarbage("count") - lua, -1e9, 500, "KiB of Lua's own")
    if resident then H.between(H.resident() - resident, -1e9, 6000, "KiB resident") end
  end)

  it("a finalizer that uses the queue at work loses no job", function()
    local q, pushed, ran = queue.new{ concurrency = 20 }, 0, 0
    local ch = queue.channel(5)
    local function job() queue.sleep(0); ran = ran + 1; ch:try_send({}) end
    for i = 1, H.count(3000) do
      H.finalizer(function() q:push(job); pushed = pushed + 1; ch:try_receive() end)
      q:push(job, { args = { {} } }); pushed = pushed + 1
      if i % 50 == 0 then pcall(q.poll, q) end
      if i % 200 == 0 then collectgarbage() end
    end
    H.collect(); q:run(); H.collect(); q:run()
    eq(ran, pushed); H.conserved(q)
  end)
end)
