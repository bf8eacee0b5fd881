-- A small service under load: requests come in on a beat, the queue takes as many as it can hold, serves the paying
-- ones first, sheds what has waited too long, and reports at the end.

local queue = require("queue")

local refused, shed = 0, 0
local q = queue.new{
  capacity = 20,
  on_error = function(_, info)
    if info.expired then shed = shed + 1 end
  end,
}

local served = { gold = 0, free = 0 }
local function serve(class)
  queue.sleep(2)                          -- the work
  served[class] = served[class] + 1
end

local REQUESTS_A_BEAT, BEATS = 8, 20
local clock = queue.tick(10)              -- 8 requests of 2 ms every 10 ms: more than can be done

for _ = 1, BEATS do
  clock:receive()
  for i = 1, REQUESTS_A_BEAT do
    local class = i <= 2 and "gold" or "free"
    local id = q:push(serve, {
      args = { class },
      priority = class == "gold" and 1 or 0,
      timeout_ms = 30,                    -- nobody waits longer than that for an answer
    })
    if not id then refused = refused + 1 end
  end
  -- Serve until the next beat is there.
  while clock:len() == 0 and q:next_due() == 0 do q:poll(1) end
end
clock:stop()
q:stop()                                  -- closing time: what still waits is dropped
local left = q:clear()

local asked = REQUESTS_A_BEAT * BEATS
local m = q:metrics()
print("every request is accounted for: " ..
  tostring(asked == served.gold + served.free + shed + refused + left))
print("the queue's own books agree: " ..
  tostring(m.enqueued == m.succeeded + m.failed + m.expired + m.cancelled + left + m.pending + m.in_flight
    and m.dropped == refused + left))
print("some were turned away: " .. tostring(refused + shed > 0))
print("gold fared better than free: " .. tostring(served.gold / (2 * BEATS) > served.free / (6 * BEATS)))
