-- Callbacks that raise, each in three ways: a text, an object with a text, and one without.
local queue = require("queue")
local thrown = { "text", setmetatable({}, { __tostring = function() return "object" end }), {} }
local function broken(name)
  local n = 0
  return function() n = n + 1; error(type(thrown[n]) == "string" and name .. " broke" or thrown[n]) end
end
local q = queue.new{ concurrency = tonumber(arg[1]), keep_failed = 9,
  on_error = broken("on_error"), on_retry = broken("on_retry"), on_success = broken("on_success") }
for _ = 1, 3 do
  local tries = 0
  q:push(function() tries = tries + 1; if tries == 1 then error("boom") end end, { retries = 1 })
  q:push(function() error("boom") end)
end
local count = q:run()
local m = q:metrics()
local text = "ran %d, succeeded %d, failed %d, retried %d, kept %d"
print(text:format(count, m.succeeded, m.failed, m.retried, #q:failed()))
