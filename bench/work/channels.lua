--- Channels within one Lua state: against the floor, and between coroutines against cqueues' conditions.

local H = require("bench.harness")
local queue = H.queue

local function pair(n)
  local ch = queue.channel(1024)
  return H.cpu(n, function()
    for i = 1, n do
      ch:send(i)
      ch:receive()
    end
  end)
end

local function floor(n)
  local ch = queue.channel(1024)
  return H.cpu(n, function()
    for _ = 1, n do
      ch:cap()
      ch:cap()
    end
  end)
end

-- Two jobs, one value after the other. In a capacity of 1 one may lie in between; with 0 it goes from hand to hand.
local function two_jobs(n, capacity)
  return H.cpu(n, function()
    local q, ch = queue.new{ concurrency = 2 }, queue.channel(capacity)
    q:push(function() for i = 1, n do ch:send(i) end end)
    q:push(function() for _ = 1, n do ch:receive() end end)
    q:run()
  end)
end

-- The same with cqueues: a list with two indexes, and a condition for each of the two.
local function two_threads(n, capacity)
  local cqueues, condition = require("cqueues"), require("cqueues.condition")
  return H.cpu(n, function()
    local loop, filled, emptied = cqueues.new(), condition.new(), condition.new()
    local items, first, last = {}, 1, 0
    loop:wrap(function()
      for i = 1, n do
        while last - first + 1 >= capacity do emptied:wait() end
        last = last + 1
        items[last] = i
        filled:signal()
      end
    end)
    local value
    loop:wrap(function()
      for _ = 1, n do
        while last < first do filled:wait() end
        value = items[first]
        items[first] = nil
        first = first + 1
        emptied:signal()
      end
    end)
    assert(loop:loop())
    assert(value == n)
  end)
end

-- Unbuffered: the sender goes on only when his value has been taken.
local function two_threads_unbuffered(n)
  local cqueues, condition = require("cqueues"), require("cqueues.condition")
  return H.cpu(n, function()
    local loop, filled, emptied = cqueues.new(), condition.new(), condition.new()
    local full, slot = false, nil
    loop:wrap(function()
      for i = 1, n do
        slot, full = i, true
        filled:signal()
        while full do emptied:wait() end
      end
    end)
    local value
    loop:wrap(function()
      for _ = 1, n do
        while not full do filled:wait() end
        value, full = slot, false
        emptied:signal()
      end
    end)
    assert(loop:loop())
    assert(value == n)
  end)
end

-- A token goes round `laps` times; counted for each hand-over, with the making of the ring in it.
local function ring_of_jobs(size, laps)
  return H.cpu(size * laps, function()
    local q, links = queue.new{ concurrency = size }, {}
    for i = 1, size do links[i] = queue.channel() end
    q:push(function()
      for i = 1, laps do
        links[2]:send(i)
        links[1]:receive()
      end
    end)
    for i = 2, size do
      local from, to = links[i], links[i % size + 1]
      q:push(function() for _ = 1, laps do to:send((from:receive())) end end)
    end
    q:run()
    assert(q:metrics().succeeded == size)
  end)
end

local function ring_of_threads(size, laps)
  local cqueues, condition = require("cqueues"), require("cqueues.condition")
  return H.cpu(size * laps, function()
    local loop, arrived, here = cqueues.new(), {}, {}
    for i = 1, size do arrived[i] = condition.new() end
    local function give(i, token)
      here[i] = token
      arrived[i]:signal()
    end
    local function get(i)
      while not here[i] do arrived[i]:wait() end
      local token = here[i]
      here[i] = nil
      return token
    end
    local ended = 0
    loop:wrap(function()
      for i = 1, laps do
        give(2, i)
        get(1)
      end
      ended = ended + 1
    end)
    for i = 2, size do
      local to = i % size + 1
      loop:wrap(function()
        for _ = 1, laps do give(to, get(i)) end
        ended = ended + 1
      end)
    end
    assert(loop:loop())
    assert(ended == size)
  end)
end

local C = {}

function C.contests(size)
  local pairs_, values = size(300000, 50), size(100000, 50)
  local members, laps = size(1000, 10), size(50, 2)
  local cqueues = "cqueues conditions"
  return {
    {
      id = "channel pair",
      unit = "ns",
      contenders = {
        { name = "queue", run = function() return pair(pairs_) end },
        { name = "floor", run = function() return floor(pairs_) end },
      },
      rows = {
        { section = "Channels", work = "send + receive, buffered", short = "send + receive",
          ours = "queue", theirs = "floor", against = "the floor", most = { puc = 1.5, jit = 2.5 } },
      },
    },
    {
      id = "channel jobs",
      unit = "ns",
      contenders = {
        { name = "queue", run = function() return two_jobs(values, 1) end },
        { name = "cqueues", needs = "cqueues", run = function() return two_threads(values, 1) end },
      },
      rows = {
        { section = "Channels", work = "100,000 values from job to job, room for one",
          short = "job to job, room for one", ours = "queue", theirs = "cqueues", against = cqueues, least = 5 },
      },
    },
    {
      id = "channel roomy",
      unit = "ns",
      contenders = {
        { name = "queue", run = function() return two_jobs(values, 64) end },
        { name = "cqueues", needs = "cqueues", run = function() return two_threads(values, 64) end },
      },
      rows = {
        { section = "Channels", work = "100,000 values from job to job, room for 64", ours = "queue",
          theirs = "cqueues", against = cqueues },
      },
    },
    {
      id = "channel unbuffered",
      unit = "ns",
      contenders = {
        { name = "queue", run = function() return two_jobs(values, 0) end },
        { name = "cqueues", needs = "cqueues", run = function() return two_threads_unbuffered(values) end },
      },
      rows = {
        { section = "Channels", work = "100,000 values from job to job, unbuffered", short = "job to job, unbuffered",
          ours = "queue", theirs = "cqueues", against = cqueues, least = 4 },
      },
    },
    {
      id = "channel ring",
      unit = "ns",
      contenders = {
        { name = "queue", run = function() return ring_of_jobs(members, laps) end },
        { name = "cqueues", needs = "cqueues", run = function() return ring_of_threads(members, laps) end },
      },
      rows = {
        { section = "Channels", work = "a token through a ring of 1,000 jobs", short = "ring of 1,000 jobs",
          ours = "queue", theirs = "cqueues", against = cqueues, least = 4 },
      },
    },
  }
end

return C
