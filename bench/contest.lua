--- Plays one contest, in a process of its own: the contenders take turns, round after round. Prints a line for each
-- number, with tabs in between: `sample`, the contender, the number's name, the number. Standard error tells how far
-- it is.
--
--   contest.lua ID ROUNDS [tiny]

package.path = "./?.lua;" .. package.path
local H = require("bench.harness")

local id, rounds, tiny = arg[1], tonumber(arg[2]), arg[3] == "tiny"

local contest
for _, one in ipairs(require("bench.work.all").contests(tiny)) do
  if one.id == id then contest = one end
end
assert(contest, "there is no such contest: " .. tostring(id))

local function print_line(...) io.stdout:write(table.concat({ ... }, "\t"), "\n") end
local function progress(...) if not tiny then io.stderr:write(...) end end

local function short(value)
  if type(value) == "number" then return ("%.4g"):format(value) end
  local names, words = {}, {}
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do words[i] = ("%s %.4g"):format(name, value[name]) end
  return table.concat(words, ", ")
end

local playing = {}
for _, contender in ipairs(contest.contenders) do
  if contender.needs and not H.optional(contender.needs) then
    print_line("missing", contender.name, contender.needs)
  else
    playing[#playing + 1] = contender
  end
end

for round = 1, rounds do
  local words = {}
  for _, contender in ipairs(playing) do
    collectgarbage()
    collectgarbage()
    local value = contender.run()
    words[#words + 1] = contender.name .. " " .. short(value)
    if type(value) == "number" then value = { [""] = value } end
    for name, number in pairs(value) do print_line("sample", contender.name, name, ("%.17g"):format(number)) end
  end
  progress(("%s: %s, %d/%d: %s\n"):format(H.name, id, round, rounds, table.concat(words, "; ")))
end
