-- Channels and a queue in a cqueues loop.
--
-- cqueues waits for anything that has the methods `pollfd`, `events` and `timeout`, as channels have. A queue is polled
-- by a thread of the loop, which sleeps until the queue has something to do.

local queue = require("queue")
local there, cqueues = pcall(require, "cqueues")
if not there then
  print("cqueues is not installed: nothing to show here.")
  return
end

local loop = cqueues.new()

-- A queue in the loop: poll it, then sleep until a time comes or something outside makes one of its jobs ready.
local function drive(q)
  local woken = { pollfd = q:getfd(), events = "r" }
  while true do
    q:poll()
    local ms = q:next_due()
    if not ms then return end             -- nothing pending, nothing in flight
    cqueues.poll(woken, ms / 1000)
  end
end

local q = queue.new{
  concurrency = 10,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

-- 1. Jobs that wait, and a thread of the loop that sends what one of them waits for.
local orders = queue.channel(4)
q:push(function()
  while true do
    local dish, ok = orders:receive()
    if not ok then break end
    queue.sleep(5)                        -- other jobs and the loop go on
    print("served: " .. dish)
  end
end)
loop:wrap(function()
  for _, dish in ipairs{ "soup", "fish", "cake" } do
    cqueues.sleep(0.01)
    orders:send(dish)                     -- there is room, so this does not wait
  end
  orders:close()
end)
loop:wrap(function() drive(q) end)

-- 2. A thread of the loop that waits for two channels at once.
loop:wrap(function()
  local ticker, closing = queue.tick(15), queue.after(70, "closing time")
  local ticks = 0
  while true do
    cqueues.poll(ticker, closing)
    if ticker:try_receive() then ticks = ticks + 1 end
    local word = closing:try_receive()
    if word then
      ticker:stop()
      print(word .. ", and the ticker has ticked: " .. tostring(ticks > 0))
      return
    end
  end
end)

-- 3. The loop is not held up by any of it.
local turns = 0
loop:wrap(function()
  for _ = 1, 20 do
    cqueues.sleep(0.002)
    turns = turns + 1
  end
end)

assert(loop:loop())
print("the loop went on: " .. turns .. " turns, " .. q:metrics().succeeded .. " job done")
