-- The globals are gone, before or after the module is loaded; jobs, failures and waits work all the same.
local write, format, _G = io.write, string.format, _G
local require, pairs, type = require, pairs, type
local queue
if arg[1] == "before" then
  _G.debug, _G.io = nil, nil
  queue = require("queue")
else
  queue = require("queue")
  for _, lib in pairs{ "string", "table", "coroutine", "math", "debug", "io", "os" } do
    local t = _G[lib]
    for k, v in pairs(t) do if type(v) == "function" then t[k] = nil end end
    _G[lib] = nil
  end
  for _, name in pairs{ "error", "pcall", "xpcall", "tostring", "type", "select", "unpack", "next", "setmetatable" } do
    _G[name] = nil
  end
end

local failed, state = 0, "open"
local q = queue.new{ on_error = function() failed = failed + 1 end }
q:push(function() local x; x() end, { retries = 1, backoff_ms = 1 }) -- luacheck: ignore
q:push(function(a, b) return a + b end, { args = { 1, 2 } })
q:push(function()
  local ch = queue.channel(1)
  ch:send(1); ch:receive(); ch:receive(1); queue.sleep(1); ch:close()
  for _ in ch:iter() do state = "?" end
  if queue.after(1):receive() and ch:is_closed() then state = "closed" end
end)
local ran = q:run()
write(format("%d failed, ran %d, %s\n", failed, ran, state))
