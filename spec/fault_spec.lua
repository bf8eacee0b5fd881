--- Faults from outside: metamethods, hooks and finalizers that raise, no stack, no memory, no threads.
local H = require("spec.helper")
local queue, eq, ok, has, noop = H.queue, H.eq, H.ok, H.has, H.noop

local function raiser(text) return function() error(text, 0) end end
local hostile = {
  __index = raiser("in index"), __newindex = raiser("in newindex"), __len = raiser("in len"), __pairs = raiser("in pairs"),
  __ipairs = raiser("in ipairs"), __eq = raiser("in eq"), __tostring = raiser("in tostring"), __metatable = "locked",
}

--- A queue that keeps what on_error is told.
local function watched()
  local seen = {}
  return queue.new{ on_error = function(msg, info) seen[#seen + 1] = { msg = msg, info = info } end }, seen
end

describe("a table with a metatable that raises", function()
  it("as options of push: the push is made, or its error comes out and nothing is changed", function()
    local q = queue.new()
    local done, id = pcall(q.push, q, noop, setmetatable({ priority = 3 }, hostile))
    if done then eq(id, "job-1"); eq(q:run(), 1) else has(id, "in ") end
    eq(q:size(), 0); H.conserved(q)
  end)

  it("as options of new: a queue, or its error", function()
    local done, q = pcall(queue.new, setmetatable({ capacity = 1 }, hostile))
    if done then ok(q:push(noop)); eq((q:push(noop)), nil) else has(q, "in ") end
  end)

  it("as args: the job gets them or has failed, and the next one is untouched", function()
    local q, seen = watched(); local got, ran
    q:push(function(...) got = H.pack(...) end, { args = setmetatable({ 1, 2 }, hostile) })
    q:push(function() ran = true end)
    eq(q:run(), 2); eq(ran, true)
    if got then H.results(got, 1, 2) else has(seen[1].msg, "in ") end
    H.conserved(q)
  end)

  it("as args with an odd n: the job has run or failed, and the next one is untouched", function()
    for _, n in ipairs{ -1, 1.5, 1e9, 2 ^ 53, math.huge, 0 / 0, "x", {}, false } do
      local q, seen = watched(); local got, ran
      local pushed, why = pcall(q.push, q, function(...) got = select("#", ...) end, { args = { 1, n = n } })
      q:push(function() ran = true end); q:run(); eq(ran, true)
      if pushed then ok(got or #seen == 1, "neither run nor failed") else has(why, "args") end
      H.conserved(q)
    end
  end)

  it("as payload and as a value: handed over as it is", function()
    local thing = setmetatable({}, hostile)
    local q, seen = watched(); q:push(function() error("x") end, { payload = thing }); q:run()
    ok(rawequal(seen[1].info.payload, thing))
    local ch = queue.channel(1); ch:send(thing); ok(rawequal(ch:receive(), thing))
    ok(rawequal(queue.after(0, thing):receive(), thing))
  end)

  it("as an error: told once, with a string", function()
    local thing = setmetatable({}, hostile)
    local q, seen = watched(); q:push(function() error(thing) end, { retries = 1 }); eq(q:run(), 2)
    eq(#seen, 1); eq(type(seen[1].msg), "string"); ok(rawequal(seen[1].info.error, thing))
  end)
end)

describe("a callable", function()
  it("whose __call raises has failed", function()
    local q, seen = watched()
    q:push(setmetatable({}, { __call = raiser("in call") })); eq(q:run(), 1); eq(seen[1].msg, "in call")
  end)

  it("that is none any more when its turn comes has failed", function()
    local q, seen = watched(); local mt = { __call = noop }; local ran
    q:push(setmetatable({}, mt)); q:push(function() ran = true end); mt.__call = nil
    eq(q:run(), 2); eq(ran, true); has(seen[1].msg, "attempt to call"); H.conserved(q)
  end)
end)

describe("a finalizer that raises", function()
  -- On some Luas its error comes out of whatever runs the collector, and even a call can do that: so the collector
  -- works, and the finalizers raise, inside of `guarded` alone, once at most.
  local many, armed, raised = H.count(3000), false, 0
  local function boom()
    if armed then armed = false; raised = raised + 1; error("in gc", 0) end
  end

  local function call(fn, ...)
    collectgarbage("restart")
    armed = true
    local _ = ("x"):rep(100)                           -- so that there is something to collect for
    local a, b = fn(...)
    armed = false
    collectgarbage("stop")
    return a, b
  end
  local function guarded(...) return pcall(call, ...) end

  --- Does `step(i)` many times, amid garbage whose finalizers raise; tells how many did.
  local function storm(step)
    raised = 0
    -- In large strides, or the collector would not come round once in a process that has run many specs.
    local stride = _VERSION ~= "Lua 5.4" and collectgarbage("setstepmul", 5000)
    H.interpreted(function()
      for i = 1, many do
        collectgarbage("stop")
        H.finalizer(boom)
        step(i)
      end
    end)
    collectgarbage("restart")
    if stride then collectgarbage("setstepmul", stride) end
    H.collect()
    return raised
  end

  it("during pushes: each is made or not made, and no place is lost", function()
    local q, made, ran = queue.new(), 0, 0
    local opts = { args = { 1 }, id = "x" }
    local strange
    local function job() ran = ran + 1 end
    local errors = storm(function(i)
      local done, id = guarded(q.push, q, job, i % 2 == 0 and opts or nil)
      if done then made = made + 1
      elseif id ~= "in gc" and id ~= "error in __gc metamethod (in gc)" then strange = id end
    end)
    -- Stock 5.1 collects once more after a call, so there a push that was made may raise.
    local there = q:size()
    eq(strange, nil); if H.lua51 then H.between(there, made, many) else eq(there, made) end
    ok(errors > 0 and made > 0)
    eq(q:run(), there); eq(ran, there); eq(H.conserved(q).enqueued, there)
  end)

  it("during pushes to a bounded queue: the bound stays what it was", function()
    local q, opts = queue.new{ capacity = 10 }, { args = { 1 } }
    storm(function(i) guarded(q.push, q, noop, opts); if i % 3 == 0 then guarded(q.poll, q, 2) end end)
    q:clear()
    local n = 0; while q:push(noop) do n = n + 1 end
    eq(n, 10)
  end)

  it("during sends and receives: no value is lost or doubled", function()
    local ch, sent, got, value = queue.channel(20), 0, 0, {}
    storm(function(i)
      local done, was
      if i % 7 < 4 then
        done, was = guarded(ch.try_send, ch, value); if done and was then sent = sent + 1 end
      else
        done, was = guarded(ch.try_receive, ch); if done and was then got = got + 1 end
      end
    end)
    while ch:try_receive() do got = got + 1 end
    if H.lua51 then H.between(got, sent - 20, sent + 20) else eq(got, sent) end
  end)

  it("during runs: nothing is unaccounted for, and the queue goes on", function()
    local q, ran = queue.new{ on_error = noop }, 0
    local function job() ran = ran + 1; if ran % 3 == 0 then error({}) end end
    storm(function(i) guarded(q.push, q, job); if i % 10 == 0 then guarded(q.run, q) end end)
    q:run(); eq(q:size(), 0); ran = 0; q:push(job); eq(q:run(), 1); eq(ran, 1)
    local m = q:metrics()
    eq(m.enqueued, m.succeeded + m.failed + m.pending + m.in_flight)
  end)
end)

describe("a debug hook", function()
  -- The checker knows only the form that begins with a thread.
  local sethook = debug.sethook ---@type fun(hook?: function, mask?: string, count?: integer)

  local function hooked(hook, fn)
    local old, mask, count = debug.gethook()
    sethook(hook, "cr", 1)
    local r = H.pack(pcall(fn))
    sethook(old, mask, count)
    return H.unpack(r, 1, r.n)
  end

  --- A hook that does nothing for a while, then `act`, once.
  local function later(ms, act)
    local at, acting = queue.now() + ms, false
    return function()
      if acting then return end
      acting = true
      if queue.now() > at then sethook(); act() else acting = false end
    end
  end

  for name, wait in pairs{
    receive = function(ch) ch:receive(60000) end,
    send = function(ch) ch:send("v", 60000) end,
    sleep = function() queue.sleep(60000) end,
    run = function() local q = queue.new(); q:push(noop, { delay_ms = 60000 }); q:run() end,
    ["a job's wait"] = function()
      local q, ch = queue.new(), queue.channel(); q:push(function() ch:receive(60000) end, { retries = 3 }); q:run()
      error("the job went on", 0)
    end,
  } do
    it("that raises `interrupted!` during " .. name .. " ends it, and leaves nothing behind", function()
      local ch = queue.channel()
      local t, r = H.timed(function() return hooked(later(50, raiser("interrupted!")), function() wait(ch) end) end)
      H.results(r, false, "interrupted!"); H.between(t, 50, H.patience(5000))
      H.results(H.pack(ch:try_receive()), nil, false, "empty"); H.results(H.pack(ch:try_send(1)), false, "full")
      queue.sleep(1); H.results(H.pack(ch:receive(1)), nil, false, "timeout")
    end)
  end

  it("that raises anything during receive lets that out", function()
    local ch, thing = queue.channel(1), {}
    local done, err = hooked(later(30, function() error(thing) end), function() ch:receive(60000) end)
    eq(done, false); eq(err, thing); ch:send(1); H.results(H.pack(ch:receive()), 1, true)
  end)

  it("that sends while the thread waits to receive is received", function()
    for _, ch in ipairs{ queue.channel(), queue.channel(1) } do
      local sent
      local t, r = H.timed(function()
        return hooked(later(30, function() sent = ch:try_send("from the hook") end), function() return ch:receive(60000) end)
      end)
      eq(sent, true); H.results(r, true, "from the hook", true); H.between(t, 30, H.patience(5000)); eq(ch:len(), 0)
    end
  end)

  it("that receives while the thread waits to send lets it go on", function()
    local ch, none, got = queue.channel(1), queue.channel(), {}; ch:send("first")
    H.results(H.pack(hooked(later(30, function() got[1] = ch:try_receive() end), function() return ch:send("second", 60000) end)),
      true, true)
    H.results(H.pack(hooked(later(30, function() got[2] = none:try_receive() end), function() return none:send("third", 60000) end)),
      true, true)
    H.list(got, "first third"); H.results(H.pack(ch:receive()), "second", true)
  end)

  it("that sends and then raises ends the wait, and the value can still be received", function()
    local ch, sent = queue.channel(1), nil
    local done, err = hooked(later(30, function() sent = ch:try_send("v"); error("interrupted!", 0) end), function()
      return ch:receive(60000)
    end)
    eq(done, false); eq(err, "interrupted!"); eq(sent, true); H.results(H.pack(ch:try_receive()), "v", true)
  end)

  it("that waits itself, while the thread waits, disturbs neither wait", function()
    local ch, got = queue.channel(), nil
    local r = H.pack(hooked(later(30, function()
      got = H.pack(queue.after(5, "inner"):receive(60000)); queue.sleep(5)
      H.results(H.pack(queue.channel():receive(5)), nil, false, "timeout")
      local q = queue.new(); q:push(noop, { delay_ms = 5 }); q:run()
      ch:try_send("outer")
    end), function() return ch:receive(60000) end))
    H.results(got, "inner", true); H.results(r, true, "outer", true)
    local t
    t, r = H.timed(function() return hooked(later(5, function() queue.sleep(50) end), function() return ch:receive(20) end) end)
    H.results(r, true, nil, false, "timeout"); H.between(t, 50, H.patience(5000))
  end)

  it("that closes the channel ends the wait", function()
    local ch, none = queue.channel(), queue.channel()
    H.results(H.pack(hooked(later(30, function() ch:close() end), function() return ch:receive(60000) end)), true, nil, false,
      "closed")
    local done, err = hooked(later(30, function() none:close() end), function() none:send(1, 60000) end)
    eq(done, false); has(err, "send on closed channel"); H.results(H.pack(none:try_receive()), nil, false, "closed")
  end)

  it("that raises `interrupted!` at any one instruction of a run leaves a queue that goes on", function()
    local step, fired = 1, true
    local function try()
      local l = {}
      local q = queue.new{ on_error = function() l[#l + 1] = "told" end }
      q:push(function(x) l[#l + 1] = x end, { args = { "one" }, priority = 2 })
      q:push(function() error("x") end, { retries = 1, priority = 1, backoff_ms = function() return 0 end })
      q:push(noop, { timeout_ms = 1e-3 }); q:push(noop)
      fired = false
      local function hook() sethook(); fired = true; error("interrupted!", 0) end
      local done, err = pcall(function() sethook(hook, "", step); q:run(); sethook() end)
      -- LuaJIT turns an error in a message handler, where a traceback is made, into one of its own.
      if fired and not (done and H.jit) then eq(done, false, "step " .. step); eq(err, "interrupted!", "step " .. step) end
      local m = q:metrics()
      eq(m.enqueued, m.succeeded + m.failed + m.expired + m.pending + m.in_flight, "step " .. step)
      q:run(); eq(q:size(), 0)
      -- A job whose run was struck is in flight until that run is collected, and fails in the run after that.
      local left = q:in_flight(); H.between(left, 0, 1)
      l = {}; q:push(function() l[#l + 1] = "after" end); H.between(q:run(), 1, 1 + left)
      eq(l[#l], "after"); H.between(#l, 1, 1 + left)
    end
    H.interpreted(function() while fired and step < 2000 do try(); step = step + 1 end end)
    H.between(step, 50, 1999, "instructions")
  end)
end)

describe("too deep a recursion", function()
  it("of runs in jobs fails jobs, and every job is accounted for", function()
    local q, n = queue.new(), 0
    local function dig() n = n + 1; if n < 3000 then q:push(dig); q:run() end end
    q:push(dig)
    while q:size() > 0 do q:run() end
    local m = H.conserved(q); ok(n > 50); ok(m.failed > 0 or n == 3000)
    eq(m.succeeded + m.failed, m.enqueued); eq(m.in_flight, 0)
    q:push(noop); eq(q:run(), 1)
  end)

  it("in on_error is reported, not fatal", function()
    local r = H.run("deep_callback.lua")
    eq(r.code, 0, r.err); eq(r.out, "ran 2, next ran\n"); has(r.err, "queue: on_error handler failed: ")
  end)
end)

describe("a script", function()
  it("that breaks the globals does not break the queue", function()
    local r = H.run("no_globals.lua", "after")
    eq(r.err, ""); eq(r.out, "1 failed, ran 4, closed\n"); eq(r.code, 0)
  end)

  it("without the debug and io libraries can use the module", function()
    local r = H.run("no_globals.lua", "before")
    eq(r.err, ""); eq(r.out, "1 failed, ran 4, closed\n"); eq(r.code, 0)
  end)
end)

describe("memory refused", function()
  for _, what in ipairs{ "push", "push with options", "send", "queues", "channels", "run" } do
    it("during " .. what .. " is an error to be caught, and no crash", function()
      -- Which allocation is the one that is refused depends on the limit: several of them.
      for kib = 60000, 72000, 3001 do
        local r = H.run_limited({ "v" }, kib, "out_of_memory.lua", what)
        if not r or r.out:find("^no limit") then return pending("no limit on memory here") end
        H.between(r.code, 0, 1, "exit code (" .. r.err .. ")")
        if r.code == 1 then has(r.err, "not enough memory") else eq(r.out, "caught, goes on\n") end
      end
    end)
  end
end)

describe("threads refused", function()
  it("make after and tick raise, leak nothing, and work again when there is room", function()
    local r, why = H.run_few_threads(24, "few_threads.lua")
    if not r then return pending(why) end
    if r.out:find("^no limit") then return pending("no limit on threads here") end
    eq(r.err, ""); eq(r.code, 0)
    H.list({ r.out:match("raised: ([^\n]*)") }, "cannot start a timer thread: ", "message")
    has(r.out, "position true"); has(r.out, "other calls true"); has(r.out, "again true"); has(r.out, "dropped true")
  end)
end)
