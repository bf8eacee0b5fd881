-- A state of its own in another thread makes timers, jobs and channels, and is closed there; then this one ends.
local host = arg[1]

local function work()
  local queue = require("queue")
  local alive = {}
  for i = 1, 50 do rawset(alive, i, { queue.tick(i % 2 == 0 and 0.1 or 1e6), queue.after(1e6, {}) }) end
  local q = queue.new()
  q:push(function() queue.after(5):receive() end); q:push(function() return q end, { delay_ms = 1e6 })
  q:poll()
  io.stdout:write("worker done\n")
end

if host == "luv" then
  local luv = require("luv")
  assert(luv.new_thread(function(dumped) (loadstring or load)(dumped)() end, string.dump(work))):join()
else
  local thread = require("cqueues.thread")
  local started = assert(thread.start(function(_, dumped) (loadstring or load)(dumped)() end, string.dump(work)))
  assert(started:join())
end
local queue = require("queue")
local t = queue.tick(1)
assert(t:receive(5000))
print("main done")
