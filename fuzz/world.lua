--- What a random program lives in: every call it makes goes through here, is bounded, and is held against the contract.
--
-- The world keeps records of what it has made, and never the things themselves: what a program lets go of must be
-- garbage. A failure is noted and the program goes on; nobody can swallow it.

local Random = require("fuzz.random")
local Texts = require("fuzz.texts")

local World = {}

local pack = table.pack or function(...) return { n = select("#", ...), ... } end
local unpack = table.unpack or unpack

-- Stock 5.1 cannot yield through pcall, so a coroutine calls plainly there.
local stock51 = _VERSION == "Lua 5.1" and rawget(_G, "jit") == nil

-- How many calls a program makes, and how deep pumps may be inside of pumps: a C function is under each, and the
-- interpreters allow some two hundred.
local FUEL, DEPTH = 400, 5

function World.new(queue, has, seed, trace)
  local w = {
    queue = queue, has = has, seed = seed, random = Random.new(seed + 77),
    fuel = FUEL, failures = {}, trace = trace,
    records = setmetatable({}, { __mode = "k" }),        -- object → what is known of it
    objects = setmetatable({}, { __mode = "v" }),        -- every object that still lives, under a number
    made = 0,
    thrown = setmetatable({}, { __mode = "k" }),         -- error objects that the program itself throws
    aside = 0,                                           -- finalizers and hooks that run right now
    shaken = false,                                      -- a finalizer or hook may call the module at any point
    interrupts = 0,                                      -- errors in the words of a Ctrl-C that the program threw
    pumps = 0, busy = 0,                                 -- pumps at work, bodies of jobs at work
    pack = pack, unpack = unpack, stock51 = stock51,
  }

  function w.fail(text, ...)
    local message = text:format(...)
    w.failures[#w.failures + 1] = { message = message, where = debug.traceback("", 2) }
    if trace then trace("FAILURE: " .. message) end
  end

  --- What is checked without a finalizer or a hook in between.
  function w.quiet(fn, ...)
    collectgarbage("stop")
    local before = w.is_quiet
    w.is_quiet = true
    local got = pack(pcall(fn, ...))
    w.is_quiet = before
    collectgarbage("restart")
    if not got[1] then
      local text = tostring(got[2])
      if not (w.shaken and Texts.matches(text, Texts.gone) or w.is_deep(text)) then
        w.fail("a plain look raised: %s", text)
      end
      return
    end
    return unpack(got, 2, got.n)
  end

  --- Whether what is seen right now is all of the truth: no finalizer may have called in between.
  function w.exact() return not w.shaken and w.aside == 0 end

  --- Keeps a record for an object of the module.
  function w.keep(object, record)
    w.made = w.made + 1
    record.made = queue.now()
    record.number = w.made
    w.records[object] = record
    w.objects[w.made] = object
    return object
  end

  --- The beginning of every call: the record of the object, or nil where the call is not to be made.
  function w.enter(name, object, ...)
    if w.fuel <= 0 or object == nil then return nil end
    w.fuel = w.fuel - 1
    if trace then
      local words = {}
      for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
      local known = w.records[object]
      trace(("%s %s %s"):format(name, known and known.name or "", table.concat(words, ", ")))
    end
    return w.records[object]
  end

  --- Stock 5.1 counts the C functions of all coroutines together, and these programs are deep.
  local function is_deep(text) return stock51 and text:find("C stack overflow", 1, true) ~= nil end
  local function is_broken(text) return Texts.is_broken(text) and not is_deep(text) end
  w.is_broken, w.is_deep = is_broken, is_deep

  --- Whether a text that came with a position, or must have come with one, is among the patterns.
  local function is_known(text, patterns, bare)
    -- LuaJIT's and 5.1's own answer to any error inside of an error handler, where a hook may strike too.
    if (w.handled or w.shaken) and text == "error in error handling" then return true end
    if is_deep(text) then return true end
    if Texts.is_interrupt(text) then return w.interrupts > 0 end
    local place, rest = Texts.split(text)
    if w.shaken and Texts.matches(rest, Texts.gone) then return true end
    return (place ~= nil or bare) and Texts.matches(rest, patterns)
  end

  --- An error that came from one of the module's functions.
  function w.judge(name, patterns, thrown, bare)
    if type(thrown) ~= "string" then
      w.fail("%s raised no string but a %s", name, type(thrown))
    elseif is_broken(thrown) then
      w.fail("%s raised %q", name, thrown)
    elseif not is_known(thrown, patterns, bare or Texts.matches(thrown, Texts.yield)) then
      w.fail("%s raised what is not its to raise: %s", name, thrown)
    end
    if trace then trace("  " .. name .. " raised " .. tostring(thrown)) end
  end

  --- An error that came out of a piece of the program: the program's own, or one that a call of it let through.
  function w.judge_thrown(where, thrown)
    if thrown == nil or thrown == w.last_thrown then return end
    local kind = type(thrown)
    if kind == "string" then
      if w.thrown_texts[thrown] or thrown == "<no error object>" then return end
      if thrown:find("thrown as told", 1, true) then return end
      if is_broken(thrown) or not is_known(thrown, Texts.any, Texts.matches(thrown, Texts.any)) then
        w.fail("%s: a strange error: %s", where, thrown)
      end
    elseif kind == "number" or kind == "boolean" or w.thrown[thrown] then
      return
    else
      w.fail("%s: a strange error object, a %s", where, kind)
    end
  end
  w.thrown_texts = {}

  --- True where a call is to be made without a pcall around it: what it raises is then the job's error.
  local function plainly()
    if stock51 and coroutine.running() then return true end
    return w.busy > 0 and w.aside == 0 and w.random:chance(4)
  end

  local function finish(name, patterns, ok, ...)
    if not ok then w.judge(name, patterns, (...)) end
    return ok, ...
  end

  --- Calls `fn`, one of our own small functions around a call: true and its results, or false and what it raised.
  function w.call(name, patterns, fn, ...)
    if plainly() then return true, fn(...) end
    return finish(name, patterns, pcall(fn, ...))
  end

  --- The same, always with a pcall where one can be.
  function w.call_guarded(name, patterns, fn, ...)
    if stock51 and coroutine.running() then return true, fn(...) end
    return finish(name, patterns, pcall(fn, ...))
  end

  --- Runs a piece of the program; what it throws ends here, and is looked at. True where it came to its end.
  function w.guarded(where, body, ...)
    if stock51 and coroutine.running() and w.aside == 0 then
      body(...)
      return true
    end
    local ok, thrown = pcall(body, ...)
    if not ok then w.judge_thrown(where, thrown) end
    return ok
  end

  --- Whether bodies, callbacks and finalizers are to do no more than end.
  function w.over() return w.fuel <= 0 or w.ending end

  --- Whether one more pump may begin.
  function w.may_pump() return w.pumps < DEPTH end

  require("fuzz.jobs")(w)
  require("fuzz.look")(w)
  require("fuzz.pipes")(w)
  require("fuzz.places")(w)
  require("fuzz.misuse")(w)
  return w
end

return World
