-- Jobs that fail in a queue without on_error.
local queue = require("queue")
local q = queue.new()
q:push(function() error("boom") end, { retries = 2 })
q:push(function() error({}) end)
q:run()
print("failed " .. q:metrics().failed)
