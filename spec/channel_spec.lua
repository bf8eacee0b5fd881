--- Channels: values in order, room, time limits, closing, iteration.
local H = require("spec.helper")
local queue, eq, ok, results, pack = H.queue, H.eq, H.ok, H.results, H.pack

describe("a buffered channel", function()
  it("gives values in the order they came, and knows its fill", function()
    local ch = queue.channel(3)
    eq(ch:cap(), 3); eq(ch:len(), 0); eq(#ch, 0); eq(tostring(ch), "channel(0/3)")
    results(pack(ch:send("a")), true); results(pack(ch:send("b")), true)
    eq(ch:len(), 2); eq(#ch, 2); eq(tostring(ch), "channel(2/3)")
    results(pack(ch:receive()), "a", true); results(pack(ch:receive()), "b", true); eq(ch:len(), 0)
  end)

  it("keeps the order round and round the buffer", function()
    local ch, sent, got = queue.channel(7), 0, 0
    for round = 1, 500 do
      for _ = 1, round % 8 do if ch:try_send(sent + 1) then sent = sent + 1 end end
      for _ = 1, (round * 3) % 8 do
        local v, okay = ch:try_receive()
        if okay then got = got + 1; eq(v, got) end
      end
      eq(ch:len(), sent - got)
    end
    ok(sent > 500)
  end)

  it("can have room for a great many without taking memory for them", function()
    for _, cap in ipairs{ 2 ^ 20, 2 ^ 31, 2 ^ 32, 2 ^ 53 } do
      local before = collectgarbage("count")
      local ch = queue.channel(cap)
      eq(ch:cap(), cap); eq(tostring(ch), ("channel(0/%.0f)"):format(cap))
      ch:send(1); eq((ch:receive()), 1)
      H.between(collectgarbage("count") - before, -1e9, 512, "KiB")
    end
  end)

  it("of capacity 1 is full with one value", function()
    local ch = queue.channel(1.0)
    eq(ch:try_send(1), true); results(pack(ch:try_send(2)), false, "full"); eq(ch:cap(), 1)
  end)
end)

describe("values", function()
  it("of every kind but nil come back as themselves", function()
    local ch = queue.channel(1)
    local self_ref = {}; self_ref.me = self_ref
    for _, v in ipairs{ self_ref, H.noop, print, coroutine.create(H.noop), io.stdout, 1.5, 7, -0.0, 2 ^ 63, math.huge,
      "s", "", "a\0b", ("x"):rep(100000), true, false, queue.new(), ch } do
      ch:send(v)
      local got, okay = ch:receive()
      eq(rawequal(got, v), true, tostring(v)); eq(type(got), type(v)); eq(okay, true)
    end
  end)

  it("keep their metatables", function()
    local ch, v = queue.channel(1), setmetatable({}, { __eq = function() error("compared") end })
    ch:send(v); ok(rawequal(ch:receive(), v))
  end)

  it("keep integers and floats apart", function()
    if not H.integers then return pending("of 5.3 and later") end
    local ch = queue.channel(4)
    ch:send(1); ch:send(1.0); ch:send(math.maxinteger)
    eq(math.type((ch:receive())), "integer"); eq(math.type((ch:receive())), "float"); eq((ch:receive()), math.maxinteger)
  end)

  it("that are NaN stay so", function()
    local ch = queue.channel(1); ch:send(0 / 0); local v, okay = ch:receive(); ok(v ~= v); eq(okay, true)
  end)

  it("that are false are told from nothing by the second result", function()
    local ch = queue.channel(2); ch:send(false); eq(ch:try_send(false), true)
    results(pack(ch:receive()), false, true); results(pack(ch:try_receive()), false, true)
    results(pack(ch:try_receive()), nil, false, "empty")
  end)
end)

describe("an unbuffered channel", function()
  it("has no room: len and cap are 0, nothing is held", function()
    for _, ch in ipairs{ queue.channel(), queue.channel(0), queue.channel(nil) } do
      eq(ch:cap(), 0); eq(ch:len(), 0); eq(#ch, 0); eq(tostring(ch), "channel(0/0)")
      results(pack(ch:try_send(1)), false, "full"); results(pack(ch:try_receive()), nil, false, "empty")
      eq(ch:len(), 0)
    end
  end)

  it("keeps nothing of a send that timed out", function()
    local ch = queue.channel()
    results(pack(ch:send(1, 5)), false, "timeout"); results(pack(ch:send(2, 0)), false, "timeout")
    results(pack(ch:try_receive()), nil, false, "empty"); results(pack(ch:receive(5)), nil, false, "timeout")
    results(pack(ch:try_send(3)), false, "full")
  end)

  it("keeps nothing of a receive that timed out", function()
    local ch = queue.channel()
    results(pack(ch:receive(5)), nil, false, "timeout"); results(pack(ch:try_send(1)), false, "full")
  end)
end)

describe("a time limit", function()
  it("of 0 or less tries once", function()
    local ch = queue.channel(1)
    for _, ms in ipairs{ 0, -1, -math.huge } do
      results(pack(ch:receive(ms)), nil, false, "timeout")
      results(pack(ch:send("x", ms)), true); results(pack(ch:send("y", ms)), false, "timeout")
      results(pack(ch:receive(ms)), "x", true)
    end
  end)

  it("is kept, and never cut short", function()
    local ch = queue.channel(1)
    for _, ms in ipairs{ 0.5, 5, 20.5 } do
      local t = H.timed(function() results(pack(ch:receive(ms)), nil, false, "timeout") end)
      H.between(t, ms, ms + H.patience(500))
    end
    ch:send(1)
    local t = H.timed(function() results(pack(ch:send(2, 20)), false, "timeout") end)
    H.between(t, 20, H.patience(1000)); eq(ch:len(), 1)
  end)

  it("costs no time where the call need not wait", function()
    local ch = queue.channel(1)
    local t = H.timed(function() ch:send(1, 60000); ch:receive(60000) end); H.between(t, 0, H.patience(1000))
    t = H.timed(function() ch:send(1, 1e300); ch:receive(2 ^ 63) end); H.between(t, 0, H.patience(1000))
    t = H.timed(function() ch:send(1, math.huge); ch:receive(math.huge) end); H.between(t, 0, H.patience(1000))
  end)

  it("burns no processor time while it runs", function()
    local ch = queue.channel(); local cpu = os.clock()
    ch:receive(200); ch:send(1, 200)
    H.between(os.clock() - cpu, 0, 0.1 * H.slow, "seconds of processor time")
  end)

  it("lets a value outrank closed, and closed outrank the time", function()
    local ch = queue.channel(1); ch:send("v"); ch:close()
    results(pack(ch:receive(0)), "v", true); results(pack(ch:receive(0)), nil, false, "closed")
  end)

  it("leaves nothing behind: the next value goes to the next receive", function()
    local ch = queue.channel(2)
    for _ = 1, 20 do ch:receive(0.1) end
    ch:send(1); ch:send(2); results(pack(ch:send(3, 0.1)), false, "timeout")
    results(pack(ch:receive()), 1, true); results(pack(ch:receive()), 2, true)
    results(pack(ch:try_receive()), nil, false, "empty")
  end)
end)

describe("close", function()
  it("lets what is buffered be received, then says closed", function()
    local ch = queue.channel(4); ch:send(1); ch:send(2)
    eq(ch:is_closed(), false); ch:close(); eq(ch:is_closed(), true); eq(tostring(ch), "channel(2/4, closed)"); eq(ch:len(), 2)
    results(pack(ch:receive()), 1, true); results(pack(ch:try_receive()), 2, true)
    results(pack(ch:receive()), nil, false, "closed"); results(pack(ch:try_receive()), nil, false, "closed")
    local t = H.timed(function() results(pack(ch:receive(60000)), nil, false, "closed") end)
    H.between(t, 0, H.patience(1000)); eq(tostring(ch), "channel(0/4, closed)")
  end)

  it("is idempotent", function()
    local ch = queue.channel(1); ch:close(); ch:close(); eq(ch:is_closed(), true)
  end)

  it("refuses try_send and raises for send, full or not", function()
    for _, cap in ipairs{ 0, 1, 2 } do
      local ch = queue.channel(cap); ch:try_send("kept"); ch:close(); local n = ch:len()
      results(pack(ch:try_send(1)), false, "closed")
      H.raises(": send on closed channel$", function() ch:send(1) end)
      H.raises(": send on closed channel$", function() ch:send(1, 0) end)
      H.raises(": send on closed channel$", function() ch:send(1, 50) end)
      eq(ch:len(), n)
    end
  end)

  it("is seen through every handle of the channel", function()
    local ch, carrier = queue.channel(1), queue.channel(1)
    carrier:send(ch); carrier:receive():close(); eq(ch:is_closed(), true)
  end)
end)

describe("iter", function()
  it("receives until closed and drained", function()
    local ch, l = queue.channel(5), {}
    for i = 1, 4 do ch:send(i) end
    ch:close()
    for v in ch:iter() do l[#l + 1] = v end
    H.list(l, "1 2 3 4"); eq(ch:len(), 0)
    for _ in ch:iter() do error("a drained channel has nothing") end
  end)

  it("does not take false for the end", function()
    local ch, n = queue.channel(3), 0
    ch:send(false); ch:send(true); ch:send(false); ch:close()
    for v in ch:iter() do n = n + 1; eq(v, n == 2) end
    eq(n, 3)
  end)

  it("leaves the rest, and the channel open, where the loop is left", function()
    local ch = queue.channel(3)
    for i = 1, 3 do ch:send(i) end
    for v in ch:iter() do if v == 1 then break end end
    eq(ch:len(), 2); eq(ch:is_closed(), false); results(pack(ch:receive()), 2, true)
  end)

  it("sees what is sent and closed inside the loop", function()
    local ch, n = queue.channel(1), 0
    ch:send(1)
    for v in ch:iter() do n = n + v; if v < 5 then ch:send(v + 1) else ch:close() end end
    eq(n, 15)
  end)

  it("waits for a timer's values", function()
    local l = {}
    for v in queue.after(5, "late"):iter() do l[#l + 1] = v end
    H.list(l, "late")
  end)

  it("holds the channel alive", function()
    local function source() local ch = queue.channel(100); for i = 1, 100 do ch:send(i) end ch:close(); return ch:iter() end
    local n, next_value = 0, source()
    while true do
      if n % 10 == 0 then collectgarbage() end
      local v = next_value()
      if v == nil then break end
      n = n + 1; eq(v, n)
    end
    eq(n, 100)
    n = 0
    for _ in queue.tick(1):iter() do collectgarbage(); n = n + 1; if n == 3 then break end end
    eq(n, 3)
  end)

  it("raises a wait without end at the loop", function()
    local ch = queue.channel(1); ch:send(1)
    H.raises("deadlock: .*channel%(0/1%) can never complete", function() for v in ch:iter() do eq(v, 1) end end)
  end)
end)

describe("a wait that nothing can end", function()
  it("raises, and names the call and the channel", function()
    local one, none, full = queue.channel(1), queue.channel(), queue.channel(1); full:send("kept")
    local text = "deadlock: %s can never complete"
    H.has(H.raises("", function() one:receive() end), text:format("receive on channel(0/1)"))
    H.has(H.raises("", function() one:receive(math.huge) end), text:format("receive on channel(0/1)"))
    H.has(H.raises("", function() none:receive() end), text:format("receive on channel(0/0)"))
    H.has(H.raises("", function() none:send(1) end), text:format("send on channel(0/0)"))
    H.has(H.raises("", function() none:send(1, math.huge) end), text:format("send on channel(0/0)"))
    H.has(H.raises("", function() full:send(2) end), text:format("send on channel(1/1)"))
  end)

  it("leaves nothing behind", function()
    local ch, full = queue.channel(), queue.channel(1); full:send("kept")
    pcall(ch.send, ch, 1); pcall(ch.receive, ch); pcall(full.send, full, 2)
    results(pack(ch:try_receive()), nil, false, "empty"); results(pack(ch:try_send(1)), false, "full")
    results(pack(full:receive()), "kept", true); results(pack(full:try_receive()), nil, false, "empty")
  end)

  it("raises inside a job, whatever else is pending, and pcall catches it", function()
    local q, ch, l = queue.new(), queue.channel(1), {}
    q:push(function() l[#l + 1] = tostring(pcall(ch.receive, ch)) end)
    q:push(function() ch:receive() end)
    q:push(function() l[#l + 1] = ch:receive() end, { retries = 1 })
    q:push(function() ch:send("late") end)
    eq(q:run(), 5); H.list(l, "false late"); local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 1); eq(m.succeeded, 3)
  end)
end)

describe("<close>", function()
  it("closes a channel at the end of its block", function()
    if not H.lua54 then return pending("the syntax is of 5.4") end
    local ch = load("local queue = ... local ch <close> = queue.channel(1) ch:send('kept') return ch")(queue)
    eq(ch:is_closed(), true); results(pack(ch:receive()), "kept", true)
  end)
end)
