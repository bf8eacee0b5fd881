--- A program from a seed: a tree of statements, which can be shown as Lua source, whole or without some of them.
--
-- A statement is an array of lines and of blocks, which are arrays of statements themselves:
--   { "w.push(q1, function(job)", { statement, … }, "end, { priority = 3 })" }

local Random = require("fuzz.random")
local grammar = require("fuzz.grammar")
local kept = require("fuzz.seeds")

local Program = {}

--- Numbers the statements from the top to the bottom; returns how many there are.
local function number(block, from)
  for _, statement in ipairs(block) do
    from = from + 1
    statement.number = from
    for _, part in ipairs(statement) do
      if type(part) == "table" then from = number(part, from) end
    end
  end
  return from
end

--- The program of a seed; seeds below zero are those of fuzz/seeds.lua.
function Program.generate(seed)
  if seed < 0 then
    local block = { {} }
    for line in assert(kept[-seed], "no such program is kept").source:gmatch("[^\n]+") do
      -- The source of one that was kept begins and ends as any other.
      if not line:find("^local w, queue = ") and line ~= "w.finish()" then
        table.insert(block[1], line)
      end
    end
    return { seed = seed, block = block, size = number(block, 0) }
  end
  local block = grammar(Random.new(seed))
  return { seed = seed, block = block, size = number(block, 0) }
end

local function show(block, indent, without, lines)
  for _, statement in ipairs(block) do
    if not (without and without[statement.number]) then
      for _, part in ipairs(statement) do
        if type(part) == "table" then
          show(part, indent .. "  ", without, lines)
        else
          lines[#lines + 1] = indent .. part
        end
      end
    end
  end
end

--- The source; `without` is a set of numbers of statements to leave out, each with what is in it.
function Program.source(program, without)
  local lines = {
    ("-- Seed %d of the fuzzer; `w` is fuzz/world.lua, which makes the calls and checks them."):format(program.seed),
    "local w, queue = ...",
  }
  show(program.block, "", without, lines)
  -- Here, where the names of the program still hold what it has made.
  lines[#lines + 1] = "w.finish()"
  return table.concat(lines, "\n") .. "\n"
end

return Program
