--- Memory, each time in a fresh process: of a job that waits, and what is left after a burst.

local H = require("bench.harness")

local M = {}

function M.contests(size)
  local jobs = size(1000000, 1000)
  local function waiting(which) return function() return H.probe("waiting", which, jobs) end end
  local function burst(which) return function() return H.probe("burst", which, jobs) end end
  return {
    {
      id = "memory waiting",
      unit = "bytes",
      rounds = 5,
      contenders = { { name = "queue", run = waiting("queue") }, { name = "pure", run = waiting("pure") } },
      rows = {
        { section = "Memory", work = "a job that waits among 1,000,000, beyond its closure", short = "a waiting job",
          ours = "queue:bytes", theirs = "pure:bytes", against = "pure-Lua queue, to compare", limit = 200 },
      },
    },
    {
      id = "memory burst",
      unit = "times",
      rounds = 3,
      contenders = { { name = "queue", run = burst("queue") }, { name = "pure", run = burst("pure") } },
      rows = {
        { section = "Memory", work = "resident while 1,000,000 jobs wait, of before", ours = "queue:during",
          theirs = "pure:during", against = "pure-Lua queue, to compare" },
        { section = "Memory", work = "resident once they have run and garbage is collected, of before",
          ours = "queue:after", theirs = "pure:after", against = "pure-Lua queue, to compare" },
      },
    },
  }
end

return M
