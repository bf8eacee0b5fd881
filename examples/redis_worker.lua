-- A worker that takes its jobs from Redis and puts the results back there. Redis keeps what must not be lost; retries,
-- pauses and the list of failures are the queue's.
--
-- The hand-over is reliable: one command moves a job from the list `todo` to the list `doing`, one transaction moves it
-- on to `done` or `failed`. What a worker that died has left in `doing` is put back at the next start. So a job may be
-- done twice, but none is lost. (Where there are several workers each has a `doing` of its own.)

local queue = require("queue")

-- The client is plain Lua. Debian has it for the Luas up to 5.3; it runs on later ones as well.
package.path = package.path .. ";/usr/share/lua/5.3/?.lua"
local there, redis = pcall(require, "redis")
if not there or not pcall(require, "socket.unix") then
  print("The Redis client for Lua is not installed: nothing to show here.")
  return
end

-- A Redis for this program alone: a socket in a folder of its own, no port, nothing on the disk. The pipe ends with the
-- program, however that ends; then `cat` does, and the shell tidies up.
local function start_redis()
  local mktemp = io.popen("command -v redis-server >/dev/null && mktemp -d /tmp/queue.XXXXXX")
  local folder = mktemp:read("*l")
  mktemp:close()
  if not folder then return nil end
  local pipe = io.popen(([[
    trap '' INT
    redis-server --port 0 --unixsocket %s/socket --dir %s --save '' --appendonly no >/dev/null 2>&1 &
    cat; kill $!; wait; rm -rf %s]]):format(folder, folder, folder), "w")
  for _ = 1, 300 do
    local up, client = pcall(redis.connect, "unix://" .. folder .. "/socket")
    if up then return pipe, client end
    queue.sleep(10)
  end
  error("redis-server does not answer")
end

local pipe, client = start_redis()
if not pipe then
  print("redis-server is not installed: nothing to show here.")
  return
end

-- Somebody has left work, and a worker that died was at some of it.
client:lpush("todo", "square 4", "square 5", "knock door", "mail Ada", "square 6")
client:lpush("doing", "square 3")

-- What this worker can do. A skill returns its result, or raises.
local knocks, route_is_there = 0, false
local skills = {
  square = function(n) return tonumber(n) * tonumber(n) end,
  knock = function()
    knocks = knocks + 1
    if knocks < 3 then error("nobody opens", 0) end
    return "open"
  end,
  mail = function()
    if not route_is_there then error("no route", 0) end
    return "sent"
  end,
}
local function unknown() error("nobody knows how", 0) end

local function settle(job, list, text)
  client:transaction(function(redis_does)
    redis_does:lrem("doing", 1, job)
    redis_does:lrem("failed", 1, job)
    redis_does:lpush(list, text)
  end)
end

local q = queue.new{
  keep_failed = 100,
  on_retry = function(msg, info) print(info.payload .. ": " .. msg .. ", try " .. info.attempts) end,
  on_success = function(info, result)
    if info.payload then settle(info.payload, "done", info.payload .. " -> " .. result) end   -- `take` has none
  end,
  on_error = function(msg, info)
    print((info.payload or info.id) .. ": " .. msg .. ", given up")
    if info.payload then settle(info.payload, "failed", info.payload) end
  end,
}

local backoff = queue.backoff{ base_ms = 10 }

-- Takes no more than can be done soon: other workers may be free.
local function take()
  while #q < 3 do
    local job = client:rpoplpush("todo", "doing")
    if not job then
      if #q == 0 then q:cancel("take") end      -- a worker that is to wait for more leaves this out
      break
    end
    local skill, argument = job:match("^(%S+) (.*)$")
    q:push(skills[skill] or unknown, { args = { argument }, payload = job, retries = 2, backoff_ms = backoff })
  end
end

while true do
  local job = client:rpoplpush("doing", "todo")
  if not job then break end
  print("put back: " .. job)
end
q:every(5, take, { id = "take" })
q:run()

print("The mail has a route now.")
route_is_there = true
for _, info in ipairs(q:failed()) do q:retry(info.id) end
q:run()

for _, line in ipairs(client:lrange("done", 0, -1)) do print("done: " .. line) end
print(("todo %d, doing %d, failed %d, done %d"):format(
  client:llen("todo"), client:llen("doing"), client:llen("failed"), client:llen("done")))
client:quit()
pipe:close()
