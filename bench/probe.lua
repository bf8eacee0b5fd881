--- One measurement in a process of its own; prints its numbers, a name and a value on each line.
--
--   probe.lua waiting queue|pure N      bytes of a waiting job
--   probe.lua burst queue|pure N        resident memory with N jobs and after them, as a multiple of before
--   probe.lua timers queue|luv N        milliseconds to make N live timers, and what they add to resident memory
--   probe.lua blocked channel|job|shared MS   processor time of a wait

package.path = "./?.lua;" .. package.path
local H = require("bench.harness")
local queue = H.queue

local function say(name, value)
  io.stdout:write(("%s %.6f\n"):format(name, value))
end

local function collect()
  for _ = 1, 3 do collectgarbage() end
end

local function new(which)
  if which == "queue" then return queue.new() end
  return require("bench.peer").new(require("bench.clock"))
end

local P = {}

-- The closures are there before the queue is filled, so that what is added is the queue's.
function P.waiting(which, n)
  local jobs, ran, options = {}, 0, {}
  for p = 0, 9 do options[p] = { priority = p } end
  for i = 1, n do jobs[i] = function() ran = ran + i end end
  local q = new(which)
  collect()
  local before = H.resident()
  for i = 1, n do q:push(jobs[i], options[i * 7 % 10]) end
  collect()
  say("bytes", (H.resident() - before) / n)
end

function P.burst(which, n)
  local q, ran = new(which), 0
  local function job() ran = ran + 1 end
  q:push(job)
  q:run()
  collect()
  local before = H.resident()
  for _ = 1, n do q:push(job) end
  say("during", H.resident() / before)
  q:run()
  collect()
  say("after", H.resident() / before)
  assert(ran == n + 1)
end

function P.timers(which, n)
  local kept, uv = {}, which == "luv" and require("luv") or nil
  local before, start = H.resident(), queue.now()
  for i = 1, n, 2 do
    if uv then
      kept[i], kept[i + 1] = uv.new_timer(), uv.new_timer()
      kept[i]:start(60000, 0, function() end)
      kept[i + 1]:start(60000, 60000, function() end)
    else
      kept[i], kept[i + 1] = queue.after(60000), queue.tick(60000)
    end
  end
  say("make_ms", queue.now() - start)
  say("mib", (H.resident() - before) / 1024 / 1024)
  -- The timers must live to the end.
  _G.kept = kept
  io.stdout:write("end\n")
  io.stdout:flush()
end

function P.blocked(kind, ms)
  local ch = kind == "shared" and queue.shared("bench blocked", 1) or queue.channel(1)
  local start
  if kind == "job" then
    local q = queue.new{ concurrency = 2 }
    q:push(function() ch:receive(ms) end)
    start = os.clock()
    q:run()
  else
    start = os.clock()
    ch:receive(ms)
  end
  say("cpu_ms", (os.clock() - start) * 1000)
end

P[arg[1]](arg[2], tonumber(arg[3]))
