--- select: of several sends and receives exactly one, fairly chosen; in a job and outside, over channels of every kind.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, has = H.queue, H.eq, H.ok, H.list, H.has
local crew, add = G.crew, G.add
local not51, _, collected = G.its(function() return it, pending end)

local function buffered(...)
  local ch = queue.channel(math.max(1, select("#", ...)))
  for i = 1, select("#", ...) do ch:send((select(i, ...))) end
  return ch
end
local function closed() local ch = queue.channel(1); ch:close(); return ch end
local names = 0
local function shared(capacity) names = names + 1; return queue.shared("select_spec " .. names, capacity) end

--- `fn` outside any job, and in one.
local function both(title, fn)
  it(title .. ", outside", function() fn() end)
  it(title .. ", in a job", function() eq(G.jobs(fn), 1) end)
end

describe("select of what is ready", function()
  both("gives the index, the value and true for a receive", function()
    local t = {}
    H.results(H.pack(queue.select{ queue.channel(), buffered("v") }), 2, "v", true)
    H.results(H.pack(queue.select{ buffered(t), queue.channel() }), 1, t, true)
    H.results(H.pack(queue.select({ buffered("v") }, 0)), 1, "v", true)
    H.results(H.pack(queue.select({ buffered("v") }, math.huge)), 1, "v", true)
  end)

  both("gives false as a value", function()
    H.results(H.pack(queue.select{ buffered(false) }), 1, false, true)
    local ch = queue.channel(1); H.results(H.pack(queue.select{ { ch, false } }), 1, true); H.results(H.pack(ch:receive()), false, true)
  end)

  both("gives the index and true for a send", function()
    local ch = queue.channel(2)
    H.results(H.pack(queue.select{ queue.channel(), { ch, "a" } }), 2, true)
    H.results(H.pack(queue.select({ { ch, "b" }, queue.channel() }, 0)), 1, true)
    eq((ch:receive()), "a"); eq((ch:receive()), "b")
  end)

  both("gives nil and false for a closed channel, once drained", function()
    local ch = buffered("last"); ch:close()
    H.results(H.pack(queue.select{ false, ch }), 2, "last", true)
    H.results(H.pack(queue.select{ false, ch }), 2, nil, false); H.results(H.pack(queue.select({ ch }, 0)), 1, nil, false)
  end)

  both("does one case and leaves the others as they were", function()
    for _ = 1, 50 do
      local a, b, c, d = buffered("a"), buffered("b"), queue.channel(1), buffered("full")
      local i, v = queue.select{ a, b, { c, "c" }, { d, "no" } }
      local taken = (a:len() == 0 and 1 or 0) + (b:len() == 0 and 1 or 0) + c:len()
      eq(taken, 1); eq(d:len(), 1); eq((d:receive()), "full")
      if i == 1 then eq(v, "a"); eq(a:len(), 0) elseif i == 2 then eq(v, "b"); eq(b:len(), 0) else eq(i, 3); eq((c:receive()), "c") end
    end
  end)

  both("counts false as a case that is never ready", function()
    H.results(H.pack(queue.select{ false, false, buffered(1), false }), 3, 1, true)
    H.results(H.pack(queue.select({ false }, 0)), nil, "timeout")
  end)

  both("takes the value of a waiting sender, and gives to a waiting receiver", function()
    local q, ch, got = crew(), queue.channel(), nil
    q:push(function() ch:send("from a sender") end); q:poll()
    H.results(H.pack(queue.select({ false, ch }, 0)), 2, "from a sender", true)
    q:push(function() got = ch:receive() end); q:poll()
    H.results(H.pack(queue.select({ { ch, "to a receiver" } }, 0)), 1, true)
    q:poll(); eq(got, "to a receiver"); G.fine(q)
  end)
end)

describe("select's choice", function()
  local n = 10000
  --- `cases()` has `kinds` cases that are always ready; each must be taken its share of times, ± 5 %.
  local function fair(title, kinds, round)
    both("is fair: " .. title, function()
      local counts, total = {}, H.count(n)
      for i = 1, kinds do counts[i] = 0 end
      for _ = 1, total do local i = round(); counts[i] = counts[i] + 1 end
      local give = H.slow == 1 and 0.05 or 0.2
      for i = 1, kinds do H.between(counts[i] / total, 1 / kinds - give, 1 / kinds + give, "share of case " .. i) end
    end)
  end
  local a, b, c = queue.channel(1), queue.channel(1), queue.channel(1)
  fair("two receives", 2, function() a:try_send(1); b:try_send(1); return (queue.select{ a, b }) end)
  fair("three receives", 3, function() a:try_send(1); b:try_send(1); c:try_send(1); return (queue.select{ a, b, c }) end)
  fair("two sends", 2, function() a:try_receive(); b:try_receive(); return (queue.select{ { a, 1 }, { b, 1 } }) end)
  fair("a send and a receive", 2, function() a:try_receive(); b:try_send(1); return (queue.select{ { a, 1 }, b }) end)
  fair("a send and a receive on the same channel", 2, function()
    local ch = queue.channel(2); ch:send(1); return (queue.select{ { ch, 1 }, ch })
  end)
  fair("a closed channel and one with values", 2, function() a:try_send(1); return (queue.select{ closed(), a }) end)
  fair("without a wait", 2, function() a:try_send(1); b:try_send(1); return (queue.select({ a, b }, 0)) end)
  fair("a shared channel and a plain one", 2, (function()
    local s = shared(1)
    return function() a:try_send(1); s:try_send(1); return (queue.select{ a, s }) end
  end)())
  fair("ready ones among dead ones", 2, function()
    a:try_send(1); b:try_send(1)
    local i = queue.select{ false, a, queue.channel(), false, b, { queue.channel(), 1 } }
    return i == 2 and 1 or i == 5 and 2
  end)

  it("is fair among jobs that wait at both", function()
    local q, x, y, counts = crew(), queue.channel(), queue.channel(), { 0, 0 }
    local total = H.count(5000)
    q:push(function() for _ = 1, total do local i = queue.select{ x, y }; counts[i] = counts[i] + 1 end x:close(); y:close() end)
    for _, ch in ipairs{ x, y } do q:push(function() while not ch:is_closed() do if not pcall(ch.send, ch, 1) then return end end end) end
    if H.lua51 then return pending("stock 5.1 cannot wait under pcall") end
    q:run(); H.between(counts[1] / total, 0.3, 0.7)
  end)
end)

describe("select that waits", function()
  both("ends when its time is over, not before, and leaves nothing behind", function()
    local ch, full = queue.channel(), buffered(1)
    local t = H.timed(function() H.results(H.pack(queue.select({ ch, { ch, 1 }, { full, 2 }, false }, 10)), nil, "timeout") end)
    H.between(t, 10, H.patience(1000))
    eq(select(2, ch:try_send(1)), "full"); eq(select(3, ch:try_receive()), "empty"); eq((full:receive()), 1); eq(full:len(), 0)
  end)

  both("never, with 0 or less", function()
    for _, ms in ipairs{ 0, -1, -math.huge } do
      H.results(H.pack(queue.select({ queue.channel(), { queue.channel(), 1 } }, ms)), nil, "timeout")
      H.results(H.pack(queue.select({}, ms)), nil, "timeout")
    end
  end)

  both("of nothing ends in time", function() H.results(H.pack(queue.select({}, 5)), nil, "timeout") end)

  both("for a timer gets its value, and its end", function()
    local t = queue.after(5, "t")
    H.results(H.pack(queue.select{ queue.channel(), t }), 2, "t", true)
    H.results(H.pack(queue.select{ queue.channel(), t }), 2, nil, false)
    local u = queue.after(3, false); H.results(H.pack(queue.select{ u }), 1, false, true)
  end)

  both("for the first of several timers", function()
    local slow, fast, tick = queue.after(1e6), queue.after(5, "fast"), queue.tick(1e6)
    H.results(H.pack(queue.select({ slow, tick, fast }, 1e5)), 3, "fast", true); slow:stop(); tick:stop()
  end)

  both("for a ticker, beat by beat", function()
    -- A thread that comes late drops beats.
    H.eventually(3, function()
      local tick, n = queue.tick(2), 0
      local over = queue.after(30)
      while true do
        local i, v, open = queue.select{ tick, over }
        if i == 2 then break end
        eq(v, true); eq(open, true); n = n + 1
      end
      tick:stop(); H.results(H.pack(queue.select{ tick }), 1, nil, false); H.between(n, 1, 16)
    end)
  end)

  it("outside blocks the thread", function()
    local q, ran = queue.new(), nil
    q:push(function() ran = true end); H.results(H.pack(queue.select({ queue.channel() }, 5)), nil, "timeout"); eq(ran, nil)
  end)

  it("in a job lets the others go on", function()
    local a, b, l = queue.channel(), queue.channel(), {}
    G.jobs(function() local i, v = queue.select{ a, b }; add(l, i .. v) end, function() add(l, "other"); b:send("v") end)
    list(l, "other 2v")
  end)

  it("is served in line with those who wait otherwise", function()
    local q, ch, l = crew(), queue.channel(), {}
    q:push(function() add(l, "a" .. ch:receive()) end); q:push(function() add(l, "b" .. select(2, queue.select{ false, ch })) end)
    q:push(function() add(l, "c" .. ch:receive()) end); q:push(function() for i = 1, 3 do ch:send(i) end end)
    G.run(q); list(l, "a1 b2 c3")
    local out = queue.channel(); l = {}
    q:push(function() out:send("a") end); q:push(function() queue.select{ { out, "b" } } end); q:push(function() out:send("c") end)
    q:push(function() for _ = 1, 3 do add(l, out:receive()) end end); G.run(q); list(l, "a b c")
  end)

  it("that has gone is nowhere else in line", function()
    local q, a, b, full = crew(), queue.channel(), queue.channel(), buffered("first")
    q:push(function() eq(queue.select{ a, b, { full, "second" }, { b, 3 } }, 1) end); q:poll()
    eq(a:try_send(1), true); eq(select(2, b:try_send(1)), "full"); eq(select(3, b:try_receive()), "empty")
    eq((full:receive()), "first"); eq(full:len(), 0); q:poll(); G.fine(q); eq(select(2, a:try_send(1)), "full")
  end)

  it("passes a wake-up that is not its own to the next", function()
    local q, a, b, l = crew(), queue.channel(), queue.channel(), {}
    q:push(function() local i = queue.select{ a, b }; add(l, "select" .. i) end); q:push(function() add(l, "b" .. b:receive()) end)
    q:poll(); eq(a:try_send(1), true); eq(b:try_send(2), true); eq(select(2, b:try_send(3)), "full")
    q:poll(); list(l, "select1 b2"); G.fine(q)
  end)

  it("is woken by a close, of a receive", function()
    local a, b = queue.channel(), queue.channel()
    G.jobs(function() H.results(H.pack(queue.select{ a, b }), 2, nil, false) end, function() b:close() end)
  end)

  it("raises when the channel of a send closes", function()
    local q, seen = crew(); local a, b = queue.channel(), queue.channel()
    local fn = function() queue.select{ a, { b, 1 } } end
    q:push(fn); q:push(function() b:close() end); eq(q:run(), 2); eq(#seen, 1); G.at(fn, seen[1].msg, "send on closed channel")
    eq(select(2, a:try_send(1)), "full")
  end)

  it("meets a select of another job, either way round", function()
    for turn = 1, 2 do
      local a, b, got = queue.channel(), queue.channel(), nil
      local function send() H.results(H.pack(queue.select{ a, { b, "v" } }), 2, true) end
      local function receive() local i, v, open = queue.select{ b, false }; eq(i, 1); eq(open, true); got = v end
      if turn == 1 then G.jobs(send, receive) else G.jobs(receive, send) end
      eq(got, "v")
    end
  end)

  it("and others by the hundred: every value once", function()
    local q, chans, sum, n, left = crew(), {}, 0, 0, 20
    for i = 1, 10 do chans[i] = queue.channel(i % 3) end
    local each = H.count(250)
    local function pick(value)
      local cases = {}
      for i = 1, 10 do cases[i] = value and { chans[i], value } or chans[i] end
      return cases
    end
    for i = 1, 20 do
      q:push(function()
        for j = 1, each do queue.select(pick((i - 1) * each + j)) end
        left = left - 1
        if left == 0 then for _, ch in ipairs(chans) do ch:close() end end
      end)
      q:push(function()
        local open = 10
        local cases = pick()
        while open > 0 do
          local k, v, more = queue.select(cases)
          if more then sum, n = sum + v, n + 1 else cases[k] = false; open = open - 1 end
        end
      end)
    end
    eq(G.run(q), 40); eq(n, 20 * each); eq(sum, n * (n + 1) / 2)
  end)

  it("keeps to the cases it was given, whatever becomes of their table", function()
    local a, b = queue.channel(), queue.channel()
    local case = { b, "v" }
    local cases = { a, case }
    G.jobs(function() H.results(H.pack(queue.select(cases)), 2, true) end,
      function()
        case[1], case[2], cases[1], cases[2] = a, "changed", nil, nil
        collectgarbage(); H.results(H.pack(b:receive()), "v", true)
      end)
  end)

  it("and is given to from outside has succeeded, whatever comes after", function()
    local q, a, b = crew(), queue.channel(), queue.channel()
    q:push(function() H.results(H.pack(queue.select({ a, b }, 3)), 1, "v", true) end); q:poll()
    eq(a:try_send("v"), true); a:close(); b:close(); queue.sleep(6); eq(q:poll(), 1); G.fine(q)
  end)
end)

describe("select on one channel twice", function()
  both("receives once", function()
    local ch = queue.channel(3); ch:send(1); ch:send(2)
    local i, v = queue.select{ ch, ch }; ok(i == 1 or i == 2); eq(v, 1); eq(ch:len(), 1)
  end)

  both("sends one of two values", function()
    local seen = {}
    for _ = 1, 100 do
      local ch = queue.channel(2)
      local i = queue.select{ { ch, 1 }, { ch, 2 } }
      eq(ch:len(), 1); eq((ch:receive()), i); seen[i] = true
    end
    ok(seen[1] and seen[2])
  end)

  it("waits at both and is served once", function()
    local q, ch, got = crew(), queue.channel(), nil
    q:push(function() got = H.pack(queue.select{ ch, ch, ch }) end); q:poll()
    eq(ch:try_send("v"), true); eq(select(2, ch:try_send("w")), "full"); q:poll(); eq(got[2], "v"); G.fine(q)
    q:push(function() queue.select{ { ch, 1 }, { ch, 2 } } end); q:poll()
    ok(ch:try_receive()); eq(select(3, ch:try_receive()), "empty"); q:poll(); G.fine(q)
  end)

  both("never meets itself", function()
    local ch = queue.channel()
    for _ = 1, 20 do H.results(H.pack(queue.select({ ch, { ch, 1 } }, 0)), nil, "timeout") end
    H.results(H.pack(queue.select({ ch, { ch, 1 }, ch, { ch, 2 } }, 3)), nil, "timeout")
  end)

  both("with a buffer sends where there is room, receives where there is a value", function()
    local ch = queue.channel(1)
    for _ = 1, 20 do
      H.results(H.pack(queue.select{ ch, { ch, "v" } }), 2, true); H.results(H.pack(queue.select{ ch, { ch, "w" } }), 1, "v", true)
    end
  end)

  it("meets the other job's, never its own", function()
    local ch, n = queue.channel(), 0
    local function peer() for _ = 1, H.count(2000) do local i = queue.select{ ch, { ch, 1 } }; n = n + (i == 1 and 1 or -1) end end
    G.jobs(peer, peer); eq(n, 0)
  end)
end)

describe("select on a closed channel", function()
  for place = 1, 3 do
    both("raises for a send, even if others are ready, at place " .. place, function()
      for _ = 1, 30 do
        local ready = buffered("kept")
        local cases = { ready, { queue.channel(1), 1 }, ready }
        cases[place] = { closed(), 1 }
        local call = function() queue.select(cases) end
        local done, err = pcall(call); eq(done, false); G.at(call, err, "send on closed channel"); eq(ready:len(), 1)
        done, err = pcall(queue.select, cases, 0); eq(done, false); has(err, "send on closed channel")
      end
    end)
  end

  it("raises where the same channel is also received from", function()
    local ch = closed(); H.raises("send on closed channel", function() queue.select{ ch, { ch, 1 } } end)
  end)
end)

describe("select without end", function()
  local function dead(title, fn)
    it("raises at its line: " .. title, function()
      H.raises("deadlock: select can never complete", fn)
      local q, seen = crew(); q:push(fn); eq(q:run(), 1); G.at(fn, seen[1].msg, "deadlock: select can never complete")
    end)
  end
  dead("of nothing", function() queue.select{} end)
  dead("of false", function() queue.select{ false, false } end)
  dead("of receives", function() queue.select{ queue.channel(), queue.channel(3) } end)
  dead("of sends", function() queue.select{ { queue.channel(), 1 }, { buffered(1), 1 } } end)
  dead("for ever", function() queue.select({ queue.channel() }, math.huge) end)
  dead("of one channel twice", function() local ch = queue.channel(); queue.select{ ch, { ch, 1 } } end)
  dead("of timers that never fire", function() queue.select{ queue.after(math.huge), queue.tick(math.huge) } end)

  it("is none with a timer, a time limit or a shared channel among the cases", function()
    local t = queue.after(3)
    eq(queue.select{ queue.channel(), t }, 2); eq(queue.select({ queue.channel() }, 3), nil)
    eq(select(2, queue.select({ queue.channel(), shared(0) }, 3)), "timeout")
  end)

  it("is one again when the timer has fired and was drained elsewhere", function()
    local t = queue.after(1); t:receive(); t:stop()
    H.results(H.pack(queue.select{ t }), 1, nil, false)
  end)

  not51("can be caught, and leaves nothing behind", function()
    local q, ch, other, l = crew(), queue.channel(), queue.channel(), {}
    q:push(function() local done = pcall(function() queue.select{ ch, { other, 1 } } end); eq(done, false); add(l, "caught") end)
    G.run(q); list(l, "caught"); eq(select(2, ch:try_send(1)), "full"); eq(select(3, other:try_receive()), "empty")
  end)
end)

describe("select of thousands", function()
  local n = H.count(5000)
  both("finds the one that is ready", function()
    local cases = {}
    for i = 1, n do cases[i] = i % 3 == 0 and false or i % 3 == 1 and queue.channel() or { queue.channel(), i } end
    H.results(H.pack(queue.select(cases, 0)), nil, "timeout"); H.results(H.pack(queue.select(cases, 2)), nil, "timeout")
    cases[n] = buffered("last"); H.results(H.pack(queue.select(cases)), n, "last", true)
  end)

  it("is woken by any of them, again and again", function()
    local chans = {}
    for i = 1, n do chans[i] = queue.channel() end
    G.jobs(function()
      for k = 1, 20 do H.results(H.pack(queue.select(chans)), (k * 7919) % n + 1, k, true) end
    end, function()
      for k = 1, 20 do chans[(k * 7919) % n + 1]:send(k) end
    end)
    eq(select(2, chans[1]:try_send(1)), "full")
  end)

  it("may be one channel, a thousand times", function()
    local ch, cases = queue.channel(1), {}
    for i = 1, 1000 do cases[i] = i % 2 == 0 and ch or { ch, i } end
    local i = queue.select(cases); eq(i % 2, 1); eq(ch:len(), 1); i = queue.select(cases); eq(i % 2, 0); eq(ch:len(), 0)
  end)
end)

describe("select over kinds of channels", function()
  both("mixes plain, timer and shared ones", function()
    local plain, s, t = queue.channel(1), shared(2), queue.after(H.patience(5), "t")
    H.results(H.pack(queue.select({ plain, s }, 0)), nil, "timeout")
    s:send({ "copy" }); local i, v, open = queue.select{ plain, s, t }; eq(i, 2); eq(v[1], "copy"); eq(open, true)
    plain:send("p"); H.results(H.pack(queue.select{ plain, s }), 1, "p", true)
    H.results(H.pack(queue.select{ plain, s, t }), 3, "t", true)
    H.results(H.pack(queue.select{ { plain, print }, s }), 1, true); eq((plain:receive()), print)
    H.results(H.pack(queue.select{ plain, { s, { 1 } } }), 2, true); eq(s:len(), 1); eq(s:receive()[1], 1); s:close()
  end)

  it("waits at all of them", function()
    local plain, s = queue.channel(), shared(0)
    G.jobs(function() local i, v = queue.select{ plain, s }; eq(i, 2); eq(v.a, 1) end, function() s:send({ a = 1 }) end)
    G.jobs(function() H.results(H.pack(queue.select{ plain, { s, "v" } }), 2, true) end, function() eq((s:receive()), "v") end)
    G.jobs(function() H.results(H.pack(queue.select{ s, plain }), 2, print, true) end, function() plain:send(print) end)
    eq(select(2, s:try_send(1)), "full"); s:close()
  end)

  it("refuses what a shared channel cannot copy, and does nothing", function()
    local s, ready = shared(1), buffered("kept")
    H.raises("a function cannot be copied", function() queue.select{ ready, { s, { f = print } } } end)
    H.raises("value%.f: a function cannot be copied", function() queue.select({ { s, { f = print } }, ready }, 0) end)
    eq(ready:len(), 1); eq(s:len(), 0); s:close()
  end)
end)

describe("select is collected:", function()
  collected("its cases, once it has gone", function(m)
    local ch = buffered(1); queue.select{ ch, { queue.channel(), m } }
  end)
  collected("its cases, once its time is over", function(m) queue.select({ { queue.channel(), m }, queue.channel() }, 0.01) end)
  collected("its cases, once it was a dead end", function(m) pcall(queue.select, { { queue.channel(), m } }) end)
  collected("its cases, where one raised", function(m) pcall(queue.select, { { queue.channel(), m }, { closed(), m } }) end)
  collected("its cases, where one was bad", function(m) pcall(queue.select, { { queue.channel(), m }, 5 }) end)
  it("nothing, on channels that live on", function()
    local ch, full = queue.channel(), buffered(1)
    local weak = setmetatable({}, { __mode = "v" })
    for i = 1, 20 do local m = {}; weak[i] = m; queue.select({ { full, m }, ch, { ch, m } }, 0.01) end
    H.collect(); local left = 0; for i = 1, 20 do if weak[i] then left = left + 1 end end
    ok(left <= 1, left .. " of 20 are held")
  end)
end)
