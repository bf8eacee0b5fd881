--- Waits of jobs side by side that nothing can end: which job is told, and which is not.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, list, has, noop = H.queue, H.eq, H.list, H.has, H.noop
local crew, add = G.crew, G.add
local not51 = G.its(function() return it, pending end)

describe("a dead end among jobs", function()
  --- Each wait, alone in a queue, fails at its own line; run neither hangs nor raises.
  local function dead(title, text, fn)
    it("fails the job at its own line: " .. title, function()
      local q, seen = crew()
      q:push(fn); eq(q:run(), 1); eq(#seen, 1); G.at(fn, seen[1].msg, "deadlock: " .. text .. " can never complete")
      eq(seen[1].info.error, seen[1].msg); has(seen[1].info.traceback, "concurrent_dead_end_spec.lua"); eq(H.conserved(q).failed, 1)
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
    outer:push(function() ch:send("w") end, { delay_ms = 100 })
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
    inner:push(function() ch:receive() end, { id = "1" }); inner:push(function() queue.sleep(60); ch:receive() end, { id = "3" })
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
