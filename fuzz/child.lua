--- Runs programs, one after the other, each in a world of its own; what it says goes to the driver, fuzz/run.lua:
--
--   run SEED         before each program
--   bad SEED TEXT    a failure, and `| …` lines with more about it
--   slow SEED        it took long, for whatever reason
--   end SEED         the last line: the seed that would come next
--
--   lua5.4 fuzz/child.lua FROM COUNT SECONDS [trace] [WITHOUT] [MUTANT]
--
-- WITHOUT is a list of numbers of statements to leave out, as fuzz/shrink.lua asks; MUTANT the number of one of
-- fuzz/mutants.lua.

local root = (arg[0]:match("^(.*)fuzz[/\\]child%.lua$") or "")
package.path = root .. "?.lua;" .. package.path
local name = rawget(_G, "jit") and "luajit" or "lua" .. _VERSION:match("%d+%.%d+")
package.cpath = ("%s%s/%s/?.so;%s"):format(root, os.getenv("QUEUE_BUILD") or "build", name, package.cpath)

local queue = require("queue")
local Program = require("fuzz.program")
local World = require("fuzz.world")
local has = require("fuzz.probe")(queue)

-- A program takes some ten milliseconds; one that takes longer than this waits for something that does not come.
local SLOW = 5000

local from, count, seconds = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local tracing = arg[4] == "trace"
local without
for n in (arg[5] or ""):gmatch("%d+") do
  without = without or {}
  without[tonumber(n)] = true
end

local mutant = require("fuzz.mutants")[tonumber(arg[6] or "")]
if mutant then mutant.breaks(queue) end

local function say(text)
  io.stdout:write((text:gsub("%c", "?")), "\n")
  io.stdout:flush()
end

--- A function of its own, so that nothing holds what the program has made once it has ended.
local function run_program(w, source)
  local chunk, why = (loadstring or load)(source, "=program") -- luacheck: compat
  if chunk then w.guarded("the program", chunk, w, queue) else w.fail("the program is none: %s", why) end
end

local function run(seed)
  local source = Program.source(Program.generate(seed), without)
  local w = World.new(queue, has, seed, tracing and function(text) say("| " .. text) end or nil)
  local begun = queue.now()
  run_program(w, source)
  -- A program that was left by an error has not come to this itself.
  if not w.ending then w.finish() end
  w.leave()
  if queue.now() - begun > SLOW then say("slow " .. seed) end
  return w.failures
end

local seed, begun = from, queue.now()
while seed < from + count and queue.now() - begun < seconds * 1000 do
  say("run " .. seed)
  for i, failure in ipairs(run(seed)) do
    if i > 3 then break end
    say(("bad %d %s"):format(seed, (failure.message:gsub("\n", " "))))
    for line in failure.where:gmatch("[^\n]+") do say("| " .. line) end
  end
  seed = seed + 1
end
say("end " .. seed)
