-- A walk through the module, one stop for each thing it does. `make demo` runs it on every Lua it finds.
--
--   LUA_CPATH="build/lua5.4/?.so;;" lua5.4 examples/tour.lua

local queue = require("queue")

local function say(...)
  print("  " .. string.format(...))
end

local function stop_at(title)
  print("\n" .. title)
end

local jit = rawget(_G, "jit")
print(queue._VERSION .. " on " .. (jit and jit.version or _VERSION))

---------------------------------------------------------------------------------------------------------------
stop_at("1. Order: the highest priority first, then whoever came first")

local kitchen = queue.new()
local function cook(dish)
  return function() say("%s", dish) end
end
kitchen:push(cook("wash the pans"), { priority = -1 })
kitchen:push(cook("soup, table 4"))
kitchen:push(cook("soup, table 9"))
kitchen:push(cook("the critic's dinner"), { priority = 50 })
local served = kitchen:run()
say("(%d jobs)", served)

---------------------------------------------------------------------------------------------------------------
stop_at("2. Failure: another try after a pause, and in the end a report")

local post = queue.new{
  on_error = function(msg, info)
    say("%s: given up after %d attempts (%s), %s", info.id, info.attempts, msg, info.payload)
  end,
}
local knocks = 0
post:push(function()
  knocks = knocks + 1
  if knocks < 3 then error("nobody home") end
  say("parcel: delivered at knock %d", knocks)
end, { id = "parcel", retries = 4, backoff_ms = function(attempts) return 4 * attempts end })
post:push(function() error("no such street", 0) end, { id = "letter", retries = 2, payload = "return to sender" })
post:run()
local count = post:metrics()
say("%d attempts: %d delivered, %d retried, %d failed", count.processed, count.succeeded, count.retried, count.failed)

---------------------------------------------------------------------------------------------------------------
stop_at("3. Time: a job that files itself again is a loop, and run sleeps in between")

local line = queue.new()
local laps, started = 0, queue.now()
local function lap(name)
  laps = laps + 1
  say("lap %d, %s", laps, name)
  if laps < 3 then line:push(lap, { delay_ms = 15, args = { "runner" } }) end
end
line:push(lap, { args = { "runner" } })
line:run()
say("30 ms at least have gone by: %s", tostring(queue.now() - started >= 30))

---------------------------------------------------------------------------------------------------------------
stop_at("4. Too late: a job that could not start in time is left out")

local desk = queue.new{
  on_error = function(msg) say("%s", msg) end,
}
desk:push(function() queue.sleep(20) end)
desk:push(function() say("the visitor is served") end)
desk:push(function() say("this line is never printed") end, { id = "quote of 9 o'clock", timeout_ms = 5 })
desk:run()

---------------------------------------------------------------------------------------------------------------
stop_at("5. Too much: a full queue says no, and whoever asked decides")

local bench = queue.new{ capacity = 2 }
for _, name in ipairs{ "Ada", "Ben", "Cleo" } do
  local id, why = bench:push(function() end)
  say("%-4s -> %s", name, id or why)
end
say("%s", tostring(bench))

---------------------------------------------------------------------------------------------------------------
stop_at("6. Channels: values in a row, and a clear word when they end")

local belt = queue.channel(3)
for _, fruit in ipairs{ "apple", "pear", "plum" } do belt:send(fruit) end
local taken, because = belt:try_send("fig")
say("%s: fig taken? %s, %s", tostring(belt), tostring(taken), because)
belt:close()
for fruit in belt:iter() do say("%s", fruit) end
local _, got, reason = belt:receive()
say("and then? %s, %s", tostring(got), reason)

---------------------------------------------------------------------------------------------------------------
stop_at("7. Waits: with a limit, and never for nothing")

local quiet = queue.channel(1)
_, got, reason = quiet:receive(15)
say("after 15 ms: %s, %s", tostring(got), reason)
local fine, err = pcall(function() return (quiet:receive()) end)
say("without a limit: %s, %s", tostring(fine), (err:gsub("^.-:%d+: ", "")))

---------------------------------------------------------------------------------------------------------------
stop_at("8. Timers: threads that keep time and feed a channel")

local egg = queue.after(25, "the egg is done")
local metronome = queue.tick(10)
for beat = 1, 2 do
  metronome:receive()
  say("beat %d", beat)
end
metronome:stop()
say("%s", egg:receive(1000))

---------------------------------------------------------------------------------------------------------------
stop_at("9. One turn at a time: poll takes what is due and comes back")

local frames = queue.new()
for tile = 1, 5 do frames:push(function() say("draw tile %d", tile) end) end
local frame = 0
while not frames:empty() do
  frame = frame + 1
  local done = frames:poll(2)
  say("frame %d: %d done, %d left", frame, done, #frames)
end

---------------------------------------------------------------------------------------------------------------
stop_at("10. Side by side: where a job waits, the others go on")

local office = queue.new{
  concurrency = 10,
  on_error = function(msg, info) say("%s: %s", info.id, (msg:gsub("^.-:%d+: ", ""))) end,
}
local desk_to_desk = queue.channel()          -- unbuffered: from hand to hand
started = queue.now()
for i = 1, 5 do
  office:push(function()
    queue.sleep(50)
    if i <= 2 then desk_to_desk:send("form " .. i) end
  end)
end
office:push(function()
  for _ = 1, 3 do say("received %s", (desk_to_desk:receive())) end    -- but there is no third form
end, { id = "the intern" })
local ended = office:run()
say("%d jobs, five waits of 50 ms, less than 250 ms: %s", ended, tostring(queue.now() - started < 250))

---------------------------------------------------------------------------------------------------------------
stop_at("11. Select: the first of several that is ready")

local bus, train = queue.after(60, "bus"), queue.after(10, "train")
local which, name = queue.select{ bus, train }
say("case %d: the %s", which, name)
bus:stop()
which = queue.select({ bus, quiet, false }, 0)            -- never waits
say("and now? case %d: closed", which)
which, name = queue.select({ quiet, false }, 15)
say("and now? %s, %s", tostring(which), name)

---------------------------------------------------------------------------------------------------------------
stop_at("12. Shared channels: the same name is the same channel, in any thread of the process")

local here, there = queue.shared("tour", 1), queue.shared("tour")
local letter = { to = "the other side", pages = { 1, 2, 3 } }
here:send(letter)
local copy = there:receive()
say("%s, %d pages, a copy: %s", copy.to, #copy.pages, tostring(copy ~= letter))
fine, err = pcall(function() here:send{ pages = { print } } end)
say("%s, %s", tostring(fine), (err:gsub("^.-:%d+: ", "")))
here:close()

---------------------------------------------------------------------------------------------------------------
stop_at("13. The end: a stopped queue starts nothing more")

frames:stop()
local id, why = frames:push(function() end)
say("push -> %s, %s", tostring(id), why)
say("%s", tostring(frames))
