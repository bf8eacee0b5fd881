--- Misuse of concurrency, select, shared channels and descriptors: a plain string at the caller's line, nothing changed.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, noop = H.queue, H.eq, H.noop
local nan = 0 / 0

-- The objects that the calls below are made on; fresh for each.
local q, ch, full, closed, timer, shared, name
local count = 0
local function fresh()
  count = count + 1; name = "errors_go_spec " .. count
  q, ch, full, closed, timer = queue.new{ concurrency = 2 }, queue.channel(2), queue.channel(1), queue.channel(1), queue.after(1e6)
  shared = queue.shared(name, 2)
  full:send("kept"); closed:close()
end

local file = H.integers and "FILE%*" or "userdata"

local function arg(n, fn, extra) return ("bad argument #%d to '%s' %%(%s%%)"):format(n, fn, extra) end
local function option(key, fn, extra) return ("bad option '%s' to '%s' %%(%s%%)"):format(key, fn, extra) end
local function case(n, extra) return arg(1, "select", (".*%d.*%s.*"):format(n, extra)) end

local function many(...)
  local t = {}
  for i = 1, 1000 do t[i] = full end
  t[1001] = ...
  return t
end
local function endless()
  local p = queue.new{ concurrency = 2 }
  p:push(noop, { delay_ms = math.huge })
  return p
end
local uncopied = "value%.f: a function cannot be copied"

-- Each line: what is wrong, what the message must hold (a pattern), and the call, on a line of its own.
local cases = {
  -- the option
  { "concurrency 0", option("concurrency", "new", ".*got 0"), function() queue.new{ concurrency = 0 } end },
  { "concurrency -1", option("concurrency", "new", ".*"), function() queue.new{ concurrency = -1 } end },
  { "concurrency 1.5", option("concurrency", "new", ".*1%.5"), function() queue.new{ concurrency = 1.5 } end },
  { "concurrency 0.5", option("concurrency", "new", ".*0%.5"), function() queue.new{ concurrency = 0.5 } end },
  { "concurrency NaN", option("concurrency", "new", ".*"), function() queue.new{ concurrency = nan } end },
  { "concurrency -inf", option("concurrency", "new", ".*"), function() queue.new{ concurrency = -math.huge } end },
  { "concurrency text", option("concurrency", "new", ".*got string"), function() queue.new{ concurrency = "many" } end },
  { "concurrency false", option("concurrency", "new", ".*got boolean"), function() queue.new{ concurrency = false } end },
  { "concurrency a table", option("concurrency", "new", ".*got table"), function() queue.new{ concurrency = {} } end },
  { "concurrency a channel", option("concurrency", "new", ".*got channel"), function() queue.new{ concurrency = ch } end },
  { "concurrency, a typo", "concurency.*'new'", function() queue.new{ concurency = 2 } end },
  { "concurrency of push", "concurrency.*'push'", function() q:push(noop, { concurrency = 2 }) end },

  -- select
  { "select of nothing", arg(1, "select", "table expected, got no value"), function() queue.select() end },
  { "select of nil", arg(1, "select", "table expected, got nil"), function() queue.select(nil, 5) end },
  { "select of a number", arg(1, "select", "table expected, got number"), function() queue.select(5) end },
  { "select of a string", arg(1, "select", "table expected, got string"), function() queue.select("x") end },
  { "select of a channel", arg(1, "select", "table expected, got channel"), function() queue.select(ch) end },
  { "select of channels", arg(1, "select", "table expected, got channel"), function() queue.select(ch, full) end },
  { "select of a function", arg(1, "select", "table expected, got function"), function() queue.select(noop) end },
  { "select, time a string", arg(2, "select", "number expected, got string"), function() queue.select({ full }, "x") end },
  { "select, time a table", arg(2, "select", "number expected, got table"), function() queue.select({ full }, {}) end },
  { "select, time a channel", arg(2, "select", "number expected, got channel"), function() queue.select({ full }, ch) end },
  { "select, time false", arg(2, "select", "number expected, got boolean"), function() queue.select({ full }, false) end },
  { "select, time NaN", arg(2, "select", ".*"), function() queue.select({ full }, nan) end },
  { "select, a case a number", case(1, "got number"), function() queue.select{ 5 } end },
  { "select, a case a string", case(2, "got string"), function() queue.select{ full, "x" } end },
  { "select, a case true", case(2, "got boolean"), function() queue.select{ full, true } end },
  { "select, a case a function", case(1, "got function"), function() queue.select{ noop } end },
  { "select, a case a queue", case(2, "got queue"), function() queue.select{ full, q } end },
  { "select, a case a file", case(2, "got " .. file), function() queue.select{ full, io.stdout } end },
  { "select, a case a coroutine", case(1, "got thread"), function() queue.select{ coroutine.create(noop) } end },
  { "select, a case an empty table", case(2, "got nil"), function() queue.select{ full, {} } end },
  { "select, a send on a number", case(2, "got number"), function() queue.select{ full, { 5, 1 } } end },
  { "select, a send on false", case(2, "got boolean"), function() queue.select{ full, { false, 1 } } end },
  { "select, a send on a queue", case(2, "got queue"), function() queue.select{ full, { q, 1 } } end },
  { "select, a send the wrong way round", case(2, "got string"), function() queue.select{ full, { "v", ch } } end },
  { "select, a send in a send", case(2, "got table"), function() queue.select{ full, { { ch, 1 }, 1 } } end },
  { "select, a send of nil", case(2, "nil"), function() queue.select{ full, { ch, nil } } end },
  { "select, a send of nothing", case(2, "nil"), function() queue.select{ full, { ch } } end },
  { "select, a send of nil, without a wait", case(1, "nil"), function() queue.select({ { ch } }, 0) end },
  { "select, a bad case after a thousand", case(1001, "got number"), function() queue.select(many(5)) end },
  { "select, a bad case beside a closed channel", case(2, "got number"), function() queue.select{ { closed, 1 }, 5 } end },
  { "select, a send to a timer", "timer", function() queue.select{ full, { timer, 1 } } end },
  { "select, a send to a closed channel", "send on closed channel", function() queue.select{ full, { closed, 1 } } end },
  { "select, a send to a closed one, no wait", "send on closed channel", function() queue.select({ full, { closed, 1 } }, 0) end },
  { "select for ever", "deadlock: select can never complete", function() queue.select{ ch, false } end },
  { "select of no case for ever", "deadlock: select can never complete", function() queue.select{} end },
  { "select, a value that cannot be copied", uncopied, function() queue.select{ full, { shared, { f = noop } } } end },

  -- shared
  { "shared of nothing", arg(1, "shared", "string expected, got no value"), function() queue.shared() end },
  { "shared of nil", arg(1, "shared", "string expected, got nil"), function() queue.shared(nil, 1) end },
  { "shared of a number", arg(1, "shared", "string expected, got number"), function() queue.shared(5) end },
  { "shared of a table", arg(1, "shared", "string expected, got table"), function() queue.shared({}) end },
  { "shared of true", arg(1, "shared", "string expected, got boolean"), function() queue.shared(true) end },
  { "shared of a channel", arg(1, "shared", "string expected, got channel"), function() queue.shared(ch) end },
  { "shared, capacity a string", arg(2, "shared", ".*got string"), function() queue.shared(name, "2") end },
  { "shared, capacity a table", arg(2, "shared", ".*got table"), function() queue.shared(name, {}) end },
  { "shared, capacity false", arg(2, "shared", ".*got boolean"), function() queue.shared(name, false) end },
  { "shared, capacity a fraction", arg(2, "shared", ".*1%.5"), function() queue.shared(name, 1.5) end },
  { "shared, capacity negative", arg(2, "shared", ".*"), function() queue.shared(name, -1) end },
  { "shared, capacity NaN", arg(2, "shared", ".*"), function() queue.shared(name, nan) end },
  { "shared, capacity without end", arg(2, "shared", ".*"), function() queue.shared(name, math.huge) end },
  { "shared, another capacity", arg(2, "shared", ".*capacity.*"), function() queue.shared(name, 3) end },
  { "shared, capacity 0 where it is 2", arg(2, "shared", ".*capacity.*"), function() queue.shared(name, 0) end },
  { "send of nil to a shared channel", arg(1, "send", ".*nil.*"), function() shared:send(nil) end },
  { "try_send of nothing to a shared channel", arg(1, "try_send", ".*nil.*"), function() shared:try_send() end },
  { "send of a function to a shared channel", arg(1, "send", "value: a function cannot be copied"), function() shared:send(noop) end },
  { "send of a function to a full shared channel", arg(1, "send", ".*function.*"), function() shared:send(noop, 0) end },
  { "try_send of a queue to a shared channel", arg(1, "try_send", "value: a queue cannot be copied"), function() shared:try_send(q) end },
  { "send of a plain channel to a shared channel", arg(1, "send", "value: a channel cannot be copied"), function() shared:send(ch) end },
  { "send of a metatable to a shared channel", arg(1, "send", ".*metatable.*"), function() shared:send(setmetatable({}, {})) end },
  { "stop of a shared channel", "", function() shared:stop() end },
  { "receive from a shared channel, time NaN", arg(1, "receive", ".*"), function() shared:receive(nan) end },
  { "send to a shared channel, time a string", arg(2, "send", "number expected, got string"), function() shared:send(1, "x") end },
  { "send of a function, time a string", "'send'", function() shared:send(noop, "x") end },

  -- a queue of concurrent jobs
  { "poll of a string", arg(1, "poll", ".*expected, got string"), function() q:poll("x") end },
  { "poll of NaN", arg(1, "poll", ".*"), function() q:poll(nan) end },
  { "push of a string", arg(1, "push", "function expected, got string"), function() q:push("x") end },
  { "run without end", "deadlock: run can never complete", function() endless():run() end },
}

local methods = {
  queue = { "getfd", "run", "poll" },
  channel = { "getfd", "dirty", "pollfd", "events", "timeout" },
}

--- Nothing of a bad call may be seen afterwards.
local function unchanged(what)
  eq(q:size(), 0, what); eq(q:in_flight(), 0, what); H.conserved(q)
  eq(q:push(noop), "job-1", what .. ": an id was used up"); eq(q:run(), 1, what)
  eq(ch:len(), 0, what); eq(ch:is_closed(), false, what); eq(select(2, queue.select({ { ch, 1 } }, 0)), true, what)
  eq(full:len(), 1, what); eq(full:try_receive(), "kept", what)
  eq(timer:len(), 0, what); eq(timer:is_closed(), false, what); timer:stop()
  eq(shared:len(), 0, what); eq(shared:is_closed(), false, what); eq(queue.shared(name):cap(), 2, what); shared:close()
end

describe("misuse raises a string at the caller's line:", function()
  for _, c in ipairs(cases) do
    it(c[1], function() fresh(); H.raises(c[2], c[3]); unchanged(c[1]) end)

    it(c[1] .. ", in a concurrent job", function()
      fresh()
      local w, seen = G.crew()
      w:push(c[3]); eq(w:run(), 1); eq(#seen, 1); G.at(c[3], seen[1].msg, "")
      if not seen[1].msg:find(c[2]) then error(seen[1].msg .. " does not match " .. c[2]) end
      unchanged(c[1])
    end)
  end

  for kind, list in pairs(methods) do
    for _, method in ipairs(list) do
      it(kind .. ":" .. method .. " on what is no " .. kind, function()
        fresh()
        local fn = kind == "queue" and q[method] or ch[method]
        eq(type(fn), "function")
        local other = kind == "queue" and ch or q
        local function bad(got) return ("'%s'.*%s expected, got %s"):format(method, kind, got) end
        H.raises(bad("no value"), function() fn() end)
        H.raises(bad("nil"), function() fn(nil, 1) end)
        H.raises(bad("number"), function() fn(5, noop) end)
        H.raises(bad("string"), function() fn("x", noop) end)
        H.raises(bad("table"), function() fn({}, noop) end)
        H.raises(bad("thread"), function() fn(coroutine.create(noop), noop) end)
        H.raises(bad(file), function() fn(io.stdout, noop) end)
        H.raises(bad(kind == "queue" and "channel" or "queue"), function() fn(other, noop) end)
        H.raises(kind .. " expected", function() fn(setmetatable({}, debug.getmetatable(q)), noop) end)
        unchanged(method)
      end)
    end
  end

  it("called directly through pcall: still a string, in the same words", function()
    fresh()
    for _, c in ipairs{ { queue.select, "table expected, got number", 5 }, { queue.shared, "string expected, got number", 5 },
      { queue.select, "deadlock: select", {} }, { q.getfd, "queue expected, got channel", ch },
      { ch.dirty, "channel expected, got queue", q },
      { queue.select, "got number", { 5 } } } do
      local done, err = pcall(c[1], c[3])
      eq(done, false); eq(type(err), "string"); H.has(err, c[2])
    end
    unchanged("pcall")
  end)

  it("a select's table is read raw, and its metatable not asked", function()
    fresh()
    local called
    local t = setmetatable({ ch, full }, { __index = function() called = true end, __len = function() called = true; return 0 end })
    H.results(H.pack(queue.select(t)), 2, "kept", true); eq(called, nil); full:send("kept"); unchanged("raw")
  end)
end)

describe("numbers that look odd but are good", function()
  it("are taken", function()
    for _, n in ipairs{ 1, 1.0, 2, 2 ^ 31, 2 ^ 53, 2 ^ 62, math.huge } do
      local w = queue.new{ concurrency = n }; w:push(noop); eq(w:run(), 1)
    end
    for _, ms in ipairs{ 0, -0.0, -1, 0.001, 1e-300, -math.huge } do
      H.results(H.pack(queue.select({ queue.channel() }, ms)), nil, "timeout")
    end
    local f = queue.channel(1); f:send(1)
    for _, ms in ipairs{ 1e300, math.huge, 2 ^ 63, 5e-324 } do f:try_send(1); H.results(H.pack(queue.select({ f }, ms)), 1, 1, true) end
    eq(queue.shared("errors_go_spec odd", 1.0):cap(), 1)
  end)
end)
