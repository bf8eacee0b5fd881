-- An on_error that runs out of stack.
local queue = require("queue")
local ran = "lost"
local q = queue.new{ on_error = function() local function deep() return 1 + deep() end deep() end }
q:push(function() error("x") end)
q:push(function() ran = "ran" end)
print(("ran %d, next %s"):format(q:run(), ran))
