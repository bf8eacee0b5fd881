-- A hundred pipelines of three jobs each, side by side on one thread: a source, a stage that works on each value, and
-- a sink. The channels between them are unbuffered, so no stage runs ahead of the next and nothing piles up.

local queue = require("queue")

local PIPELINES, VALUES = 100, 200

local q = queue.new{
  concurrency = math.huge,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

local arrived, in_order, total = 0, true, 0

local function source(out)
  for i = 1, VALUES do out:send(i) end
  out:close()                             -- tells the next stage that this was all
end

-- `for n in from:iter() do` would read better, but stock Lua 5.1 cannot yield inside the iterator of a loop.
local function double(from, to)
  while true do
    local n, ok = from:receive()
    if not ok then break end
    to:send(2 * n)
  end
  to:close()
end

local function sink(from)
  local last = 0
  while true do
    local n, ok = from:receive()
    if not ok then break end
    if n ~= last + 2 then in_order = false end
    last = n
    arrived, total = arrived + 1, total + n
  end
end

for i = 1, PIPELINES do
  local a, b = queue.channel(), queue.channel()
  -- Any order will do: whoever comes first waits for the others.
  q:push(sink, { args = { b }, id = "sink " .. i })
  q:push(double, { args = { a, b }, id = "double " .. i })
  q:push(source, { args = { a }, id = "source " .. i })
end

local ended = q:run()
print(ended .. " jobs ended, " .. q:metrics().failed .. " failed")
print(arrived .. " values arrived, in order within each pipeline: " .. tostring(in_order))
print("nothing lost, nothing doubled: " .. tostring(total == PIPELINES * VALUES * (VALUES + 1)))
