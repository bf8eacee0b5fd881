--- Misuse of every function: a plain string in the stock library's words, at the caller's line, and nothing changed.
local H = require("spec.helper")
local queue, eq, noop = H.queue, H.eq, H.noop
local nan = 0 / 0

-- The objects that the calls below are made on; fresh for each.
local q, ch, full, closed, timer
local function fresh()
  q, ch, full, closed, timer = queue.new(), queue.channel(2), queue.channel(1), queue.channel(1), queue.after(1e6)
  full:send("kept"); closed:close()
end

--- What a user's thing is called in "got …": by its name where the interpreter's own errors do so.
local file = "FILE%*"
if not H.integers then file = "userdata" end

local function arg(n, name, extra) return ("bad argument #%d to '%s' %%(%s%%)"):format(n, name, extra) end
local function option(key, name, extra) return ("bad option '%s' to '%s' %%(%s%%)"):format(key, name, extra) end

-- Each line: what is wrong, what the message must hold (a pattern), and the call, on a line of its own.
local cases = {
  -- module
  { "new of a number", arg(1, "new", "table expected, got number"), function() queue.new(5) end },
  { "new of a string", arg(1, "new", "table expected, got string"), function() queue.new("x") end },
  { "new of false", arg(1, "new", "table expected, got boolean"), function() queue.new(false) end },
  { "new of a queue", arg(1, "new", "table expected, got queue"), function() queue.new(q) end },
  { "new of a channel", arg(1, "new", "table expected, got channel"), function() queue.new(ch) end },
  { "new of a function", arg(1, "new", "table expected, got function"), function() queue.new(noop) end },
  { "new, capacity a string", option("capacity", "new", ".*got string"), function() queue.new{ capacity = "x" } end },
  { "new, capacity a fraction", option("capacity", "new", ".*1%.5"), function() queue.new{ capacity = 1.5 } end },
  { "new, capacity negative", option("capacity", "new", ".*"), function() queue.new{ capacity = -1 } end },
  { "new, capacity NaN", option("capacity", "new", ".*"), function() queue.new{ capacity = nan } end },
  { "new, capacity endless", option("capacity", "new", ".*"), function() queue.new{ capacity = math.huge } end },
  { "new, capacity false", option("capacity", "new", ".*got boolean"), function() queue.new{ capacity = false } end },
  { "new, capacity a table", option("capacity", "new", ".*got table"), function() queue.new{ capacity = {} } end },
  { "new, on_error a number", option("on_error", "new", "function expected, got number"), function() queue.new{ on_error = 5 } end },
  { "new, on_error a string", option("on_error", "new", "function expected, got string"), function() queue.new{ on_error = "x" } end },
  { "new, on_error a table", option("on_error", "new", "function expected, got table"), function() queue.new{ on_error = {} } end },
  { "new, on_error false", option("on_error", "new", "function expected, got boolean"), function() queue.new{ on_error = false } end },
  { "new, a typo", "capasity.*'new'", function() queue.new{ capasity = 3 } end },
  { "new, a typo beside a good option", "on_eror.*'new'", function() queue.new{ capacity = 1, on_eror = noop } end },
  { "new, an option of push", "priority.*'new'", function() queue.new{ priority = 1 } end },
  { "new, an array", "'new'", function() queue.new{ 5 } end },
  { "new, an option in capitals", "Capacity.*'new'", function() queue.new{ Capacity = 5 } end },
  { "channel of a string", arg(1, "channel", "number expected, got string"), function() queue.channel("x") end },
  { "channel of a table", arg(1, "channel", "number expected, got table"), function() queue.channel({}) end },
  { "channel of true", arg(1, "channel", "number expected, got boolean"), function() queue.channel(true) end },
  { "channel of a channel", arg(1, "channel", "number expected, got channel"), function() queue.channel(ch) end },
  { "channel of a fraction", arg(1, "channel", ".*"), function() queue.channel(1.5) end },
  { "channel of less than nothing", arg(1, "channel", ".*"), function() queue.channel(-1) end },
  { "channel of NaN", arg(1, "channel", ".*"), function() queue.channel(nan) end },
  { "channel without end", arg(1, "channel", ".*"), function() queue.channel(math.huge) end },
  { "after of nothing", arg(1, "after", "number expected, got no value"), function() queue.after() end },
  { "after of nil", arg(1, "after", "number expected, got nil"), function() queue.after(nil, 1) end },
  { "after of a string", arg(1, "after", "number expected, got string"), function() queue.after("x") end },
  { "after of NaN", arg(1, "after", ".*"), function() queue.after(nan) end },
  { "tick of nothing", arg(1, "tick", "number expected, got no value"), function() queue.tick() end },
  { "tick of a table", arg(1, "tick", "number expected, got table"), function() queue.tick({}) end },
  { "tick of NaN", arg(1, "tick", ".*"), function() queue.tick(nan) end },
  { "tick of 0", arg(1, "tick", "interval must be > 0.*"), function() queue.tick(0) end },
  { "tick of less than nothing", arg(1, "tick", "interval must be > 0.*"), function() queue.tick(-0.5) end },
  { "sleep of nothing", arg(1, "sleep", "number expected, got no value"), function() queue.sleep() end },
  { "sleep of a string", arg(1, "sleep", "number expected, got string"), function() queue.sleep("x") end },
  { "sleep of a queue", arg(1, "sleep", "number expected, got queue"), function() queue.sleep(q) end },
  { "sleep of NaN", arg(1, "sleep", ".*"), function() queue.sleep(nan) end },
  { "sleep without end", "deadlock: sleep", function() queue.sleep(math.huge) end },

  -- push
  { "push of a string", arg(1, "push", "function expected, got string"), function() q:push("x") end },
  { "push of nothing", arg(1, "push", "function expected, got no value"), function() q:push() end },
  { "push of nil", arg(1, "push", "function expected, got nil"), function() q:push(nil, {}) end },
  { "push of a plain table", arg(1, "push", "function expected, got table"), function() q:push({}) end },
  { "push of a channel", arg(1, "push", "function expected, got channel"), function() q:push(ch) end },
  { "push of a queue", arg(1, "push", "function expected, got queue"), function() q:push(q) end },
  { "push of a coroutine", arg(1, "push", "function expected, got thread"), function() q:push(coroutine.create(noop)) end },
  { "push of a file", arg(1, "push", "function expected, got " .. file), function() q:push(io.stdout) end },
  { "push, options a number", arg(2, "push", "table expected, got number"), function() q:push(noop, 3) end },
  { "push, options a string", arg(2, "push", "table expected, got string"), function() q:push(noop, "x") end },
  { "push, options false", arg(2, "push", "table expected, got boolean"), function() q:push(noop, false) end },
  { "push, options a channel", arg(2, "push", "table expected, got channel"), function() q:push(noop, ch) end },
  { "push, priority text", option("priority", "push", ".* expected, got string"), function() q:push(noop, { priority = "high" }) end },
  { "push, priority 1.5", option("priority", "push", "integer expected, got 1%.5"), function() q:push(noop, { priority = 1.5 }) end },
  { "push, priority NaN", option("priority", "push", "integer expected, .*"), function() q:push(noop, { priority = nan }) end },
  { "push, priority endless", option("priority", "push", "integer expected, .*"), function() q:push(noop, { priority = math.huge }) end },
  { "push, priority false", option("priority", "push", ".*expected, got boolean"), function() q:push(noop, { priority = false }) end },
  { "push, delay_ms a table", option("delay_ms", "push", "number expected, got table"), function() q:push(noop, { delay_ms = {} }) end },
  { "push, delay_ms a string", option("delay_ms", "push", "number expected, got string"), function() q:push(noop, { delay_ms = "x" }) end },
  { "push, delay_ms NaN", option("delay_ms", "push", ".*"), function() q:push(noop, { delay_ms = nan }) end },
  { "push, delay_ms a function", option("delay_ms", "push", ".*, got function"), function() q:push(noop, { delay_ms = noop }) end },
  { "push, retries negative", option("retries", "push", ".*"), function() q:push(noop, { retries = -1 }) end },
  { "push, retries a fraction", option("retries", "push", ".*0%.5"), function() q:push(noop, { retries = 0.5 }) end },
  { "push, retries NaN", option("retries", "push", ".*"), function() q:push(noop, { retries = nan }) end },
  { "push, retries endless", option("retries", "push", ".*"), function() q:push(noop, { retries = math.huge }) end },
  { "push, retries true", option("retries", "push", ".*got boolean"), function() q:push(noop, { retries = true }) end },
  { "push, backoff_ms a string", option("backoff_ms", "push", ".*got string"), function() q:push(noop, { backoff_ms = "x" }) end },
  { "push, backoff_ms a table", option("backoff_ms", "push", ".*got table"), function() q:push(noop, { backoff_ms = {} }) end },
  { "push, backoff_ms false", option("backoff_ms", "push", ".*got boolean"), function() q:push(noop, { backoff_ms = false }) end },
  { "push, backoff_ms NaN", option("backoff_ms", "push", ".*"), function() q:push(noop, { backoff_ms = nan }) end },
  { "push, timeout_ms a string", option("timeout_ms", "push", ".*, got string"), function() q:push(noop, { timeout_ms = "x" }) end },
  { "push, timeout_ms NaN", option("timeout_ms", "push", ".*"), function() q:push(noop, { timeout_ms = nan }) end },
  { "push, args a number", option("args", "push", "table expected, got number"), function() q:push(noop, { args = 5 }) end },
  { "push, args a string", option("args", "push", "table expected, got string"), function() q:push(noop, { args = "x" }) end },
  { "push, args a channel", option("args", "push", "table expected, got channel"), function() q:push(noop, { args = ch }) end },
  { "push, id a number", option("id", "push", "string expected, got number"), function() q:push(noop, { id = 5 }) end },
  { "push, id a table", option("id", "push", "string expected, got table"), function() q:push(noop, { id = {} }) end },
  { "push, id false", option("id", "push", "string expected, got boolean"), function() q:push(noop, { id = false }) end },
  { "push, a typo", "retrys.*'push'", function() q:push(noop, { retrys = 3 }) end },
  { "push, a typo beside good options", "delay.*'push'", function() q:push(noop, { priority = 1, delay = 3, id = "x" }) end },
  { "push, an option of new", "on_error.*'push'", function() q:push(noop, { on_error = noop }) end },
  { "push, an array", "'push'", function() q:push(noop, { 5 }) end },
  { "push, a key that is a fraction", "'push'", function() q:push(noop, { [1.5] = 5 }) end },
  { "push, a key that is true", "'push'", function() q:push(noop, { [true] = 5 }) end },
  { "push, a key that is a table", "'push'", function() q:push(noop, { [{}] = 5 }) end },
  { "push, a key with a zero byte", "'push'", function() q:push(noop, { ["id\0"] = "x" }) end },
  { "push, a key that is empty", "'push'", function() q:push(noop, { [""] = 1 }) end },
  { "push, a bad option with a typo", "'push'", function() q:push(noop, { priority = "x", typo = 1 }) end },
  { "push to a stopped queue, bad all the same", option("id", "push", ".*"), function() q:stop(); q:push(noop, { id = 5 }) end },

  -- poll
  { "poll of a string", arg(1, "poll", ".*expected, got string"), function() q:poll("x") end },
  { "poll of a table", arg(1, "poll", ".*expected, got table"), function() q:poll({}) end },
  { "poll of true", arg(1, "poll", ".*expected, got boolean"), function() q:poll(true) end },
  { "poll of NaN", arg(1, "poll", ".*"), function() q:poll(nan) end },

  -- channels
  { "send of nil", arg(1, "send", ".*nil.*"), function() ch:send(nil) end },
  { "send of nothing", arg(1, "send", ".*"), function() ch:send() end },
  { "send of nil with a time", arg(1, "send", ".*nil.*"), function() ch:send(nil, 5) end },
  { "send, time a string", arg(2, "send", "number expected, got string"), function() ch:send(1, "x") end },
  { "send, time a table", arg(2, "send", "number expected, got table"), function() ch:send(1, {}) end },
  { "send, time false", arg(2, "send", "number expected, got boolean"), function() ch:send(1, false) end },
  { "send, time NaN", arg(2, "send", ".*"), function() ch:send(1, nan) end },
  { "send of nil to a full channel", arg(1, "send", ".*nil.*"), function() full:send(nil) end },
  { "send of nil to a closed channel", "", function() closed:send(nil) end },
  { "send to a full channel, time NaN", arg(2, "send", ".*"), function() full:send(1, nan) end },
  { "send on a closed channel", "send on closed channel", function() closed:send(1) end },
  { "send to a full channel for ever", "deadlock: send on channel%(1/1%)", function() full:send(1) end },
  { "send to a timer", "", function() timer:send(1) end },
  { "try_send of nil", arg(1, "try_send", ".*nil.*"), function() ch:try_send(nil) end },
  { "try_send of nothing", arg(1, "try_send", ".*"), function() ch:try_send() end },
  { "try_send of nil to a full channel", arg(1, "try_send", ".*nil.*"), function() full:try_send(nil) end },
  { "try_send of nil to a closed channel", arg(1, "try_send", ".*nil.*"), function() closed:try_send(nil) end },
  { "try_send to a timer", "", function() timer:try_send(1) end },
  { "receive, time a string", arg(1, "receive", "number expected, got string"), function() ch:receive("soon") end },
  { "receive, time a table", arg(1, "receive", "number expected, got table"), function() ch:receive({}) end },
  { "receive, time false", arg(1, "receive", "number expected, got boolean"), function() ch:receive(false) end },
  { "receive, time NaN", arg(1, "receive", ".*"), function() ch:receive(nan) end },
  { "receive of a full channel, time NaN", arg(1, "receive", ".*"), function() full:receive(nan) end },
  { "receive for ever", "deadlock: receive on channel%(0/2%)", function() ch:receive() end },
  { "stop of a channel that is no timer", "", function() ch:stop() end },
}

local methods = {
  queue = { "push", "run", "poll", "stop", "is_stopped", "size", "empty", "clear", "metrics", "in_flight", "next_due" },
  channel = { "send", "try_send", "receive", "try_receive", "iter", "close", "is_closed", "len", "cap", "stop" },
}

--- Nothing of a bad call may be seen afterwards.
local function unchanged(what)
  eq(q:size(), 0, what); H.conserved(q); eq(q:metrics().enqueued, 0, what)
  if not q:is_stopped() then eq(q:push(noop), "job-1", what .. ": an id was used up") end
  eq(ch:len(), 0, what); eq(ch:is_closed(), false, what)
  eq(full:len(), 1, what); eq(full:try_receive(), "kept", what)
  eq(timer:len(), 0, what); eq(timer:is_closed(), false, what); timer:stop()
end

describe("misuse raises a string at the caller's line:", function()
  for _, case in ipairs(cases) do
    it(case[1], function()
      fresh(); H.raises(case[2], case[3]); unchanged(case[1])
    end)
  end

  for kind, names in pairs(methods) do
    for _, name in ipairs(names) do
      it(kind .. ":" .. name .. " on what is no " .. kind, function()
        fresh()
        local method = kind == "queue" and q[name] or ch[name]
        eq(type(method), "function")
        local other = kind == "queue" and ch or q
        local function bad(got) return ("'%s'.*%s expected, got %s"):format(name, kind, got) end
        H.raises(bad("no value"), function() method() end)
        H.raises(bad("nil"), function() method(nil, 1) end)
        H.raises(bad("number"), function() method(5, noop) end)
        H.raises(bad("string"), function() method("x", noop) end)
        H.raises(bad("table"), function() method({}, noop) end)
        H.raises(bad("function"), function() method(noop, noop) end)
        H.raises(bad("thread"), function() method(coroutine.create(noop), noop) end)
        H.raises(bad(file), function() method(io.stdout, noop) end)
        H.raises(bad(kind == "queue" and "channel" or "queue"), function() method(other, noop) end)
        H.raises(kind .. " expected", function() method(setmetatable({}, debug.getmetatable(q)), noop) end)
        H.raises(kind .. " expected", function() method(setmetatable({}, debug.getmetatable(ch)), noop) end)
        unchanged(name)
      end)
    end
  end

  it("also in a coroutine, a job, and under a wrapper of the user's", function()
    fresh()
    local co = coroutine.create(function() q:push("x") end)
    H.has(select(2, coroutine.resume(co)), "errors_spec.lua:")
    local told
    local w = queue.new{ on_error = function(msg) told = msg end }
    w:push(function() ch:send(nil) end); w:run()
    H.has(told, "errors_spec.lua:"); H.has(told, "bad argument #1 to 'send'")
    local function wrapper(fn) local id = q:push(fn); return id end
    local done, err = pcall(wrapper, 5)
    eq(done, false); H.has(err, "errors_spec.lua:"); unchanged("wrapper")
  end)

  it("called directly through pcall: still a string, in the same words", function()
    fresh()
    for _, case in ipairs{ { q.push, "function expected, got string", q, "x" }, { ch.send, "nil", ch }, { ch.receive,
      "number expected, got table", ch, {} }, { queue.sleep, "number expected", "x" }, { queue.tick, "interval must", 0 },
      { q.size, "queue expected, got no value" }, { ch.len, "channel expected, got queue", q } } do
      local done, err = pcall(case[1], case[3], case[4])
      eq(done, false); eq(type(err), "string"); if case[3] then H.has(err, case[2]) end
    end
    unchanged("pcall")
  end)

  it("through the metatable: no crash, and a string", function()
    fresh()
    for _, mt in ipairs{ debug.getmetatable(q), debug.getmetatable(ch) } do
      for _, name in ipairs{ "__tostring", "__len", "__gc", "__close" } do
        for _, bad in ipairs{ 5, "x", {}, io.stdout, false } do
          local method = mt[name]
          if type(method) == "function" then
            local done, err = pcall(method, bad)
            if name == "__tostring" or name == "__len" then eq(done, false, name) end
            if not done then eq(type(err), "string", name) end
          end
        end
      end
    end
    unchanged("metatable")
  end)

  it("a finished object that is used again does not crash", function()
    local r = H.run("after_gc.lua")
    eq(r.code, 0, r.err); eq(r.out, "done\n"); eq(r.err, "")
  end)
end)

describe("numbers that look odd but are durations", function()
  it("are taken", function()
    local t = queue.channel(1)
    for _, ms in ipairs{ 0, -0.0, -1, 0.001, 1e-300, -math.huge } do
      eq(select(3, t:receive(ms)), "timeout"); queue.sleep(ms); queue.after(ms):stop()
    end
    local w = queue.new()
    for _, ms in ipairs{ 0, -1, 1e-300, 1e300, math.huge, -math.huge, 2 ^ 63, 5e-324 } do
      w:push(noop, { delay_ms = ms, backoff_ms = ms, timeout_ms = ms })
    end
    eq(w:size(), 8)
  end)
end)
