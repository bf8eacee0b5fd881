--- Push and run of empty jobs with random priorities: against a queue in pure Lua, a bare binary heap, and the floor.

local H = require("bench.harness")
local peer = require("bench.peer")
local clock = require("bench.clock")
local format = require("bench.format")

local J = {}

local function noop() end
local function handler(e) return e end

-- Option tables, made once and outside of what is measured: job k takes the k-th, and after the last the first again.
local POOL = 65536

local function pool(bound, n)
  local random, options, known = H.random(bound), {}, {}
  for i = 1, n do
    local priority = random()
    known[priority] = known[priority] or { priority = priority }
    options[i] = known[priority]
  end
  return options
end

local KINDS = {
  few = { bound = 10, words = "10 priorities" },
  many = { bound = 2147483647, words = "65,536 priorities" },
}

--- A function that gives the option tables of this kind.
function J.pool(kind, size)
  local made
  return function()
    made = made or pool(KINDS[kind].bound, size(POOL, 64))
    return made
  end
end

-- Each of these has a loop of its own, for LuaJIT compiles a loop for what it sees in it first.

function J.queue(waiting, reps, options)
  local new, last = H.queue.new, #options
  return H.cpu(waiting * reps, function()
    for _ = 1, reps do
      local q = new()
      for k = 1, waiting do q:push(noop, options[k % last + 1]) end
      q:run()
    end
  end)
end

function J.pure(waiting, reps, options)
  local new, last = peer.new, #options
  return H.cpu(waiting * reps, function()
    for _ = 1, reps do
      local q = new(clock)
      for k = 1, waiting do q:push(noop, options[k % last + 1]) end
      q:run()
    end
  end)
end

-- The heap, with what it takes to keep push order and to outlive a job that raises; no ids, delays, retries or metrics.
local function heap(waiting, reps, options)
  local new, last = H.optional("binaryheap").minHeap, #options
  local function before(a, b)
    if a.priority ~= b.priority then return a.priority > b.priority end
    return a.order < b.order
  end
  return H.cpu(waiting * reps, function()
    for _ = 1, reps do
      local h = new(before)
      for k = 1, waiting do h:insert{ fn = noop, priority = options[k % last + 1].priority, order = k } end
      while h:peek() do pcall(h:pop().fn) end
    end
  end)
end

-- What any module in C costs for a job: two calls into it, and a protected call of the job.
local function floor(waiting, reps)
  local ch = H.queue.channel(1)
  return H.cpu(waiting * reps, function()
    for _ = 1, waiting * reps do
      ch:cap()
      ch:cap()
      xpcall(noop, handler)
    end
  end)
end

local function against_peers(kind, waiting, goal, size)
  local n = size(waiting, math.min(waiting, 20))
  local reps = size(math.max(1, math.floor(100000 / n)), 1)
  local options = J.pool(kind, size)
  local work = ("push + run, %s waiting, %s"):format(format.thousands(waiting), KINDS[kind].words)
  local short = ("%s jobs, %s"):format(format.thousands(waiting), KINDS[kind].words)
  local function row(theirs, against, kind_of_goal, value)
    return { section = "Jobs", work = work, short = short, ours = "queue", theirs = theirs, against = against,
      [kind_of_goal] = value }
  end
  return {
    id = ("jobs %s %d"):format(kind, waiting),
    unit = "ns",
    contenders = {
      { name = "queue", run = function() return J.queue(n, reps, options()) end },
      { name = "pure", run = function() return J.pure(n, reps, options()) end },
      { name = "heap", needs = "binaryheap", run = function() return heap(n, reps, options()) end },
      { name = "floor", run = function() return floor(n, reps) end },
    },
    rows = {
      row("pure", "pure-Lua queue", "least", goal),
      row("heap", "bare binaryheap", "least", goal),
      row("floor", "the floor", "most", 2.5),
    },
  }
end

local function by_size(kind, size)
  local few, many = size(1000, 5), size(1000000, 50)
  local reps = size(100, 1)
  local options = J.pool(kind, size)
  return {
    id = "jobs " .. kind .. " million",
    unit = "ns",
    contenders = {
      { name = "thousand", run = function() return J.queue(few, reps, options()) end },
      { name = "million", run = function() return J.queue(many, 1, options()) end },
    },
    rows = {
      { section = "Jobs", work = "push + run, 1,000,000 waiting, " .. KINDS[kind].words,
        short = "1,000,000 jobs, " .. KINDS[kind].words, ours = "million", theirs = "thousand",
        against = "itself, 1,000 waiting", most = 2.5 },
    },
  }
end

function J.contests(size)
  local list = {}
  for _, kind in ipairs{ "few", "many" } do
    list[#list + 1] = against_peers(kind, 100, { puc = 4, jit = 1.5 }, size)
    list[#list + 1] = against_peers(kind, 10000, { puc = 7, jit = 2.5 }, size)
    list[#list + 1] = against_peers(kind, 200000, { puc = 12, jit = 5 }, size)
  end
  list[#list + 1] = by_size("few", size)
  list[#list + 1] = by_size("many", size)
  return list
end

return J
