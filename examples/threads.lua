-- Work for several OS threads. Each thread runs a Lua state of its own, and shared channels lie between them: one
-- hands out ranges of numbers, one brings back how many primes each range has.
--
-- The threads are luv's or cqueues', whichever is installed. Nothing here depends on which: a thread only has to
-- find the module, so it is told the path.

local queue = require("queue")

-- start(fn, ...) runs `fn` in a new thread and returns a function that waits for its end.
local function starter()
  local there, uv = pcall(require, "luv")
  if there then
    return "luv", function(fn, ...)
      local thread = uv.new_thread(fn, ...)
      return function() thread:join() end
    end
  end
  local thread
  there, thread = pcall(require, "cqueues.thread")
  if there then
    return "cqueues", function(fn, ...)
      local handle = thread.start(function(_, code, ...)
        return (loadstring or load)(code)(...)
      end, string.dump(fn), ...)
      return function() handle:join() end
    end
  end
end

local library, start = starter()
if not start then
  print("Neither luv nor cqueues is installed: no threads to show.")
  return
end

-- A thread's function arrives in the other state as code: it sees its arguments and no local from here.
local function worker(cpath, run)
  package.cpath = cpath
  local shared = require("queue").shared ---@diagnostic disable-line: duplicate-require
  local ranges, counts = shared("ranges " .. run), shared("counts " .. run)

  local function is_prime(n)
    if n < 2 then return false end
    for d = 2, math.floor(n ^ 0.5) do
      if n % d == 0 then return false end
    end
    return true
  end

  for range in ranges:iter() do           -- until it is closed and drained
    local count = 0
    for n = range.from, range.to do
      if is_prime(n) then count = count + 1 end
    end
    counts:send{ from = range.from, count = count }
  end
end

local WORKERS, RANGES, STEP = 3, 20, 1000

-- A name belongs to the whole process; another one for each run keeps them apart.
local run = tostring(queue.now())
local ranges, counts = queue.shared("ranges " .. run, 4), queue.shared("counts " .. run, 4)

local joins = {}
for i = 1, WORKERS do joins[i] = start(worker, package.cpath, run) end

-- Two jobs on this side: one sends while the other receives.
local q = queue.new{
  concurrency = 2,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

q:push(function()
  for i = 1, RANGES do ranges:send{ from = (i - 1) * STEP + 1, to = i * STEP } end
  ranges:close()
end, { id = "sender" })

local received, total, first = 0, 0, nil
q:push(function()
  while received < RANGES do
    local answer, ok, why = counts:receive(10000)
    if not ok then error("no answer: " .. why) end     -- a wait for other threads is never called a deadlock
    received, total = received + 1, total + answer.count
    if answer.from == 1 then first = answer.count end
  end
end, { id = "receiver" })

q:run()
for _, join in ipairs(joins) do join() end

print(received .. " answers from " .. WORKERS .. " threads, by " .. library)
print(first .. " primes up to " .. STEP .. ", " .. total .. " up to " .. RANGES * STEP)
