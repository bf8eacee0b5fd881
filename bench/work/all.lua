--- Every contest there is, in order.
--
-- A contest has contenders, which take turns, and rows, each of which sets one contender beside another (`theirs`) or
-- beside a limit. A contender's `run` answers with one number, or with several by name: a row then takes `queue:p99`.
--   least = x   theirs / ours must be at least x
--   most  = x   ours / theirs must be at most x
--   limit = x   ours must be at most x
-- A target may differ: { puc = 4, jit = 1.5 }.

local A = {}

local WORKS = { "jobs", "channels", "shared", "memory", "timers", "growth" }

--- The contests at full size, or so small that all of them take a second or two.
function A.contests(tiny)
  local function size(full, small) return tiny and small or full end
  local list = {}
  for _, name in ipairs(WORKS) do
    for _, contest in ipairs(require("bench.work." .. name).contests(size)) do list[#list + 1] = contest end
  end
  return list
end

return A
