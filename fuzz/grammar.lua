--- The statements that programs are made of, each with how often it comes.

local blunder = require("fuzz.blunders")

-- Times --------------------------------------------------------------------------------------------------------------

local short = { "0", "0", "0.01", "0.05", "0.1", "0.2", "0.4", "-1", "1e-300" }
local far = { "1e9", "1e300", "math.huge" }

local function time(g)
  if g.random:chance(14) then return g.random:of(far) end
  return g.random:of(short)
end

--- A limit of a wait: often none.
local function limit(g)
  local pick = g.random:upto(8)
  if pick <= 3 then return "nil" end
  if pick <= 5 then return "0" end
  return time(g)
end

-- Names --------------------------------------------------------------------------------------------------------------

--- One of the names that can be seen from here, or nil.
local function any(g, kinds)
  local list = {}
  for _, name in ipairs(g.names) do
    if kinds:find(name:sub(1, 1), 1, true) then list[#list + 1] = name end
  end
  if #list == 0 then return nil end
  return g.random:of(list)
end

local function fresh(g, kind)
  g.count = g.count + 1
  return kind .. g.count
end

local PIPES = "cst"                                       -- channels, shared ones, timers
local ids = { '"a"', '"a"', '"b"', '"job-1"', '"job-2"' }
local kinds = { '"integer"', '"integer"', '"float"', '"string"', '"table"', '"function"', '"false"' }
local errors = { "text", "text", "text", "long", "zero", "number", "boolean", "table", "callable", "thread",
  "interrupt", "placed", "upload", "queue", "channel", "speaking", "silent", "raising", "locked", "none" }
local places = { "pcall", "handler", "coroutine", "wrapped", "sort", "gsub", "index", "newindex", "add", "tostring",
  "iterator", "reader", "chunk", "close", "closing_error", "hook" }
local integers = { "0", "0", "1", "1", "2", "-1", "3.0", "2^53", "-2^63", "(math.maxinteger or 2^53)",
  "(math.mininteger or -2^63)" }
local intervals = { "0.02", "0.1", "0.3", "1", "1e9", "math.huge" }
local most = { "", "", ", 0", ", 1", ", 2", ", 3", ", 1e6" }
local pauses = { "", ", math.huge", ", 0", ", 0.2", ", -1" }

-- Blocks -------------------------------------------------------------------------------------------------------------

local statement

--- Up to `size` statements; names made in them are not seen outside.
local function block(g, size, where)
  local outer, seen = g.where, #g.names
  g.depth, g.where = g.depth + 1, where or g.where
  local list = {}
  for _ = 1, g.random:upto(size + 1) - 1 do list[#list + 1] = statement(g) end
  g.depth, g.where = g.depth - 1, outer
  for i = #g.names, seen + 1, -1 do g.names[i] = nil end
  return list
end

local function body(g) return block(g, math.max(1, 5 - g.depth), "job") end

-- Jobs ---------------------------------------------------------------------------------------------------------------

local function arguments(g)
  return g.random:of{ "{ 1, 2, 3 }", "{}", "{ nil, 2, nil, n = 3 }", '{ "x", {}, n = 2 }', "{ n = 0 }", "{ n = 20 }" }
end

--- The end of a call with options: an array of parts that closes `call(…, function(…) … end`.
local function options(g, parts, extra)
  local r = g.random
  local list = extra or {}
  if r:chance(3) then list[#list + 1] = "priority = " .. r:of(integers) end
  if r:chance(3) then list[#list + 1] = "delay_ms = " .. time(g) end
  if r:chance(3) then list[#list + 1] = "timeout_ms = " .. time(g) end
  if r:chance(5) then list[#list + 1] = "args = " .. arguments(g) end
  if r:chance(6) then list[#list + 1] = "payload = {}" end
  if r:chance(3) then list[#list + 1] = "id = " .. r:of(ids) end
  if r:chance(6) then list[#list + 1] = "unique = true" end
  if r:chance(12) then list[#list + 1] = "callable = true" end
  local retries = r:chance(3) and r:of{ "1", "2", "3", "2^53" }
  if retries then list[#list + 1] = "retries = " .. retries end
  local how = retries and r:upto(4) or 4
  if how == 1 then list[#list + 1] = "backoff_ms = " .. time(g) end
  if how == 2 then
    list[#list + 1] = ("backoff_ms = w.backoff{ base_ms = %s, factor = %s, max_ms = %s, jitter = %s }"):format(
      r:of{ "0", "0.1", "1e300" }, r:of{ "1", "2", "1e9" }, r:of{ "0", "0.2", "1" }, r:of{ "0", "0.1", "1" })
  end
  if how == 3 then
    local answer = r:of{ "0", "0.1", "-1", "nil", "false", "0/0", '"x"', "{}", "1e9", "math.huge" }
    parts[#parts + 1] = ("end, { %sbackoff_ms = function(attempts, thrown)"):format(
      #list > 0 and table.concat(list, ", ") .. ", " or "")
    parts[#parts + 1] = block(g, 2, "callback")
    if r:chance(8) then
      parts[#parts + 1] = ('  w.raise("%s")'):format(r:of(errors))
    else
      parts[#parts + 1] = "  return " .. answer
    end
    parts[#parts + 1] = "end })"
  elseif #list > 0 then
    parts[#parts + 1] = ("end, { %s })"):format(table.concat(list, ", "))
  else
    parts[#parts + 1] = "end)"
  end
  return parts
end

local make = {}

function make.push(g)
  local q = any(g, "q")
  if not q then return make.queue(g) end
  local parts = { ("w.push(%s, function(job)"):format(q), body(g) }
  if g.random:chance(4) then parts[#parts + 1] = ('  w.raise("%s")'):format(g.random:of(errors)) end
  return options(g, parts)
end

function make.every(g)
  local q = any(g, "q")
  if not q then return make.queue(g) end
  local ms = g.random:of(intervals)
  local parts = { ("w.every(%s, %s, function(job)"):format(q, ms), body(g) }
  if g.random:chance(4) then parts[#parts + 1] = ('  w.raise("%s")'):format(g.random:of(errors)) end
  return options(g, parts)
end

--- Calls on a queue that fit on a line.
local on_queue = {
  { 10, function(g, q) return ("w.run(%s)"):format(q) or g end },
  { 10, function(g, q) return ("w.poll(%s%s)"):format(q, g.random:of(most)) end },
  { 6, function(_, q) return ("w.look(%s)"):format(q) end },
  { 2, function(_, q) return ("w.clear(%s)"):format(q) end },
  { 1, function(_, q) return ("w.stop(%s)"):format(q) end },
  { 3, function(g, q) return ("w.cancel(%s, %s)"):format(q, g.random:of(ids)) end },
  { 3, function(g, q) return ("w.set_priority(%s, %s, %s)"):format(q, g.random:of(ids), g.random:of(integers)) end },
  { 2, function(g, q) return ("w.pause(%s%s)"):format(q, g.random:of(pauses)) end },
  { 3, function(_, q) return ("w.resume(%s)"):format(q) end },
  { 3, function(g, q) return ("w.retry(%s, %s)"):format(q, g.random:of(ids)) end },
  { 1, function(_, q) return ("w.descriptors(%s)"):format(q) end },
}

function make.queue_call(g)
  local q = any(g, "q")
  if not q then return make.queue(g) end
  return { g.random:weighted(on_queue)(g, q) }
end

--- A queue, with callbacks that do things themselves.
function make.queue(g)
  local r = g.random
  local name = fresh(g, "q")
  local parts, open = {}, ("local %s = w.new(%q, {"):format(name, name)
  if r:chance(4) then open = open .. (" capacity = %d,"):format(r:upto(5) - 1) end
  if r:chance(2) then open = open .. (" concurrency = %s,"):format(r:of{ "1", "2", "2", "3", "5", "math.huge" }) end
  if r:chance(4) then open = open .. (" keep_failed = %d,"):format(r:upto(4) - 1) end
  if r:chance(8) then
    open = open .. (" limit = { jobs = %d, per_ms = %s },"):format(r:upto(3), r:of{ "0.1", "0.5", "1" })
  end
  local before = g.where
  g.where = "callback"
  local callbacks = {}
  if not r:chance(3) then callbacks[1] = "on_error = function(msg, info)" end
  if r:chance(3) then callbacks[#callbacks + 1] = "on_retry = function(msg, info)" end
  if r:chance(3) then callbacks[#callbacks + 1] = "on_success = function(info, ...)" end
  parts[1] = open
  for _, callback in ipairs(callbacks) do
    parts[#parts + 1] = "  " .. callback
    -- The callback may use the queue itself, once it is there.
    parts[#parts + 1] = block(g, 2, "callback")
    if r:chance(8) then parts[#parts + 1] = ('    w.raise("%s")'):format(r:of(errors)) end
    parts[#parts + 1] = "  end,"
  end
  parts[#parts + 1] = "})"
  g.where = before
  parts[1] = ("local %s ; %s"):format(name, parts[1]:gsub("^local ", "", 1))
  g.names[#g.names + 1] = name
  return parts
end

-- Channels -----------------------------------------------------------------------------------------------------------

local on_channel = {
  { 8, function(g, ch) return ("w.send(%s, %s, %s)"):format(ch, g.random:of(kinds), limit(g)) end },
  { 1, function(g, ch) return ('w.send(%s, "held", %s, %s)'):format(ch, limit(g), any(g, "qcst")) end },
  { 5, function(g, ch) return ("w.try_send(%s, %s)"):format(ch, g.random:of(kinds)) end },
  { 1, function(g, ch) return ('w.try_send(%s, "held", %s)'):format(ch, any(g, "qcst")) end },
  { 8, function(g, ch) return ("w.receive(%s, %s)"):format(ch, limit(g)) end },
  { 5, function(_, ch) return ("w.try_receive(%s)"):format(ch) end },
  { 3, function(g, ch) return ("w.iter(%s, %d)"):format(ch, g.random:upto(4)) end },
  { 3, function(_, ch) return ("w.look(%s)"):format(ch) end },
  { 2, function(_, ch) return ("w.close(%s)"):format(ch) end },
  { 2, function(_, ch) return ("w.stop_timer(%s)"):format(ch) end },
  { 1, function(_, ch) return ("w.descriptors(%s)"):format(ch) end },
}

function make.channel_call(g)
  local ch = any(g, PIPES)
  if not ch then return make.channel(g) end
  return { g.random:weighted(on_channel)(g, ch) }
end

local function declare(g, kind, text)
  local name = fresh(g, kind)
  g.names[#g.names + 1] = name
  return { ("local %s = "):format(name) .. text:gsub("$NAME", name) }
end

function make.channel(g)
  local capacity = g.random:of{ "nil", "0", "1", "1", "2", "3", "100" }
  return declare(g, "c", ('w.channel("$NAME", %s)'):format(capacity))
end

function make.shared(g)
  local name, capacity = g.random:of{ "x", "x", "y" }, g.random:of{ "nil", "nil", "0", "1", "2" }
  return declare(g, "s", ("w.shared(%q, %s)"):format(name, capacity))
end

function make.timer(g)
  if g.random:chance(2) then
    return declare(g, "t", ('w.tick("$NAME", %s)'):format(g.random:of(intervals)))
  end
  local ms, value = time(g), g.random:of{ "nil", '"false"', "7", '"x"', "print" }
  return declare(g, "t", ('w.after("$NAME", %s, %s)'):format(ms, value))
end

function make.select(g)
  local cases, n = {}, g.random:upto(4)
  for i = 1, n do
    local ch = any(g, PIPES)
    if not ch or g.random:chance(8) then
      cases[i] = "false"
    elseif g.random:chance(3) then
      cases[i] = ("{ %s, %s }"):format(ch, g.random:of(kinds))
    else
      cases[i] = ch
    end
  end
  return { ("w.select({ n = %d, %s }, %s)"):format(n, table.concat(cases, ", "), limit(g)) }
end

-- Everything else ----------------------------------------------------------------------------------------------------

function make.sleep(g) return { ("w.sleep(%s)"):format(time(g)) } end

function make.yield(g) return { ("w.yield(%s)"):format(g.random:of{ "", "", "", "1", "nil", '"outward", 2' }) } end

function make.raise(g)
  if g.where == "top" then return make.sleep(g) end
  return { ('if w.random:chance(2) then w.raise("%s") end'):format(g.random:of(errors)) }
end

function make.collect(g)
  return { ('w.collect("%s")'):format(g.random:of{ "step", "step", "full", "full", "twice", "often", "generational" }) }
end

--- Statements with one block in them.
local function around(open, size, where, close)
  return function(g)
    local text = open(g)
    return { text, block(g, size, where), close or "end)" }
  end
end

make.inside = around(function(g) return ('w.inside("%s", function()'):format(g.random:of(places)) end, 3)
make.host = around(function(g) return ("w.host(%d, function()"):format(g.random:upto(8)) end, 3)
make.finalizer = around(function(g) return ("w.finalizer(%d, function()"):format(g.random:upto(6)) end, 3, "callback")
make.storm = around(function(g)
  return ("w.storm(%d, %d, function()"):format(g.random:of{ 10, 50, 200 }, g.random:upto(10))
end, 2, "callback")
make.loop = around(function(g) return ("for _ = 1, %d do"):format(g.random:upto(4)) end, 3, nil, "end")

function make.coroutine(g)
  g.count = g.count + 1
  local name = "co" .. g.count
  g.coroutines[#g.coroutines + 1] = name
  return { ("w.coroutine(%q, function()"):format(name), block(g, 4), "end)", ("w.resume(%q)"):format(name) }
end

function make.resume(g)
  if #g.coroutines == 0 then return make.coroutine(g) end
  return { ("w.resume(%q)"):format(g.random:of(g.coroutines)) }
end

function make.scoped(g)
  local name = any(g, "qqcst")
  if not name then return make.queue(g) end
  return { ("w.scoped(%s, function()"):format(name), block(g, 3), "end)" }
end

--- Lets go of something.
function make.drop(g)
  local name = any(g, "qcst")
  if not name or not g.random:chance(3) then return make.collect(g) end
  return { name .. " = nil" }
end

function make.blunder(g)
  local q, ch = any(g, "q"), any(g, PIPES)
  if not q or not ch then return make.channel(g) end
  -- A finalizer may let go of a name at any point; a local stays.
  return { ("do local Q, C = %s, %s ; %s end"):format(q, ch, blunder(g.random, "Q", "C")) }
end

-- Simple ones, and ones with blocks in them, which are left out where it is deep.
local simple = {
  { 22, make.queue_call }, { 26, make.channel_call }, { 6, make.select }, { 3, make.sleep }, { 4, make.yield },
  { 2, make.raise }, { 5, make.collect }, { 2, make.resume }, { 2, make.drop }, { 4, make.blunder }, { 2, make.timer },
  { 1, make.shared }, { 1, make.channel },
}
local deep = {
  { 34, make.push }, { 5, make.every }, { 7, make.inside }, { 3, make.host }, { 3, make.coroutine }, { 2, make.scoped },
  { 4, make.loop }, { 2, make.queue },
}
local wild = { { 3, make.finalizer }, { 1, make.storm } }

function statement(g)
  g.left = g.left - 1
  if g.depth > 4 or g.left <= 0 or g.random:chance(2) then return g.random:weighted(simple)(g) end
  if g.wild and g.random:chance(8) then return g.random:weighted(wild)(g) end
  return g.random:weighted(deep)(g)
end

--- The statements of a program.
return function(random)
  local g = {
    random = random, names = {}, coroutines = {}, count = 0, depth = 0, where = "top",
    left = 20 + random:upto(80),                          -- how many statements, about
    wild = random:chance(3),                              -- with finalizers and hooks
  }
  local list = { make.queue(g) }
  if random:chance(2) then list[#list + 1] = make.queue(g) end
  for _ = 1, random:upto(3) do list[#list + 1] = make.channel(g) end
  if random:chance(4) then list[#list + 1] = make.shared(g) end
  if random:chance(3) then list[#list + 1] = make.timer(g) end
  for _ = 1, 4 + random:upto(14) do list[#list + 1] = statement(g) end
  local q = any(g, "q")
  list[#list + 1] = { ("w.run(%s)"):format(q) }
  return list
end
