-- Makes timers until the system refuses a thread; then there is room again.
local queue = require("queue")

--- Timers until one is refused: them, and why.
local function fill()
  local alive = {}
  for i = 1, 500 do
    local ok, t = pcall(function() return (queue.tick(1e6)) end)
    if not ok then return alive, t end
    alive[i] = t
  end
  return alive
end

local alive, refused = fill()
if not refused then print("no limit"); os.exit(0) end
print("raised: " .. tostring(refused:match("cannot start a timer thread: ")))
print("position " .. tostring(refused:find("^[^\n]*script%.lua:%d+: ") ~= nil))
local ok_after, err = pcall(function() local t = queue.after(1e6); return t end)
print("other calls " .. tostring(ok_after or tostring(err):find("cannot start a timer thread: ", 1, true) ~= nil))

local function works()
  for _ = 1, 200 do
    local ok, t = pcall(queue.after, 1)
    if ok then return (t:receive(5000)) end
    queue.sleep(10)
  end
  return false
end

local none = #alive == 0                              -- already over the limit: nothing to let go of
for _, t in ipairs(alive) do t:stop() end
print("again " .. tostring(none or works()))
alive = fill()
alive = #alive
-- No collectgarbage here: the refused call sees to it.
print("dropped " .. tostring(none or alive == 0 or works()))
