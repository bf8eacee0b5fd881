--- Descriptors in the hands of luasocket, cqueues, luv and copas, and queues of many whose jobs wait in their way.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list = H.queue, H.eq, H.ok, H.list
local crew, add = G.crew, G.add

local with = H.with(function() return it, pending end)

local names = 0
local function shared(capacity)
  names = names + 1; local name = "poll_loops_spec " .. names
  return queue.shared(name, capacity), name
end

describe("luasocket", function()
  with("socket", "selects over channels and sockets", function(lib)
    local a, b = queue.channel(1), queue.channel(1)
    if not a:getfd() then return pending("no descriptors here") end
    local server = assert(lib.bind("127.0.0.1", 0))
    eq(#lib.select({ a, b, server }, nil, 0), 0)
    b:send(1); local r = lib.select({ a, b, server }, nil, 5); eq(#r, 1); eq(r[1], b); eq(r[b], 1); b:receive()
    local t = queue.after(10); r = lib.select({ a, t, server }, nil, 5); eq(r[1], t)
    local _, port = server:getsockname()
    local client = assert(lib.connect("127.0.0.1", port)); r = lib.select({ a, server }, nil, 5); eq(r[1], server)
    a:close(); r = lib.select({ a, b }, nil, 5); eq(r[1], a); client:close(); server:close()
  end)

  with("socket", "drives a queue by getfd and next_due", function(lib)
    if not crew():getfd() then return pending("no descriptors here") end
    -- From the moment a timer is due until its thread has come to run, each turn is followed by the next at once.
    H.eventually(5, function()
      local q, ch, l = crew(), queue.channel(), {}
      local feed, turns = queue.tick(4), 0
      q:push(function() for _ = 1, 3 do feed:receive(); ch:send("beat") end feed:stop(); ch:close() end)
      q:push(function() while true do local v, open = ch:receive(); if not open then return end add(l, v) end end)
      q:push(function() queue.sleep(6); add(l, "slept") end)
      local last = queue.now() + H.patience(5000)
      while q:next_due() and queue.now() < last do
        turns = turns + 1
        lib.select({ q }, nil, math.min(q:next_due(), 1000) / 1000)
        q:poll()
      end
      eq(q:in_flight(), 0); eq(#l, 4); G.fine(q); ok(turns < 60, turns .. " turns")
    end)
  end)
end)

describe("cqueues", function()
  with("cqueues", "polls a channel", function(lib)
    local ch = queue.channel(1)
    if not ch:getfd() then return pending("no descriptors here") end
    local cq, l = lib.new(), {}
    cq:wrap(function()
      while true do
        lib.poll(ch)
        local v, open = ch:try_receive()
        if not open then if ch:is_closed() then return end else add(l, v) end
      end
    end)
    cq:wrap(function() for i = 1, 3 do lib.sleep(0.003); ch:send(i) end lib.sleep(0.003); ch:close() end)
    assert(cq:loop(H.patience(5))); list(l, "1 2 3")
  end)

  with("cqueues", "polls channels and time", function(lib)
    local a, t = queue.channel(1), queue.after(10)
    if not a:getfd() then return pending("no descriptors here") end
    local cq, got = lib.new(), nil
    cq:wrap(function() got = lib.poll(a, t, 5) end); assert(cq:loop(10)); eq(got, t)
    cq:wrap(function() got = lib.poll(a, 0.01) end); assert(cq:loop(10)); eq(got, 0.01)
  end)

  with("cqueues", "polls a queue's descriptor", function(lib)
    local q, ch, got = crew(), queue.channel(), nil
    if not q:getfd() then return pending("no descriptors here") end
    local cq = lib.new()
    q:push(function() got = ch:receive() end)
    cq:wrap(function()
      while q:next_due() do
        lib.poll({ pollfd = q:getfd(), events = "r" }, math.min(q:next_due(), 1000) / 1000)
        q:poll()
      end
    end)
    cq:wrap(function() lib.sleep(0.01); ch:try_send("v") end)
    assert(cq:loop(H.patience(5))); eq(got, "v"); G.fine(q)
  end)

  with("cqueues", "runs a queue of many whose jobs wait in its way: the other threads go on", function(lib)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    for _, n in ipairs{ 1, 3, math.huge } do
      local cq, q, l, beats, done = lib.new(), crew(n), {}, 0, nil
      for i = 1, 4 do q:push(function() lib.sleep(0.05); l[#l + 1] = i end) end
      cq:wrap(function() done = q:run() end)
      cq:wrap(function() while not done do beats = beats + 1; lib.sleep(0.001) end end)
      assert(cq:loop(H.patience(5))); eq(done, 4); list(l, "1 2 3 4"); G.fine(q); ok(beats > 5, "the others stood still")
    end
  end)

  with("cqueues", "runs a queue of many that mixes its waits with the queue's", function(lib)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local cq, q, ch, l, done = lib.new(), crew(), queue.channel(), {}, nil
    q:push(function() for i = 1, 3 do lib.sleep(0.002); ch:send(i) end ch:close() end)
    q:push(function() for v in ch:iter() do add(l, v) end end)
    cq:wrap(function() done = q:run() end)
    assert(cq:loop(H.patience(5))); eq(done, 2); list(l, "1 2 3"); G.fine(q)
  end)
end)

describe("luv", function()
  with("luv", "polls a channel", function(uv)
    local ch, l = queue.channel(2), {}
    if not ch:getfd() then return pending("no descriptors here") end
    local poll, timer, n = uv.new_poll(ch:getfd()), uv.new_timer(), 0
    poll:start("r", function()
      local v, open = ch:try_receive()
      if open then add(l, v) elseif ch:is_closed() then poll:stop(); poll:close(); timer:close() end
    end)
    timer:start(2, 2, function() n = n + 1; if n <= 3 then ch:send(n); ch:send(-n) else ch:close(); timer:stop() end end)
    uv.run(); list(l, "1 -1 2 -2 3 -3")
  end)

  with("luv", "polls a timer of the queue's, beside its own", function(uv)
    local t = queue.tick(3)
    if not t:getfd() then return pending("no descriptors here") end
    local poll, timer, n, own = uv.new_poll(t:getfd()), uv.new_timer(), 0, 0
    timer:start(1, 1, function() own = own + 1 end)
    poll:start("r", function() if t:try_receive() then n = n + 1 end if n == 3 then t:stop(); poll:close(); timer:close() end end)
    uv.run(); eq(n, 3); ok(own > 0)
  end)

  with("luv", "drives a queue by getfd and next_due", function(uv)
    local q, ch, l = crew(), queue.channel(), {}
    if not q:getfd() then return pending("no descriptors here") end
    q:push(function() while true do local v, open = ch:receive(); if not open then return end add(l, v) end end)
    q:push(function() queue.sleep(8); add(l, "slept") end)
    local poll, due, feed = uv.new_poll(q:getfd()), uv.new_timer(), uv.new_timer()
    local function turn()
      q:poll()
      local ms = q:next_due()
      if not ms then poll:close(); due:close(); feed:close()
      elseif ms < math.huge then due:start(math.ceil(ms), 0, turn) end
    end
    poll:start("r", turn); turn()
    local n = 0
    feed:start(3, 3, function() n = n + 1; if n <= 2 then ch:try_send(n) else ch:close(); feed:stop() end end)
    uv.run(); table.sort(l, function(a, b) return tostring(a) < tostring(b) end); list(l, "1 2 slept"); G.fine(q)
  end)

  with("luv", "wakes on a shared channel that a thread of its feeds", function(uv)
    local ch, name = shared(4); local l = {}
    if not ch:getfd() then return pending("no descriptors here") end
    local poll = uv.new_poll(ch:getfd())
    local thread = uv.new_thread(function(cpath, n)
      package.cpath = cpath
      local q = require("queue")
      local there = q.shared(n)
      for i = 1, 20 do if i % 5 == 0 then q.sleep(1) end there:send(i) end
      there:close()
    end, package.cpath, name)
    poll:start("r", function() local v, open = ch:try_receive(); if open then add(l, v) elseif ch:is_closed() then poll:close() end end)
    uv.run(); thread:join(); eq(#l, 20); eq(l[20], 20)
  end)

  with("luv", "hosts a run whose jobs yield values to it, above one at a time", function(uv)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local q, l, others, done = crew(3), {}, 0, nil
    for i = 1, 3 do q:push(function() eq(coroutine.yield("sleep", i * 2), "slept"); l[#l + 1] = i end) end
    local beat = uv.new_timer(); beat:start(1, 1, function() others = others + 1 end)
    local co = coroutine.create(function() done = q:run(); beat:close() end)
    -- What a job yields is an order to the host.
    local function step(...)
      local _, order, ms = assert(coroutine.resume(co, ...))
      if order == "sleep" then local t = uv.new_timer(); t:start(ms, 0, function() t:close(); step("slept") end) end
    end
    step(); uv.run(); eq(done, 3); list(l, "1 2 3"); G.fine(q); ok(others > 0)
  end)
end)

describe("copas", function()
  with("copas", "runs a queue of many whose jobs wait in its way", function(copas)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local client, peer = H.connection()
    local q, l, done = crew(2), {}, nil
    for _ = 1, 2 do q:push(function() add(l, (copas.receive(peer))) end) end
    copas.addthread(function() done = q:run() end)
    copas.addthread(function() add(l, "other"); client:send("a\nb\n") end)
    local last = queue.now() + H.patience(5000)
    while not done and queue.now() < last do copas.step(0.01) end
    eq(done, 2); list(l, "other a b"); G.fine(q); client:close(); peer:close()
  end)

  with("copas", "feeds jobs in flight between the polls", function(copas)
    local client, peer = H.connection()
    local q, ch, l = crew(), queue.channel(10), {}
    q:push(function() for _ = 1, 3 do add(l, (ch:receive())) end end)
    copas.addthread(function() for _ = 1, 3 do ch:try_send((copas.receive(peer))) end end)
    client:send("a\nb\nc\n")
    local last = queue.now() + H.patience(5000)
    q:poll()
    while q:in_flight() > 0 and queue.now() < last do copas.step(0.005); q:poll() end
    list(l, "a b c"); G.fine(q); client:close(); peer:close()
  end)
end)
