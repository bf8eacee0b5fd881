--- Jobs side by side: what waits and what goes on meanwhile, turns, the next due, the bound.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local yield = coroutine.yield
local crew, add = G.crew, G.add

describe("a job whose turn could not be given away, where it cannot yield,", function()
  it("still goes on once in a turn", function()
    local q, steps = crew(2), { 0, 0 }
    local function step(i) while steps[i] < 100 do steps[i] = steps[i] + 1; yield() end end
    q:push(function()
      local numbers = {}
      for i = 1, 50 do numbers[i] = i * 7919 % 211 end
      -- Stock 5.1 raises there, the others wait on the thread.
      for _ = 1, 20 do pcall(table.sort, numbers, function(x, y) queue.sleep(0); return x < y end) end
      step(1)
    end)
    q:push(function() step(2) end)
    for turn = 1, 5 do
      q:poll(); eq(steps[2], turn)
      ok(steps[1] <= turn, "the first has gone on " .. steps[1] .. " times in " .. turn .. " turns")
    end
  end)
end)

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
    local inner = queue.new(); inner:push(noop, { delay_ms = 50 })
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
    -- They begin their sleeps one after the other, which on a busy machine may take a while.
    H.eventually(3, function()
      local q, l = crew(), {}
      for _, ms in ipairs{ 90, 30, 60, 1 } do q:push(function() queue.sleep(ms); l[#l + 1] = ms end) end
      q:poll(); queue.sleep(100); q:poll(); list(l, "1 30 60 90"); G.fine(q)
    end)
  end)

  it("resumes yielders, woken jobs and sleepers without starving any", function()
    local q, l, spin, ch = crew(3), {}, 0, queue.channel()
    local stop
    q:push(function() while not stop do spin = spin + 1; queue.sleep(0) end end)
    q:push(function()
      for _ = 1, 100 do queue.sleep(10); if spin > 3 then break end end
      l[#l + 1] = "slept"; ch:send("v")
    end)
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
