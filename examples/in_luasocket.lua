-- A queue and channels in a loop around luasocket's `socket.select`.
--
-- `socket.select` takes whatever has a method `getfd`: sockets, channels, and queues. So one call waits for the
-- network, for timers, and for whatever the queue has to do next.

local queue = require("queue")
local there, socket = pcall(require, "socket")
if not there then
  print("luasocket is not installed: nothing to show here.")
  return
end

local server = assert(socket.bind("127.0.0.1", 0))
local _, port = server:getsockname()

local q = queue.new{
  concurrency = 10,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

-- Three customers, so that there is something to serve.
local customers = {}
for i = 1, 3 do
  customers[i] = assert(socket.connect("127.0.0.1", port))
  customers[i]:send("order " .. i .. "\n")
end

local closer = queue.after(300, "closing time")
local reading, closing, orders = { server, q, closer }, nil, 0

local function forget(what)
  for i, each in ipairs(reading) do
    if each == what then table.remove(reading, i) end
  end
end

local function serve(peer, order)
  queue.sleep(20)                         -- the work; other jobs go on, and so does the loop
  peer:send(order .. " is served\n")
  peer:close()
end

while not closing or q:next_due() do
  local ms = math.min(q:next_due() or math.huge, 1000)
  for _, ready in ipairs(socket.select(reading, nil, ms / 1000)) do
    if ready == server then
      local peer = assert(server:accept())
      table.insert(reading, peer)
    elseif ready == closer then
      closing = closer:receive()
      forget(closer)                      -- closed: it would be readable for ever
    elseif ready ~= q then                -- a customer
      forget(ready)
      local order = ready:receive()
      if order then
        orders = orders + 1
        q:push(serve, { args = { ready, order } })
      end
    end
  end
  q:poll()
end
server:close()

for _, customer in ipairs(customers) do
  print((customer:receive()))
  customer:close()
end
print(closing .. ": " .. orders .. " orders, " .. q:metrics().succeeded .. " served")
