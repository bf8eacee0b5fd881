--- What the specs share: plain checks, patience with slow machines, garbage, child processes.
-- The specs use no more of busted than `describe`, `it` and `pending(reason)` inside an `it`.
--
-- Two environment variables change how hard the suite works:
--   QUEUE_SPEC_SLOW=20   upper bounds of time are 20 times as generous and big counts 20 times smaller (valgrind)
--   QUEUE_SPEC_GC=1      the collector never rests (spec/run.lua sees to that); here it is one more reason to be slow

local H = {}

local here = debug.getinfo(1, "S").source:match("^@(.*)[/\\][^/\\]*$") or "."

-- Which Lua this is ---------------------------------------------------------------------------------------------

H.jit = rawget(_G, "jit") ~= nil
H.version = H.jit and "luajit" or _VERSION:lower():gsub("%s+", "")
H.lua51 = H.version == "lua5.1"                        -- stock 5.1: no yield across pcall
H.lua54 = _VERSION ~= "Lua 5.1" and _VERSION ~= "Lua 5.2" and _VERSION ~= "Lua 5.3"
H.integers = math.type ~= nil                          -- 5.3 and later
H.pack = table.pack or function(...) return { n = select("#", ...), ... } end
H.unpack = table.unpack or unpack

--- The interpreter that runs the suite, as it was typed.
local function interpreter()
  local args, i = arg or {}, 0
  while args[i - 1] do i = i - 1 end
  return i < 0 and args[i] or H.version
end

-- The module: what the path finds, else what was built in this checkout.
local function find_so()
  for template in package.cpath:gmatch("[^;]+") do
    local path = template:gsub("%?", "queue")
    local f = io.open(path, "rb")
    if f then f:close(); return path end
  end
end
if not find_so() and not package.preload.queue then
  package.cpath = "./build/" .. H.version .. "/?.so;" .. package.cpath
end
H.so = find_so()

local queue = require("queue")
H.queue = queue

--- A library that may be missing: it, or nil. The runner forgets after each file what the file has loaded, and not
-- every library survives being collected and loaded once more; so each is kept.
function H.optional(name)
  local registry = debug.getregistry()
  local kept = registry["queue spec: libraries"] or {}
  registry["queue spec: libraries"] = kept
  if kept[name] then package.loaded[name] = kept[name] end
  local there, lib = pcall(require, name)
  if not there then return nil end
  kept[name] = lib
  return lib
end
H.optional("luv")                                      -- which crashes the second time

-- Patience ------------------------------------------------------------------------------------------------------

local valgrind = tonumber(os.getenv("QUEUE_SPEC_SLOW") or "")
local slow = valgrind or 1
if (os.getenv("QUEUE_SPEC_GC") or "") ~= "" then slow = math.max(slow, 10) end
H.slow = slow

--- An upper bound of time in milliseconds, made generous where the suite is known to run slowly.
function H.patience(ms) return ms * slow end

--- A big count, smaller where the suite is known to run slowly.
function H.count(n) return math.max(10, math.floor(n / slow)) end

-- Checks --------------------------------------------------------------------------------------------------------

local function show(v) return type(v) == "string" and ("%q"):format(v) or tostring(v) end

function H.eq(got, want, what)
  if not rawequal(got, want) and got ~= want then
    error(("%s: got %s, want %s"):format(what or "value", show(got), show(want)), 2)
  end
end

--- The call's results, all of them: `H.results(H.pack(f()), 1, 2)`.
function H.results(got, ...)
  local n = select("#", ...)
  if got.n ~= n then error(("%d results instead of %d"):format(got.n, n), 2) end
  for i = 1, n do
    local want = (select(i, ...))
    if got[i] ~= want then error(("result %d: got %s, want %s"):format(i, show(got[i]), show(want)), 2) end
  end
end

function H.ok(v, what)
  if not v then error(what or "not true", 2) end
  return v
end

function H.between(x, low, high, what)
  if type(x) ~= "number" or not (x >= low and x <= high) then
    error(("%s: %s is not between %s and %s"):format(what or "number", show(x), low, high), 2)
  end
end

function H.has(text, plain, what)
  if type(text) ~= "string" or not text:find(plain, 1, true) then
    error(("%s: no %s in %s"):format(what or "text", show(plain), show(text)), 2)
  end
end

function H.list(got, want, what)
  local text = table.concat(got, " ")
  if text ~= want then error(("%s: got %s, want %s"):format(what or "list", show(text), show(want)), 2) end
end

--- `fn`, written on one line, must raise a plain string that begins with that line; `pattern` must be in it.
function H.raises(pattern, fn)
  local info = debug.getinfo(fn, "S")
  local ok, err = pcall(fn)
  if ok then error("no error, where one with " .. show(pattern) .. " was due", 2) end
  if type(err) ~= "string" then error("the error is a " .. type(err), 2) end
  local at = info.short_src .. ":" .. info.linedefined .. ": "
  if err:sub(1, #at) ~= at then error(("error %s does not begin with %s"):format(show(err), show(at)), 2) end
  if not err:find(pattern) then error(("error %s does not match %s"):format(show(err), show(pattern)), 2) end
  return err
end

--- The first failure of `fn` may be the machine's; one clean pass in `times` is enough.
function H.eventually(times, fn)
  -- Stock 5.1 cannot wait in a concurrent job under pcall: there one time has to do.
  if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then return fn() end
  local ok, err
  for _ = 1, times do
    ok, err = pcall(fn)
    if ok then return end
  end
  error(err, 2)
end

--- Makes an `it` for what takes a library: `with("luv", title, function(uv) … end)`. busted gives `it` and `pending` to
-- spec files alone, and another `pending` inside an `it`: `own()` returns those of the caller.
function H.with(own)
  return function(name, title, fn)
    own()(title, function()
      local _, pending = own()
      local lib = H.optional(name)
      if not lib then return pending(name .. " is not installed") end
      return fn(lib)
    end)
  end
end

--- Milliseconds that `fn` took, and its results.
function H.timed(fn)
  local start = queue.now()
  local r = H.pack(fn())
  return queue.now() - start, r
end

--- A list, and a maker of jobs that note a word in it.
function H.log()
  local l = {}
  return l, function(word) return function() l[#l + 1] = word end end
end

function H.noop() end

--- The law of conservation. `lost.refused` pushes were refused and `lost.cleared` jobs cleared so far.
function H.conserved(q, lost)
  local m, refused, cleared = q:metrics(), lost and lost.refused or 0, lost and lost.cleared or 0
  local sum = m.succeeded + m.failed + m.expired + m.cancelled + cleared + m.pending + m.in_flight
  if m.enqueued ~= sum then error(("enqueued %d, accounted for %d"):format(m.enqueued, sum), 2) end
  if m.dropped ~= refused + cleared then error(("dropped %d, want %d"):format(m.dropped, refused + cleared), 2) end
  if m.processed ~= m.succeeded + m.failed + m.retried then error("processed is not what ended", 2) end
  if m.pending ~= q:size() or m.in_flight ~= q:in_flight() then error("metrics and queue disagree", 2) end
  return m
end

-- Garbage -------------------------------------------------------------------------------------------------------

--- Calls `fn` with LuaJIT's compiler off: compiled code looks at no hook, and allocates where nobody sees it.
function H.interpreted(fn)
  if not H.jit then return fn() end
  local jit = require("jit")
  jit.off(); jit.flush()
  local done, err = pcall(fn)
  jit.on()
  if not done then error(err, 0) end
end

--- Collects until what finalizers let go of is gone too.
function H.collect()
  for _ = 1, 4 do collectgarbage() end
end

--- `make(marker)` builds something that refers to the marker, and lets go of it: then the marker must be garbage.
function H.collected(make)
  local weak = setmetatable({}, { __mode = "v" })
  for i = 1, 20 do
    local marker = { i }
    weak[i] = marker
    make(marker)
  end
  H.collect()
  local left = 0
  for i = 1, 20 do if weak[i] then left = left + 1 end end
  -- A conservative slot on the stack may hold the last one.
  if left > 1 then error(left .. " of 20 are still held", 2) end
end

--- Makes garbage that calls `fn` when it is collected.
function H.finalizer(fn)
  if rawget(_G, "newproxy") then
    getmetatable(newproxy(true)).__gc = fn
  else
    setmetatable({}, { __gc = fn })
  end
end

--- Resident memory of this process in KiB, or nil where the system does not tell; and the number of its threads. Under
--- valgrind it is mostly valgrind's own, which looks for leaks itself.
function H.resident()
  local f = io.open("/proc/self/status")
  if not f then return nil end
  local text = f:read("*a"); f:close()
  return not valgrind and tonumber(text:match("VmRSS:%s*(%d+)")) or nil, tonumber(text:match("Threads:%s*(%d+)"))
end

--- The number of OS threads of this process, or nil.
function H.threads() return (select(2, H.resident())) end

--- The same, once the timers of earlier tests are gone.
function H.quiet_threads()
  H.collect()
  local n, since = H.threads(), queue.now()
  while n and queue.now() - since < 50 do
    queue.sleep(5)
    if H.threads() ~= n then n, since = H.threads(), queue.now() end
  end
  return n
end

--- Waits until `fn` says yes, at most `ms`; returns its answer.
function H.wait_for(ms, fn)
  local last = queue.now() + H.patience(ms)
  while true do
    local yes = fn()
    if yes or queue.now() > last then return yes end
    queue.sleep(2)
  end
end

-- Child processes -----------------------------------------------------------------------------------------------

function H.quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function slurp(name)
  local f = io.open(name, "rb")
  if not f then return "" end
  local text = f:read("*a"); f:close()
  return text
end

--- The head of a shell command that runs this interpreter with this module on its path.
local function lua_command(cpath)
  local env = {}
  for i, v in ipairs{ "", "_5_2", "_5_3", "_5_4", "_5_5" } do env[i] = "LUA_CPATH" .. v .. "=" .. H.quote(cpath) end
  return "env " .. table.concat(env, " ") .. " " .. H.quote(interpreter())
end

function H.script(name) return here .. "/scripts/" .. name end

local function command(name, ...)
  local words = { lua_command(package.cpath), H.quote(H.script(name)) }
  for i = 1, select("#", ...) do words[#words + 1] = H.quote(tostring((select(i, ...)))) end
  return table.concat(words, " ")
end

--- Runs a shell command to its end: its exit code, what it wrote to its two outputs, and the time it took.
-- A command killed by signal n has the code 128 + n.
function H.shell(line)
  local out, err, rc = os.tmpname(), os.tmpname(), os.tmpname()
  local start = queue.now()
  os.execute(("( %s ) >%s 2>%s </dev/null; echo $? >%s"):format(line, out, err, rc))
  local r = { ms = queue.now() - start, code = tonumber(slurp(rc)), out = slurp(out), err = slurp(err) }
  os.remove(out); os.remove(err); os.remove(rc)
  return r
end

--- Runs `spec/scripts/name` under this interpreter.
function H.run(name, ...) return H.shell("exec " .. command(name, ...)) end

--- The same under a limit that `ulimit` sets; nil where the shell cannot set it.
-- `flags` is tried in order, since shells differ in the letter.
function H.run_limited(flags, limit, name, ...)
  local set = {}
  for i, flag in ipairs(flags) do set[i] = ("ulimit -%s %d 2>/dev/null"):format(flag, limit) end
  local r = H.shell(("ulimit -c 0; %s || exit 99; exec %s"):format(table.concat(set, " || "), command(name, ...)))
  if r.code ~= 99 then return r end
end

--- The same as a user without rights, with his number of threads limited; nil and why where that cannot be had.
function H.run_few_threads(limit, name, ...)
  local room = H.shell("mktemp -d").out:gsub("%s+$", "")
  if room == "" or not H.so then return nil, "no place for a copy of the module" end
  local words = { lua_command(room .. "/?.so"), H.quote(room .. "/script.lua") }
  for i = 1, select("#", ...) do words[#words + 1] = H.quote(tostring((select(i, ...)))) end
  local line = ("ulimit -u %d 2>/dev/null || ulimit -p %d 2>/dev/null || exit 99; exec %s"):format(
    limit, limit, table.concat(words, " "))
  local copy = ("cp %s %s/queue.so && cp %s %s/script.lua && chmod -R a+rX %s && cd %s && "):format(
    H.quote(H.so), room, H.quote(H.script(name)), room, room, room)
  local user = "if [ \"$(id -u)\" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups true || exit 98;"
    .. " exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c " .. H.quote(line) .. "; else "
    .. line .. "; fi"
  local r = H.shell(copy .. user)
  os.execute("rm -rf " .. room)
  if r.code == 98 then return nil, "no way to drop rights" end
  if r.code == 99 then return nil, "the shell cannot limit threads" end
  return r
end

--- Starts `spec/scripts/name`, waits until it prints `ready`, gives it time to begin its wait, sends it SIGINT, and
-- waits for its end. `ms` in the answer runs from the signal.
function H.interrupt(name, ...)
  local out, err, rc, pid = os.tmpname(), os.tmpname(), os.tmpname(), os.tmpname()
  os.remove(rc)
  os.execute(("( sh -c 'echo $$ >%s; exec \"$@\"' sh %s >%s 2>%s </dev/null; echo $? >%s.new; mv %s.new %s ) &"):format(
    pid, command(name, ...), out, err, rc, rc, rc))
  local r = {}
  r.ready = H.wait_for(10000, function() return slurp(out):find("ready", 1, true) end)
  queue.sleep(60)
  local start = queue.now()
  os.execute("kill -INT " .. slurp(pid):match("%d+"))
  r.ended = H.wait_for(10000, function() return slurp(rc):find("%d") end)
  r.ms = queue.now() - start
  if not r.ended then os.execute("kill -KILL " .. slurp(pid):match("%d+")) end
  r.code, r.out, r.err = tonumber(slurp(rc)), slurp(out), slurp(err)
  os.remove(out); os.remove(err); os.remove(rc); os.remove(pid)
  return r
end

--- Interrupts the script `name` in a wait. Whatever the machine's load, the right things must be said and done; and once
-- in five tries it must be within 200 ms, give or take the end of the process.
function H.interrupted(name, code, out, err, ...)
  local best = math.huge
  for _ = 1, 5 do
    local r = H.interrupt(name, ...)
    H.ok(r.ready, "the script did not come to its wait: " .. r.err)
    H.ok(r.ended, "the script did not end")
    H.eq(r.out, out, "standard output"); H.eq(r.code, code, "exit code")
    if err then H.has(r.err, err) else H.eq(r.err, "", "standard error") end
    best = math.min(best, r.ms)
    -- A script that catches the error goes on for a while.
    if best < H.patience(code == 1 and 250 or 3000) then return end
  end
  error("the best of five tries took " .. best .. " ms", 2)
end

--- Runs the script `name`; it must end by itself within a second, with this code, and say nothing but what it should.
function H.ends(name, code, err, ...)
  local words = H.pack(...)
  H.eventually(3, function()
    local r = H.run(name, H.unpack(words, 1, words.n))
    H.eq(r.code, code, "exit code (" .. r.err .. ")"); H.eq(r.out, "", "standard output")
    if err then H.has(r.err, err) else H.eq(r.err, "", "standard error") end
    H.between(r.ms, 0, H.patience(1000), "milliseconds to the end")
  end)
end

--- Two ends of a connection on this machine, of luasocket; the other one does not block.
function H.connection()
  local socket = H.optional("socket")
  local server = assert(socket.bind("127.0.0.1", 0))
  local _, port = server:getsockname()
  local client = assert(socket.connect("127.0.0.1", port))
  local peer = assert(server:accept())
  server:close(); peer:settimeout(0)
  return client, peer
end

--- A generator of its own, so that a seed names a program on every Lua.
local function random(seed)
  local state = seed * 2654435769 % 2147483647 + 1
  return function(n)
    state = state * 16807 % 2147483647
    return state % n + 1
  end
end

--- Runs `program(pick)` for many seeds; the seed is in the message of a failure.
function H.for_seeds(n, program)
  for seed = 1, H.count(n) do
    local done, err = pcall(program, random(seed))
    if not done then error(("seed %d: %s"):format(seed, tostring(err)), 0) end
  end
end

return H
