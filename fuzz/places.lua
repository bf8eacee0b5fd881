--- Where a piece of a program can run: in coroutines, callbacks of C functions, metamethods, hooks, finalizers. And
-- what pieces do there besides calls: raise, yield, collect garbage.

local Texts = require("fuzz.texts")

local is54 = coroutine.close ~= nil
local compile = loadstring or load -- luacheck: compat

-- A variable that is to be closed is a syntax error before 5.4. `before` and `after` are called around its end, in what
-- way the scope is left: a job's coroutine may be closed from outside.
local scope = is54 and assert(load([[
local object, body, before, after = ...
local function at_end(fn) return setmetatable({}, { __close = fn }) end
local last <close> = after and at_end(after)
local it <close> = object
local first <close> = before and at_end(before)
body()
]]))

return function(w)
  local coroutines = {}

  -- Errors --------------------------------------------------------------------------------------------------------

  local makers = {
    text = function() return "thrown as told" end,
    long = function() return ("thrown as told "):rep(200) end,
    zero = function() return "thrown as told\0 and more" end,
    number = function() return 42 end,
    boolean = function() return false end,
    table = function() return { code = 1 } end,
    callable = function() return function() end end,
    thread = function() return coroutine.create(function() end) end,
    interrupt = function() return "interrupted!" end,
    placed = function() return "x.lua:3: interrupted!" end,
    upload = function() return "upload interrupted! thrown as told" end,
    queue = function() return w.queue.new() end,
    channel = function() return w.queue.channel(1) end,
    speaking = function() return setmetatable({}, { __tostring = function() return "spoken" end }) end,
    silent = function() return setmetatable({}, { __tostring = function() return nil end }) end,
    raising = function() return setmetatable({}, { __tostring = function() error("in tostring", 0) end }) end,
    locked = function()
      return setmetatable({}, { __metatable = false, __index = function() error("index", 0) end })
    end,
  }

  --- Throws an error of a kind; `none` is `error()`.
  function w.raise(kind)
    if w.over() then return end
    if kind == "none" then error() end
    local thrown = makers[kind]()
    if Texts.is_interrupt(thrown) then w.interrupts = w.interrupts + 1 end
    if type(thrown) == "string" then w.thrown_texts[thrown] = true
    elseif type(thrown) ~= "number" and type(thrown) ~= "boolean" then w.thrown[thrown] = true end
    error(thrown, 0)
  end

  -- Coroutines ------------------------------------------------------------------------------------------------------

  --- A yield, with values or without. Outside of a coroutine it raises, and that is the job's error.
  function w.yield(...)
    if not w.enter("yield", w.queue) and w.fuel <= 0 then return end
    w.call("yield", Texts.yield, coroutine.yield, ...)
  end

  function w.coroutine(name, body)
    coroutines[name] = coroutine.create(function() w.guarded("a coroutine", body) end)
  end

  local function resume(co)
    local pumps, busy = w.pumps, w.busy
    local ok, thrown = coroutine.resume(co, "resumed")
    if not ok then w.judge_thrown("a coroutine", thrown) end
    w.busy = busy
    -- A pump that is parked in there is at work all the same, but on no stack.
    w.pumps = pumps
    return ok
  end

  function w.resume(name)
    local co = coroutines[name]
    if not co or w.fuel <= 0 or coroutine.status(co) ~= "suspended" then return end
    w.fuel = w.fuel - 1
    if w.trace then w.trace("resume " .. name) end
    resume(co)
  end

  --- A host for what yields: resumes `body` up to `times` times. What is still parked then is let go.
  function w.host(times, body)
    if w.over() then return end
    local co = coroutine.create(function() w.guarded("a host", body) end)
    for _ = 1, times do
      if coroutine.status(co) ~= "suspended" then break end
      resume(co)
    end
  end

  -- Places ------------------------------------------------------------------------------------------------------------

  local places = {}

  function places.pcall(f) f() end
  function places.handler(f)
    w.handled = true
    xpcall(function() error("thrown as told", 0) end, function() f() end)
  end
  function places.coroutine(f)
    local co = coroutine.create(f)
    for _ = 1, 10 do
      if coroutine.status(co) ~= "suspended" then break end
      resume(co)
    end
  end
  function places.wrapped(f)
    local run = coroutine.wrap(f)
    run()
  end
  function places.sort(f)
    local once
    table.sort({ 3, 1, 2 }, function(a, b)
      if not once then once = true; f() end
      return a < b
    end)
  end
  function places.gsub(f) return (("x"):gsub("x", function() f() end)) end
  function places.index(f) return setmetatable({}, { __index = function() f() end }).x end
  function places.newindex(f) setmetatable({}, { __newindex = function() f() end }).x = 1 end
  function places.add(f) return setmetatable({}, { __add = function() f(); return 1 end }) + 1 end
  function places.tostring(f) tostring(setmetatable({}, { __tostring = function() f(); return "" end })) end
  function places.iterator(f)
    local once
    for _ in function() if not once then once = true; f(); return 1 end end do f() end
  end
  function places.reader(f) load(function() f(); return nil end) end
  function places.chunk(f) compile("local f = ... ; f()")(f) end
  function places.close(f)
    if not scope then return f() end
    scope(setmetatable({}, { __close = function() f() end }), function() end)
  end
  function places.closing_error(f)
    if not scope then return f() end
    scope(setmetatable({}, { __close = function() f() end }), function() w.raise("table") end)
  end
  function places.hook(f)
    w.aside, w.shaken = w.aside + 1, true
    local done
    debug.sethook(function()
      if done then return end
      done = true
      debug.sethook()
      w.guarded("a hook", f)
    end, "", 1)
    for i = 1, 10 do done = done or i < 0 end
    debug.sethook()
    w.aside = w.aside - 1
  end

  --- Runs `body` inside of something else.
  function w.inside(place, body)
    if w.over() then return end
    if w.trace then w.trace("inside " .. place) end
    w.guarded(place, places[place], function()
      if place == "iterator" then return w.guarded(place, body) end
      body()
    end)
  end

  -- Aside: whatever runs between any two steps of everything else ---------------------------------------------------

  local function aside(where, body)
    if w.over() or w.is_quiet or w.aside > 2 then return end
    w.aside = w.aside + 1
    -- An error of a finalizer comes out of whatever ran the collector, on most Luas.
    local ok, thrown = pcall(body)
    w.aside = w.aside - 1
    if not ok then w.judge_thrown(where, thrown) end
  end

  --- Garbage whose finalizer runs `body`, again and again: `times` generations of it.
  function w.finalizer(times, body)
    if w.over() or times <= 0 then return end
    w.shaken = true
    local function finalize()
      if w.trace then w.trace("a finalizer") end
      aside("a finalizer", body)
      w.finalizer(times - 1, body)
    end
    if rawget(_G, "newproxy") then
      getmetatable(newproxy(true)).__gc = finalize
    else
      setmetatable({}, { __gc = finalize })
    end
  end

  --- Runs `body` every `n` instructions of this coroutine, in the program and in the module's own Lua. The world is
  -- left out: it counts, and must not be struck between a look at a number and its change.
  function w.storm(n, times, body)
    if w.over() then return end
    w.shaken, w.stormed = true, true
    local strikes = 1000
    debug.sethook(function()
      strikes = strikes - 1
      if times <= 0 or strikes <= 0 then return debug.sethook() end
      if w.is_quiet then return end
      -- Nor may a finalizer come in here.
      collectgarbage("stop")
      local ours = debug.getinfo(2, "S").source:find("fuzz[/\\]%w+%.lua$")
      collectgarbage("restart")
      if ours then return end
      times = times - 1
      aside("a hook", body)
    end, "", n)
  end

  function w.collect(how)
    if w.over() then return end
    if how == "twice" then
      collectgarbage()
      collectgarbage()
    elseif how == "often" then
      collectgarbage("setpause", 50)
      collectgarbage("setstepmul", 400)
    elseif how == "generational" and is54 then
      collectgarbage("generational")
    else
      collectgarbage(how == "step" and "step" or "collect")
    end
  end

  -- Scopes ------------------------------------------------------------------------------------------------------------

  --- A queue or channel as a variable that is closed at the end of `body`; before 5.4 nothing is closed.
  function w.scoped(object, body)
    local rec = w.enter("scoped", object)
    if not rec then return end
    if not scope then return body() end
    local fell
    local function before()
      if rec.kind == "queue" then
        -- From here on nothing starts, what is pending is dropped, and jobs that wait are closed.
        rec.stopped, fell = true, object:size()
        rec.clearing = rec.clearing + 1
      else
        rec.closed = true
        if rec.kind == "timer" then rec.ended = rec.ended or w.queue.now() end
      end
    end
    local function after()
      if not fell then return end
      rec.clearing = rec.clearing - 1
      -- A finalizer may have come in between: the module's own figures tell.
      w.quiet(function() rec.cleared = w.exact() and rec.cleared + fell or object:metrics().dropped - rec.refused end)
      rec.waiting, rec.waits, rec.sweeps = {}, 0, rec.sweeps + 1
    end
    w.guarded("a scope", scope, object, body, before, after)
  end

  --- The end: what this world has changed for everybody is put back.
  function w.leave()
    debug.sethook()
    coroutines = {}
    if is54 then collectgarbage("incremental") end
    collectgarbage("setpause", 200)
    collectgarbage("setstepmul", is54 and 100 or 200)
    collectgarbage()
    collectgarbage()
  end
end
