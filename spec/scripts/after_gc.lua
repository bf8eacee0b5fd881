-- A finalizer called by hand, twice, on objects that are then used: anything but a crash will do.
local queue = require("queue")
local function noop() end
local q, ch, t = queue.new(), queue.channel(2), queue.tick(1)
q:push(noop); ch:send(1)
for _, object in ipairs{ q, ch, t } do
  local gc = debug.getmetatable(object).__gc
  if type(gc) == "function" then pcall(gc, object); pcall(gc, object) end
end
for _, call in ipairs{
  function() q:push(noop); q:run(); q:clear(); q:metrics(); q:stop() end,
  function() ch:send(2); ch:receive(5); ch:try_receive(); ch:close() end,
  function() t:receive(5); t:stop() end,
  function() return tostring(q) .. tostring(ch) .. tostring(t) .. #q .. #ch .. #t end,
} do pcall(call) end
collectgarbage()
print("done")
