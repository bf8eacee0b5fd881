--- Plays the contests on the Lua that runs this, each in a process of its own, and keeps what was found in a file.
--
--   run.lua OUT [rounds=N] [rows=TEXT] [tiny]
--
-- `rows` takes the contests whose name has this text in it; `tiny` makes all of them so small that they prove nothing
-- but that they run. bench/write.lua makes pages of the file.

package.path = "./?.lua;" .. package.path
local H = require("bench.harness")
local judge = require("bench.judge")
local machine = require("bench.machine")

local options = {}
for i = 2, #arg do
  local name, value = arg[i]:match("^(%a+)=?(.*)$")
  options[name] = value
end
local rounds_wanted = tonumber(options.rounds)
local text = options.rows or ""
local tiny = options.tiny ~= nil

local ROUNDS = 7

local function split(line)
  local fields = {}
  for field in (line .. "\t"):gmatch("(.-)\t") do fields[#fields + 1] = field end
  return fields
end

-- What the contest's own process tells.
local function play(contest)
  local rounds = rounds_wanted or tiny and 1 or contest.rounds or ROUNDS
  local played = { samples = {}, missing = {} }
  local file = H.start("contest.lua", contest.id, rounds, tiny and "tiny" or "full")
  for line in file:lines() do
    local fields = split(line)
    if fields[1] == "missing" then
      played.missing[fields[2]] = fields[3]
    elseif fields[1] == "sample" then
      local of = played.samples[fields[2]] or {}
      played.samples[fields[2]] = of
      of[fields[3]] = of[fields[3]] or {}
      table.insert(of[fields[3]], tonumber(fields[4]))
    end
  end
  file:close()
  return played
end

local contests = {}
for _, contest in ipairs(require("bench.work.all").contests(tiny)) do
  if contest.id:find(text, 1, true) then contests[#contests + 1] = contest end
end
if #contests == 0 then
  io.stderr:write("No row has this in its name: ", text, "\n")
  os.exit(2)
end

local found = {
  name = H.name,
  interpreter = machine.interpreter(),
  module = H.queue._VERSION,
  machine = machine.machine(),
  peers = machine.peers(),
  rounds = rounds_wanted or ROUNDS,
  rows = {},
  points = {},
  notes = {},
}
for i, contest in ipairs(contests) do
  if contest.skip then
    table.insert(found.notes, contest.skip)
    io.stderr:write(H.name, ": ", contest.skip, "\n")
  else
    if not tiny then io.stderr:write(("%s: %s (%d of %d)\n"):format(H.name, contest.id, i, #contests)) end
    local played = play(contest)
    for _, row in ipairs(contest.rows) do table.insert(found.rows, judge.row(contest, row, played)) end
    if contest.curve then table.insert(found.points, judge.point(contest, played)) end
  end
end
require("bench.data").save(arg[1], found)
