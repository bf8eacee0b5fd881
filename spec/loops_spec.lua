--- A queue in the event loops of others: polled by one, or run by a coroutine of one.
local H = require("spec.helper")
local queue, eq, ok = H.queue, H.eq, H.ok

local with = H.with(function() return it, pending end)

describe("luv", function()
  with("luv", "polls a queue from a timer until it is empty", function(uv)
    local q, n, beats = queue.new(), 0, 0
    for i = 1, 20 do q:push(function() n = n + 1 end, { delay_ms = i }) end
    local beat, poll = uv.new_timer(), uv.new_timer()
    beat:start(1, 1, function() beats = beats + 1 end)
    poll:start(0, 2, function()
      q:poll()
      if q:empty() then poll:close(); beat:close() end
    end)
    uv.run()
    eq(n, 20); ok(beats > 0, "the loop stood still")
  end)

  with("luv", "sleeps exactly until the queue has something to do, told by next_due", function(uv)
    local q, n, polls = queue.new(), 0, 0
    for i = 1, 5 do q:push(function() n = n + 1; if n < 8 then q:push(function() n = n + 1 end) end end, { delay_ms = i * 5 }) end
    local t = uv.new_timer()
    local function turn()
      polls = polls + 1; q:poll()
      local due = q:next_due()
      if due then t:start(math.ceil(due), 0, turn) else t:close() end
    end
    t:start(0, 0, turn)
    uv.run()
    eq(q:empty(), true); ok(n >= 8); ok(polls < 60, polls .. " polls")
  end)

  with("luv", "polls a few jobs a turn from an idle handle", function(uv)
    local q, n, turns = queue.new(), 0, 0
    for _ = 1, 100 do q:push(function() n = n + 1 end) end
    local idle = uv.new_idle()
    idle:start(function() turns = turns + 1; q:poll(10); if q:empty() then idle:close() end end)
    uv.run()
    eq(n, 100); eq(turns, 10)
  end)

  with("luv", "resumes a job that waits for a callback of its", function(uv)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local q, l = queue.new(), {}
    local function sleep(ms)
      local co, t = coroutine.running(), uv.new_timer()
      t:start(ms, 0, function() t:close(); assert(coroutine.resume(co)) end)
      coroutine.yield()
    end
    q:push(function() l[#l + 1] = "a"; sleep(5); l[#l + 1] = "b" end); q:push(function() sleep(1); l[#l + 1] = "c" end)
    local ended
    coroutine.wrap(function() ended = q:run() end)()
    uv.run()
    eq(ended, 2); H.list(l, "a b c"); eq(q:metrics().failed, 0)
  end)
end)

describe("cqueues", function()
  with("cqueues", "runs a queue whose jobs wait in its way, beside others", function(cqueues)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local cq, q, l, beats = cqueues.new(), queue.new(), {}, 0
    for i = 1, 5 do q:push(function() cqueues.sleep(0.01); l[#l + 1] = i end, { priority = -i }) end
    local done
    cq:wrap(function() done = q:run() end)
    cq:wrap(function() while not done do beats = beats + 1; cqueues.sleep(0.002) end end)
    assert(cq:loop())
    eq(done, 5); H.list(l, "1 2 3 4 5"); ok(beats > 5, "the others stood still"); eq(q:metrics().failed, 0)
  end)

  with("cqueues", "shares a queue between two coroutines that run it", function(cqueues)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local cq, q, n, counts = cqueues.new(), queue.new(), 0, {}
    for _ = 1, 10 do q:push(function() cqueues.sleep(0.005); n = n + 1 end) end
    local t = H.timed(function()
      for i = 1, 2 do cq:wrap(function() local count = q:run(); counts[i] = count end) end
      assert(cq:loop())
    end)
    eq(n, 10); eq(counts[1] + counts[2], 10); ok(counts[1] > 0 and counts[2] > 0, "one did it all")
    H.between(t, 25, H.patience(2000))
  end)

  with("cqueues", "retries a job that waited in its way and raised", function(cqueues)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local cq, q, a = cqueues.new(), queue.new(), 0
    q:push(function() a = a + 1; cqueues.sleep(0.001); if a < 3 then error("x") end end, { retries = 5 })
    cq:wrap(function() q:run() end); assert(cq:loop())
    eq(a, 3); eq(q:metrics().succeeded, 1)
  end)
end)

describe("copas", function()
  with("copas", "runs a queue whose jobs wait in its way, beside others", function(copas)
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    local client, peer = H.connection()
    local q, l, done = queue.new(), {}, nil
    for i = 1, 2 do q:push(function() l[#l + 1] = i; local line = copas.receive(peer); l[#l + 1] = line end) end
    copas.addthread(function() done = q:run() end)
    copas.addthread(function() l[#l + 1] = "other"; client:send("a\nb\n") end)
    local last = queue.now() + H.patience(5000)
    while not done and queue.now() < last do copas.step(0.01) end
    eq(done, 2); H.list(l, "1 other a 2 b"); eq(q:metrics().failed, 0)
    client:close(); peer:close()
  end)

  with("copas", "pushes from its threads, and is stepped between the polls", function(copas)
    local client, peer = H.connection()
    local q, l = queue.new(), {}
    copas.addthread(function()
      for _ = 1, 3 do
        local line = copas.receive(peer)
        q:push(function() l[#l + 1] = line end, { delay_ms = 2 })
      end
    end)
    client:send("a\nb\nc\n")
    local last = queue.now() + H.patience(5000)
    while #l < 3 and queue.now() < last do
      copas.step((q:next_due() or 10) / 1000)
      q:poll()
    end
    H.list(l, "a b c"); client:close(); peer:close()
  end)
end)

describe("luasocket", function()
  with("socket", "serves a connection from a select loop that next_due paces", function(socket)
    local q, l = queue.new(), {}
    local server = assert(socket.bind("127.0.0.1", 0))
    local _, port = server:getsockname()
    local client = assert(socket.connect("127.0.0.1", port)); client:settimeout(5)
    q:push(function() client:send("hello\n") end, { delay_ms = 10 })
    q:push(function() l[#l + 1] = "late" end, { delay_ms = 30 })
    local peer
    local last = queue.now() + H.patience(5000)
    while (#l < 2) and queue.now() < last do
      local due = q:next_due() or 50
      local readable = socket.select({ server, peer }, nil, due / 1000)
      if readable[server] then peer = server:accept(); peer:settimeout(5) end
      if peer and readable[peer] then q:push(function() l[#l + 1] = peer:receive() end, { priority = 1 }) end
      q:poll()
    end
    H.list(l, "hello late")
    client:close(); peer:close(); server:close()
  end)

  with("socket", "agrees with its clock", function(socket)
    -- One of them is not monotonic, and the two are read one after the other: another try forgives a clock that was
    -- set and a pause in between.
    H.eventually(3, function()
      local a, b = socket.gettime(), queue.now()
      socket.sleep(0.1)
      local wall, mono = (socket.gettime() - a) * 1000, queue.now() - b
      H.between(mono - wall, -20, 20, "difference")
    end)
  end)
end)
