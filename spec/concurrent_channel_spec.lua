--- Channels among jobs side by side: who gets which value, time limits, and many jobs that pass many values.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, list, noop = H.queue, H.eq, H.list, H.noop
local crew, add = G.crew, G.add
local not51 = G.its(function() return it, pending end)

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

  -- Long enough for the hand-over, wherever the machine is.
  local limit = H.patience(30)
  --- Spends `ms` without letting anybody go on.
  local function block(ms) local last = queue.now() + ms; while queue.now() < last do noop() end end

  it("and closes after the hand-over change nothing: a receive has succeeded", function()
    for _, cap in ipairs{ 0, 2 } do
      local q, ch = crew(), queue.channel(cap)
      q:push(function() H.results(H.pack(ch:receive(limit)), "v", true) end)
      q:push(function() eq(ch:try_send("v"), true); block(2 * limit); ch:close() end); G.run(q)
      local p, ch2 = crew(), queue.channel(cap)
      p:push(function() H.results(H.pack(ch2:receive(limit)), "v", true) end); p:poll()
      eq(ch2:try_send("v"), true); ch2:close(); block(2 * limit); eq(p:poll(), 1); G.fine(p)
    end
  end)

  it("and closes after the hand-over change nothing: a send has succeeded", function()
    local q, ch = crew(), queue.channel()
    q:push(function() H.results(H.pack(ch:send("v", limit)), true) end)
    q:push(function() H.results(H.pack(ch:try_receive()), "v", true); block(2 * limit); ch:close() end); G.run(q)
    local full = queue.channel(1); full:send("first")
    q:push(function() H.results(H.pack(full:send("second", limit)), true) end)
    q:push(function() eq((full:try_receive()), "first"); eq(full:len(), 1); full:close(); block(2 * limit) end)
    G.run(q); H.results(H.pack(full:receive()), "second", true)
  end)

  it("and closes after the hand-over change nothing: a select has succeeded", function()
    local q, a, b = crew(), queue.channel(), queue.channel()
    q:push(function() H.results(H.pack(queue.select({ a, { b, "sent" } }, limit)), 2, true) end)
    q:push(function() eq((b:try_receive()), "sent"); eq(select(2, a:try_send(1)), "full"); block(2 * limit); a:close(); b:close() end)
    G.run(q)
    local c = queue.channel()
    q:push(function() H.results(H.pack(queue.select({ false, c }, limit)), 2, "v", true) end)
    q:push(function() eq(c:try_send("v"), true); block(2 * limit); c:close() end); G.run(q)
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
