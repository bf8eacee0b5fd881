-- A queue and channels in a copas loop.
--
-- copas waits for sockets. A channel passes for one: `wait(ch)` below gives it the methods of a socket that copas asks
-- for. The queue is polled between the steps of the loop, which never sleep longer than the queue can wait.

local queue = require("queue")
local there, copas = pcall(require, "copas")
if not there then
  print("copas is not installed: nothing to show here.")
  return
end
local _, socket = pcall(require, "socket")  -- copas stands on it

-- Receives from a channel in a thread of copas: the value, or nil and "closed". The other threads go on.
local function wait(ch)
  return (copas.receive{
    getfd = function() return ch:getfd() end,
    dirty = function() return ch:dirty() end,
    receive = function()
      local value, ok, why = ch:receive(0)
      if ok then return value end
      return nil, why                     -- "timeout": copas waits for the descriptor, and asks again
    end,
    close = function() end,               -- copas closes what a thread waited for last; a channel stays open
  })
end

local q = queue.new{
  concurrency = 10,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

-- A server whose answers are made by jobs of the queue.
local server = assert(socket.bind("127.0.0.1", 0))
local _, port = server:getsockname()
copas.addserver(server, function(peer)
  local line = copas.receive(peer)
  local answer = queue.channel(1)
  q:push(function()
    queue.sleep(20)                       -- the work; other jobs go on, and so does the loop
    answer:send(line:upper())
  end)
  copas.send(peer, wait(answer) .. "\n")
end)

-- Three clients, so that there is something to serve, and a timer.
local open = 4
for i = 1, 3 do
  copas.addthread(function()
    local client = assert(socket.connect("127.0.0.1", port))
    client:settimeout(0)
    copas.send(client, "question " .. i .. "\n")
    print((copas.receive(client)))
    client:close()
    open = open - 1
  end)
end
local tea = queue.after(200, "tea is ready")
copas.addthread(function()
  print((wait(tea)))
  open = open - 1
end)

local LONGEST_MS = 100
while open > 0 do
  q:poll()
  copas.step(math.min(q:next_due() or LONGEST_MS, LONGEST_MS) / 1000)
end
server:close()
print(q:metrics().succeeded .. " jobs done")
