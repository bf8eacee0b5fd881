-- The module is loaded by a coroutine that is garbage a moment later.
local co = coroutine.create(function() return require("queue") end)
local _, queue = coroutine.resume(co)
co = nil -- luacheck: ignore
for _ = 1, 3 do collectgarbage() end
local q, ch = queue.new(), queue.channel(1)
local text = tostring(q) .. " " .. tostring(ch)
q:push(function() ch:send(1) end)
print(text .. " ran " .. q:run())
