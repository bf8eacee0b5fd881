#!/usr/bin/env lua
--- Random programs over the whole of the module, on the Lua that runs this file:
--
--   lua5.4 fuzz/run.lua --seconds 60           fresh programs for a minute
--   lua5.4 fuzz/run.lua --from 1 --count 5000  programs 1 to 5000
--   lua5.4 fuzz/run.lua --seed 42              one program again; with --trace each call as it is made
--   lua5.4 fuzz/run.lua --print 42             its source
--   lua5.4 fuzz/run.lua --shrink 42            the least of its statements that still fail
--   lua5.4 fuzz/run.lua --kept                 the programs of fuzz/seeds.lua
--   lua5.4 fuzz/run.lua --mutants              whether the fuzzer finds what fuzz/mutants.lua breaks
--
-- Programs run in child processes, some hundreds in each, so that a crash or a hang is seen and pinned to its seed. The
-- exit code is 0 where nothing failed.

local root = arg[0]:match("^(.*)fuzz[/\\]run%.lua$") or ""
package.path = root .. "?.lua;" .. package.path
local Child = require("fuzz.process")(root)

-- A child's programs, the seconds it takes at most where all is well, and after how many more it hangs.
local BATCH, SECONDS, HANG = 500, 10, 30

local options = { seconds = true, count = true, from = true, seed = true, print = true, shrink = true }
local flags = { trace = true, kept = true, quiet = true, mutants = true }

local function usage(text)
  io.stderr:write(text, "\n\n")
  for line in io.lines(arg[0]) do
    if line:find("^%-%-") then io.stderr:write(line:gsub("^%-+ ?", ""), "\n") end
    if not line:find("^[#-]") then break end
  end
  os.exit(2)
end

local given = {}
do
  local i = 1
  while arg[i] do
    local name = arg[i]:match("^%-%-(%a+)$")
    if flags[name or ""] then
      given[name] = true
    elseif options[name or ""] then
      i = i + 1
      given[name] = tonumber(arg[i] or "") or usage("a number is missing after --" .. name)
    else
      usage("no such option: " .. arg[i])
    end
    i = i + 1
  end
end

local function say(...) io.stdout:write(...); io.stdout:flush() end

if given.print then
  local Program = require("fuzz.program")
  say(Program.source(Program.generate(given.print)))
  os.exit(0)
end
if given.shrink then
  os.exit(require("fuzz.shrink")(Child, given.shrink, say) and 0 or 1)
end
if given.seed then
  given.from, given.count = given.seed, 1
end

if given.mutants then
  -- As many programs as each needs; what hangs is not waited for.
  local missed = 0
  for number, mutant in ipairs(require("fuzz.mutants")) do
    local from, last, found = given.from or 1, (given.from or 1) + (given.count or 1000), nil
    while from < last and not found do
      local result = Child.run{ from = from, count = 100, seconds = SECONDS, limit = 5, mutant = number }
      for _, failure in ipairs(result.failures) do
        if failure.text:find(mutant.found) then found = failure end
      end
      from = result.next
    end
    if not found then missed = missed + 1 end
    say(("%s: %s\n"):format(mutant.name, found and ("seed %d: %s"):format(found.seed, found.text) or "NOT FOUND"))
  end
  say(("%s: %d mutants not found\n"):format(Child.name, missed))
  os.exit(missed == 0 and 0 or 1)
end

local failures, programs, begun = {}, 0, os.time()

--- Runs programs from `from` on in one child; returns the seed to go on with.
local function batch(from, count, seconds)
  local limit = given.seed and HANG or seconds + HANG
  local result = Child.run{ from = from, count = count, seconds = seconds, limit = limit, trace = given.trace }
  programs = programs + result.next - from
  if given.trace then say(result.text) end
  -- The machine may have been busy elsewhere: what is slow has to be so twice.
  for _, seed in ipairs(result.slow) do
    if #Child.run{ from = seed, count = 1, seconds = seconds, limit = seconds + HANG }.slow > 0 then
      result.failures[#result.failures + 1] = { seed = seed, text = "takes longer than it should", more = {} }
    end
  end
  local last
  for _, failure in ipairs(result.failures) do
    -- What else fails in a program often follows from the first.
    if failure.seed ~= last or given.seed then
      failures[#failures + 1] = failure
      say(("seed %d FAILED: %s\n"):format(failure.seed, failure.text))
      for _, line in ipairs(failure.more) do say("    ", line, "\n") end
    end
    last = failure.seed
  end
  return result.next
end

local function progress(next)
  local elapsed = os.time() - begun
  if not given.quiet then
    say(("%s: %d programs, %.0f a minute, %d s, %d failures, next seed %d\n"):format(Child.name, programs,
      programs * 60 / math.max(1, elapsed), elapsed, #failures, next))
  end
end

if given.kept then
  for number in ipairs(require("fuzz.seeds")) do batch(-number, 1, SECONDS) end
else
  local from = given.from or os.time() % 1000000 * 1000
  local last = given.count and from + given.count or math.huge
  local seconds = given.seconds or not given.count and 60 or math.huge
  say(("%s: from seed %d\n"):format(Child.name, from))
  local told = begun
  while from < last and os.time() - begun < seconds do
    from = batch(from, math.min(BATCH, last - from), math.min(SECONDS, math.max(1, seconds - (os.time() - begun))))
    if os.time() - told >= 10 then
      told = os.time()
      progress(from)
    end
  end
end

say(("%s: %d programs in %d s, %d failures\n"):format(Child.name, programs, os.time() - begun, #failures))
os.exit(#failures == 0 and 0 or 1)
