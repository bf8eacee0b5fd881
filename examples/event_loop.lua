-- A queue inside somebody else's event loop. The loop here is a toy of twenty lines; copas, cqueues and luv are met in
-- the same way (README, "Run it inside another event loop").
--
-- Three coroutines of the loop call `run` on one queue. A job that waits in the loop's way yields right through
-- `run`; meanwhile another coroutine takes the next job. So three jobs are in flight, by the loop's own means.

local queue = require("queue")

-- The toy: coroutines that yield the number of milliseconds they want to sleep.
local loop = { sleepers = {} }

function loop.spawn(fn)
  table.insert(loop.sleepers, { co = coroutine.create(fn), at = queue.now() })
end

function loop.run()
  while #loop.sleepers > 0 do
    table.sort(loop.sleepers, function(a, b) return a.at < b.at end)
    local next_one = table.remove(loop.sleepers, 1)
    queue.sleep(next_one.at - queue.now())
    local ok, ms = coroutine.resume(next_one.co)
    if not ok then error(ms) end
    if coroutine.status(next_one.co) ~= "dead" then
      next_one.at = queue.now() + ms
      table.insert(loop.sleepers, next_one)
    end
  end
end

if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then
  print("Stock Lua 5.1 cannot yield through run: nothing to show here.")
  return
end

local q = queue.new()
local finished = {}
for i = 1, 9 do
  q:push(function()
    coroutine.yield(20)                   -- an answer from far away, say
    finished[#finished + 1] = i
  end)
end

local started = queue.now()
local attempts = 0
for _ = 1, 3 do
  loop.spawn(function()
    local ended_here = q:run()            -- first run, then add: other workers add meanwhile
    attempts = attempts + ended_here
  end)
end
loop.run()

print(attempts .. " jobs done: " .. table.concat(finished, " "))
print("in three rounds, not nine: " .. tostring(queue.now() - started < 9 * 20))
