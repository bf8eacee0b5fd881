--- Leaves statements out of a program that fails, as long as it fails in the same way.

local Program = require("fuzz.program")

-- A failure may hang on time: a smaller program is tried so often before it is said to be well.
local TRIES = 3

--- What a failure is about: its text without the numbers and names in it.
local function kind_of(text) return (text:gsub("[%a_]*%d+[%d.e+-]*", "N"):sub(1, 60)) end

return function(Child, seed, say)
  local program = Program.generate(seed)

  local function listed(without)
    local list = {}
    for n in pairs(without) do list[#list + 1] = n end
    table.sort(list)
    return table.concat(list, ",")
  end

  --- How it fails, or nil.
  local function failure(without, kind)
    for _ = 1, TRIES do
      local result = Child.run{ from = seed, count = 1, seconds = 10, limit = 15, without = listed(without) }
      for _, one in ipairs(result.failures) do
        if not kind or kind_of(one.text) == kind then return one end
      end
    end
  end

  local first = failure({})
  if not first then
    say(("seed %d does not fail by itself\n"):format(seed))
    return false
  end
  local kind = kind_of(first.text)
  say(("%s\n%d statements\n"):format(first.text, program.size))

  -- Ever smaller runs of statements, from the last to the first. What is inside of one that is gone goes with it.
  local without, size = {}, program.size
  repeat
    local progress = false
    local at = program.size - size + 1
    while at > 1 - size do
      local candidate, new = {}, false
      for n in pairs(without) do candidate[n] = true end
      for n = math.max(1, at), math.min(program.size, at + size - 1) do
        new = new or not candidate[n]
        candidate[n] = true
      end
      if new and failure(candidate, kind) then without, progress = candidate, true end
      at = at - size
    end
    if size > 1 then size = math.floor(size / 2) elseif not progress then size = 0 end
  until size < 1

  local last = failure(without, kind) or first
  say(Program.source(program, without), "\n-- ", last.text, "\n")
  for _, line in ipairs(last.more) do say("-- ", line, "\n") end
  return true
end
