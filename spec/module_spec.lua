--- The module table: what is in it, the clock, sleep, and what its objects look like from Lua.
local H = require("spec.helper")
local queue, eq, ok = H.queue, H.eq, H.ok

describe("module", function()
  it("is a table that require hands out once, and sets no global", function()
    eq(type(queue), "table"); eq(require("queue"), queue)
    eq(rawget(_G, "queue"), nil)
  end)

  it("tells its version", function()
    eq(queue.VERSION, "0.1.0"); eq(queue._VERSION, "queue 0.1.0")
  end)

  it("has the functions of the contract", function()
    for _, name in ipairs{ "new", "channel", "after", "tick", "sleep", "now" } do
      eq(type(queue[name]), "function", name)
    end
  end)

  it("loads inside a coroutine that dies, and works on", function()
    local r = H.run("load_in_coroutine.lua")
    eq(r.err, ""); eq(r.out, "queue(pending=0) channel(0/1) ran 1\n"); eq(r.code, 0)
  end)
end)

describe("objects", function()
  it("are userdata with a name, a length and a text, on every Lua", function()
    local q, ch, t = queue.new(), queue.channel(2), queue.after(1e6)
    for _, case in ipairs{ { q, "queue" }, { ch, "channel" }, { t, "channel" } } do
      local mt = debug.getmetatable(case[1])
      eq(type(case[1]), "userdata"); eq(mt.__name, case[2]); eq(#case[1], 0)
      eq(type(mt.__tostring), "function"); eq(type(mt.__len), "function"); ok(mt.__gc, "__gc")
      if H.lua54 then ok(mt.__close, "__close") end
    end
    t:stop()
  end)

  it("are equal to themselves alone", function()
    ok(queue.new() ~= queue.new()); ok(queue.channel() ~= queue.channel())
    local q = queue.new(); local t = { [q] = "found" }; eq(t[q], "found")
  end)

  it("have no field that is not a method, and take none", function()
    local q, ch = queue.new(), queue.channel()
    eq(q.nosuch, nil); eq(ch.nosuch, nil); eq(q[1], nil); eq(ch[q], nil)
    ok(not pcall(function() q.size = 5 end), "a queue took a field")
    ok(not pcall(function() ch.len = 5 end), "a channel took a field")
    eq(q:size(), 0); eq(ch:len(), 0)
  end)

  it("keep queues and channels apart", function()
    local q, ch = queue.new(), queue.channel()
    eq(q.send, nil); eq(q.receive, nil); eq(ch.push, nil); eq(ch.run, nil)
  end)
end)

describe("now", function()
  it("is a float of milliseconds that never goes back", function()
    local last = queue.now()
    eq(type(last), "number")
    if H.integers then eq(math.type(last), "float") end
    for _ = 1, 10000 do
      local t = queue.now()
      if t < last then error("the clock went back from " .. last .. " to " .. t) end
      last = t
    end
  end)

  it("counts thousands to the second of the processor's clock", function()
    local cpu, start = os.clock(), queue.now()
    while os.clock() - cpu < 0.05 do H.noop() end
    H.between(queue.now() - start, 45, 20000, "50 ms of work")
  end)

  it("tells parts of a millisecond", function()
    local parts = 0
    for _ = 1, 1000 do
      local t = queue.now()
      if t ~= math.floor(t) then parts = parts + 1 end
    end
    ok(parts > 500, "whole milliseconds only")
  end)
end)

describe("sleep", function()
  it("waits as long as it is told, never shorter", function()
    for _, ms in ipairs{ 0.5, 1, 7.25, 30 } do
      local t = H.timed(function() queue.sleep(ms) end)
      H.between(t, ms, ms + H.patience(500), "sleep(" .. ms .. ")")
    end
  end)

  it("of nothing or less does not wait", function()
    for _, ms in ipairs{ 0, -1, -1e300, -math.huge } do
      local t = H.timed(function() queue.sleep(ms) end)
      H.between(t, 0, H.patience(200), "sleep(" .. ms .. ")")
    end
  end)

  it("burns no processor time", function()
    local cpu = os.clock()
    queue.sleep(300)
    H.between(os.clock() - cpu, 0, 0.1 * H.slow, "seconds of processor time")
  end)

  it("without end raises as a deadlock", function()
    H.raises("deadlock: sleep", function() queue.sleep(math.huge) end)
  end)

  it("waits inside a coroutine and inside a job", function()
    local t = H.timed(function() coroutine.wrap(function() queue.sleep(20) end)() end)
    H.between(t, 20, H.patience(1000))
    local q = queue.new(); q:push(function() queue.sleep(20) end)
    t = H.timed(function() return q:run() end)
    H.between(t, 20, H.patience(1000))
  end)

  it("waits inside the callbacks of C functions", function()
    local t = H.timed(function() return (("x"):gsub("x", function() queue.sleep(10) end)) end)
    H.between(t, 10, H.patience(1000), "gsub")
    t = H.timed(function() table.sort({ 2, 1 }, function(a, b) queue.sleep(10); return a < b end) end)
    H.between(t, 10, H.patience(1000), "sort")
  end)
end)
