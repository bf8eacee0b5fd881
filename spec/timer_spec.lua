--- Timers: after and tick, their time, their end, and the threads behind them.
local H = require("spec.helper")
local queue, eq, ok, results, pack = H.queue, H.eq, H.ok, H.results, H.pack
local long = H.patience(5000)

describe("after", function()
  it("gives its value once, then is closed", function()
    local ch = queue.after(10, "ding")
    eq(ch:cap(), 1); eq(ch:is_closed(), false); eq(tostring(ch), "channel(0/1)")
    results(pack(ch:receive(long)), "ding", true); results(pack(ch:receive(long)), nil, false, "closed")
    results(pack(ch:try_receive()), nil, false, "closed"); eq(ch:is_closed(), true); eq(tostring(ch), "channel(0/1, closed)")
  end)

  it("gives true by default, keeps false, and takes any value", function()
    local t = setmetatable({}, { __eq = function() error("compared") end })
    results(pack(queue.after(1):receive(long)), true, true)
    results(pack(queue.after(1, nil):receive(long)), true, true)
    results(pack(queue.after(1, false):receive(long)), false, true)
    ok(rawequal(queue.after(1, t):receive(long), t))
    results(pack(queue.after(1, H.noop):receive(long)), H.noop, true)
  end)

  it("leaves the caller's thread as it was: how punctually that is woken is its own business", function()
    local function slack()
      local file = io.open("/proc/self/timerslack_ns"); local text = file and file:read("*a")
      if file then file:close() end
      return text
    end
    local before = slack()
    if not before then return pending("the system does not tell") end
    local ch = queue.after(1000); eq(slack(), before); ch:stop()
  end)

  it("is not early", function()
    for _, ms in ipairs{ 0.5, 3, 12.5, 30 } do
      local t = H.timed(function() results(pack(queue.after(ms, 1):receive(long)), 1, true) end)
      H.between(t, ms, ms + H.patience(500))
    end
    local ch = queue.after(150, 1)
    results(pack(ch:try_receive()), nil, false, "empty"); results(pack(ch:receive(10)), nil, false, "timeout"); eq(ch:len(), 0)
    results(pack(ch:receive(long)), 1, true)
  end)

  it("of nothing or less comes at once", function()
    for _, ms in ipairs{ 0, -3, -math.huge } do
      local t = H.timed(function() results(pack(queue.after(ms, "now"):receive(long)), "now", true) end)
      H.between(t, 0, H.patience(500))
    end
  end)

  it("feeds a wait without a time limit, and a job's wait", function()
    results(pack(queue.after(10, "x"):receive()), "x", true)
    results(pack(queue.after(10, "x"):receive(math.huge)), "x", true)
    local q, got = queue.new(), nil
    q:push(function() got = queue.after(5, "job"):receive() end); eq(q:run(), 1); eq(got, "job")
  end)

  it("may be of any size: nothing wraps, nothing fires", function()
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 32, 2 ^ 53, 2 ^ 63, 2 ^ 64, 1e300, math.huge } do
      local ch = queue.after(ms, 1)
      results(pack(ch:receive(3)), nil, false, "timeout"); eq(ch:is_closed(), false); ch:stop()
    end
  end)

  it("without end feeds nothing: a wait on it raises", function()
    local ch = queue.after(math.huge)
    H.raises("deadlock: receive on channel%(0/1%) can never complete", function() ch:receive() end)
    results(pack(ch:receive(1)), nil, false, "timeout"); ch:stop()
  end)

  it("stopped before its time gives nothing", function()
    local ch = queue.after(20, "x"); ch:stop(); eq(ch:is_closed(), true)
    results(pack(ch:receive()), nil, false, "closed"); queue.sleep(30); results(pack(ch:receive()), nil, false, "closed")
    ch:stop()
  end)

  it("stopped after its time drops what was not received", function()
    local ch = queue.after(1, "x"); ok(H.wait_for(5000, function() return ch:len() == 1 end))
    eq(tostring(ch), "channel(1/1, closed)"); ch:stop(); eq(ch:len(), 0); results(pack(ch:receive()), nil, false, "closed")
  end)

  it("closed before its time is cancelled, after its time keeps its value", function()
    local ch = queue.after(20, "x"); ch:close(); eq(ch:is_closed(), true); queue.sleep(30)
    results(pack(ch:receive()), nil, false, "closed")
    ch = queue.after(1, "x"); ok(H.wait_for(5000, function() return ch:len() == 1 end)); ch:close()
    results(pack(ch:receive()), "x", true); results(pack(ch:receive()), nil, false, "closed")
  end)

  it("leaves the others' time alone where one is cancelled", function()
    local start = queue.now()
    local a, b, c = queue.after(40, "a"), queue.after(30, "b"), queue.after(20, "c")
    c:stop(); b:close()
    results(pack(a:receive(long)), "a", true); H.between(queue.now() - start, 40, H.patience(1000))
  end)

  it("runs beside the others, each on its own time", function()
    local l, q = {}, queue.new()
    local timers, start = {}, queue.now()
    for i, ms in ipairs{ 60, 5, 30 } do timers[i] = queue.after(ms, ms) end
    for i = 1, 3 do q:push(function() l[#l + 1] = timers[i]:receive() end) end
    eq(q:run(), 3)
    H.list(l, "60 5 30"); H.between(queue.now() - start, 60, H.patience(1000))
  end)
end)

describe("tick", function()
  it("gives true every interval, first after one", function()
    local start = queue.now(); local t = queue.tick(10)
    eq(t:cap(), 1); eq(t:len(), 0)
    for i = 1, 5 do
      results(pack(t:receive(long)), true, true)
      H.between(queue.now() - start, i * 10, i * 10 + H.patience(500), "beat " .. i)
    end
    t:stop()
  end)

  it("is never early over many beats", function()
    local start = queue.now(); local t = queue.tick(2)
    for i = 1, 100 do
      t:receive(long)
      if queue.now() - start < i * 2 then error(("beat %d after %g ms"):format(i, queue.now() - start)) end
    end
    t:stop()
  end)

  it("keeps its phase: after eighty beats some still come right on time", function()
    H.eventually(5, function()
      local start, least = queue.now(), 10
      local t = queue.tick(10)
      for i = 1, 100 do
        t:receive(long)
        if i > 80 then least = math.min(least, (queue.now() - start) % 10) end
      end
      t:stop(); H.between(least, 0, H.patience(2), "milliseconds behind the phase")
    end)
  end)

  it("drops ticks that nobody takes, and never bursts", function()
    -- The next beat may come in between.
    H.eventually(3, function()
      local t = queue.tick(20)
      queue.sleep(110); eq(t:len(), 1)
      results(pack(t:try_receive()), true, true); results(pack(t:try_receive()), nil, false, "empty"); eq(t:len(), 0)
      t:stop()
    end)
  end)

  it("keeps its phase over a pause", function()
    H.eventually(5, function()
      local start = queue.now(); local t = queue.tick(100)
      queue.sleep(350)
      t:receive(long); local first = queue.now() - start
      t:receive(long); local second = queue.now() - start
      t:stop()
      H.between(first, 350, 395, "buffered"); H.between(second, 400, 440, "the next beat")
    end)
  end)

  it("gives nothing after a stop", function()
    local t = queue.tick(2); t:receive(long); queue.sleep(10)
    t:stop(); eq(t:is_closed(), true); eq(t:len(), 0); results(pack(t:receive()), nil, false, "closed")
    queue.sleep(10); results(pack(t:try_receive()), nil, false, "closed"); t:stop(); t:close()
    eq(tostring(t), "channel(0/1, closed)")
  end)

  it("closed keeps the tick that was buffered, and gives no more", function()
    local t = queue.tick(2); ok(H.wait_for(5000, function() return t:len() == 1 end)); t:close(); queue.sleep(10)
    results(pack(t:receive()), true, true); results(pack(t:receive()), nil, false, "closed")
  end)

  it("may be very fast or very slow", function()
    for _, ms in ipairs{ 0.5, 0.01, 1e-6 } do
      local t = queue.tick(ms); for _ = 1, 5 do results(pack(t:receive(long)), true, true) end t:stop()
    end
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 53, 1e300 } do
      local t = queue.tick(ms); results(pack(t:receive(2)), nil, false, "timeout"); t:stop()
    end
  end)

  it("feeds a loop", function()
    local t, n = queue.tick(2), 0
    for v in t:iter() do eq(v, true); n = n + 1; if n == 5 then t:stop() end end
    eq(n, 5)
  end)

  it("with no interval raises", function()
    H.raises("interval must be > 0", function() queue.tick(0) end)
    H.raises("interval must be > 0", function() queue.tick(-1) end)
    H.raises("interval must be > 0", function() queue.tick(-math.huge) end)
  end)
end)

describe("a timer", function()
  it("takes no sends", function()
    local a, t = queue.after(1e6), queue.tick(1e6)
    H.raises("", function() a:send(1) end); H.raises("", function() a:try_send(1) end)
    H.raises("", function() a:send(1, 5) end); H.raises("", function() t:send(1) end); H.raises("", function() t:try_send(1) end)
    eq(a:len(), 0); eq(t:len(), 0); a:stop(); t:stop()
  end)

  it("alone can be stopped", function()
    local ch = queue.channel(1); ch:send(1)
    H.raises("", function() ch:stop() end); eq(ch:is_closed(), false); eq(ch:len(), 1)
  end)

  it("is served by one thread, which ends with stop, close, or its time", function()
    local before = H.quiet_threads()
    if not before then return pending("the system does not tell of threads") end
    local function settled(n) return H.wait_for(5000, function() return H.threads() == n end) end
    local many = {}
    for i = 1, 20 do many[i] = i % 2 == 0 and queue.after(1e6) or queue.tick(1e6) end
    eq(H.threads(), before + 20)
    for i = 1, 10 do many[i]:stop() end
    ok(settled(before + 10), "stopped"); for i = 11, 20 do many[i]:close() end
    ok(settled(before), "closed")
    local done = queue.after(1); ok(settled(before), "over"); eq((done:receive()), true)
  end)

  it("that is dropped ends its thread when it is collected", function()
    local before = H.quiet_threads()
    if not before then return pending("the system does not tell of threads") end
    for _ = 1, 20 do queue.after(1e6); queue.tick(1e6) end
    H.collect()
    ok(H.wait_for(5000, function() return H.threads() == before end))
  end)

  it("is stopped at the end of its <close> block", function()
    if not H.lua54 then return pending("the syntax is of 5.4") end
    local t, a = load([[local queue = ...
      local t <close> = queue.tick(1); local a <close> = queue.after(1, "x"); queue.sleep(20); return t, a]])(queue)
    results(pack(t:receive()), nil, false, "closed"); results(pack(a:receive()), nil, false, "closed")
  end)

  it("of many at once gives each its own value", function()
    local timers, n = {}, H.count(500)
    for i = 1, n do timers[i] = queue.after(i % 20, i) end
    for i = 1, n do results(pack(timers[i]:receive(long)), i, true) end
  end)

  it("races with its stop without harm", function()
    for i = 1, H.count(500) do
      local t = queue.after(0.05, i)
      if i % 3 > 0 then queue.sleep(0.05 * (i % 3)) end
      t:stop(); results(pack(t:receive()), nil, false, "closed"); eq(t:len(), 0)
    end
  end)

  it("that is about to fire is never taken for a wait without end", function()
    for i = 1, H.count(1000) do results(pack(queue.after((i % 10) / 50, i):receive()), i, true) end
  end)
end)
