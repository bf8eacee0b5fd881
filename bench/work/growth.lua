--- How the cost of a job grows with the jobs that wait, and that of a value with the values that lie in a channel.
-- These make the curves of docs/growth.svg; no target is set for them.

local H = require("bench.harness")
local jobs = require("bench.work.jobs")

-- A channel is filled and emptied.
local function channel(n, reps)
  local ch = H.queue.channel(n)
  return H.cpu(n * reps, function()
    for _ = 1, reps do
      for i = 1, n do ch:send(i) end
      for _ = 1, n do ch:receive() end
    end
  end)
end

-- The same with a table and two indexes, behind two functions.
local function list(n, reps)
  local items, first, last = {}, 1, 0
  local function send(v)
    last = last + 1
    items[last] = v
  end
  local function receive()
    local v = items[first]
    items[first] = nil
    first = first + 1
    return v
  end
  return H.cpu(n * reps, function()
    for _ = 1, reps do
      for i = 1, n do send(i) end
      for _ = 1, n do receive() end
    end
  end)
end

local GIB = 1024 * 1024 * 1024

local function job_point(n, size)
  local count = size(n, math.min(n, 20))
  local reps, options = size(math.max(1, math.floor(100000 / n)), 1), jobs.pool("many", size)
  local contenders = { { name = "queue", run = function() return jobs.queue(count, reps, options()) end } }
  local why
  if n <= 1000000 then
    contenders[2] = { name = "pure", run = function() return jobs.pure(count, reps, options()) end }
  else
    local free = H.available()
    if not free or free < 4 * GIB then why = "10,000,000 waiting jobs were left out: they want 4 GiB of free memory" end
  end
  return {
    id = ("growth jobs %d"):format(n),
    unit = "ns",
    rounds = n >= 100000 and 3 or 5,
    skip = why,
    contenders = contenders,
    curve = { plot = "jobs", n = n },
    rows = {},
  }
end

local function value_point(n, size)
  local count = size(n, math.min(n, 20))
  local reps = size(math.max(1, math.floor(200000 / n)), 1)
  return {
    id = ("growth values %d"):format(n),
    unit = "ns",
    rounds = 5,
    contenders = {
      { name = "queue", run = function() return channel(count, reps) end },
      { name = "pure", run = function() return list(count, reps) end },
    },
    curve = { plot = "values", n = n },
    rows = {},
  }
end

local G = {}

function G.contests(size)
  local points = {}
  for e = 1, 7 do points[#points + 1] = job_point(10 ^ e, size) end
  for e = 0, 6 do points[#points + 1] = value_point(10 ^ e, size) end
  return points
end

return G
