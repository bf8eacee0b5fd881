-- An on_error that raises, three times: for a job that fails, one that throws a table, and one that is shed.
local queue = require("queue")
local thrown = { "handler broke", setmetatable({}, { __tostring = function() return "handler broke" end }), {} }
local n, ran = 0, "lost"
local q = queue.new{ on_error = function() n = n + 1; error(thrown[n]) end }
q:push(function() error("boom") end)
q:push(function() error("boom") end)
q:push(function() end, { timeout_ms = 1e-3 })
queue.sleep(1)
q:push(function() ran = "ran" end)
local count = q:run()
local m = q:metrics()
print(("ran %d, failed %d, expired %d, next %s"):format(count, m.failed, m.expired, ran))
