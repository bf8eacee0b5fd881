-- Ends in the way that the first argument names, with parked jobs, shared channels or open descriptors alive.
local queue = require("queue")
local way, kind, count = arg[1], arg[2], tonumber(arg[3])
local alive, exit = {}, os.exit

local kinds = {}
function kinds.parked()
  local q, ch, full = queue.new{ concurrency = math.huge }, queue.channel(), queue.channel(1)
  full:send(1)
  for i = 1, count do
    local t = i % 50 == 0 and queue.after(1e6) or ch
    q:push(function() ch:receive(); return q end); q:push(function() full:send({ q }) end)
    q:push(function() queue.select{ ch, { full, q }, t, false } end); q:push(function() queue.sleep(1e7) end)
  end
  q:poll()
  local inner = queue.new{ concurrency = 2 }
  inner:push(function() queue.sleep(1e7) end)
  q:push(function() inner:run() end); q:poll()
  -- Some were woken, and never resumed.
  ch:try_send({}); full:try_receive()
  alive = { q, ch, full, inner }
end
function kinds.shared()
  for i = 1, count do
    local ch = queue.shared("ends " .. i, 3)
    ch:send({ i, ch }); ch:send("left"); if i % 3 == 0 then ch:close() end
    alive[i] = ch
  end
  local q, ch = queue.new{ concurrency = math.huge }, queue.shared("ends waits")
  for i = 1, count do q:push(function() if i % 2 == 0 then ch:receive() else queue.select{ ch, alive[1] } end end) end
  q:poll(); alive.q = q
end
function kinds.descriptors()
  local q = queue.new{ concurrency = math.huge }
  q:getfd()
  for i = 1, count do
    local ch = i % 3 == 0 and queue.shared("ends fd " .. i, 1) or i % 3 == 1 and queue.channel(1) or queue.tick(1)
    ch:getfd(); alive[i] = ch
    q:push(function() ch:receive(); ch:receive() end)
  end
  q:poll(); alive.q = q
end
kinds[kind]()

local ways = {
  ["end of file"] = function() end,
  ["error"] = function() error("the end") end,
  ["os.exit(0)"] = function() exit(0) end,
  ["os.exit(0, true)"] = function() exit(0, true) end,
  ["os.exit(7, true) in a concurrent job"] = function()
    local q = queue.new{ concurrency = 2 }
    q:push(function() queue.sleep(1e6) end); q:push(function() queue.sleep(1); exit(7, true) end); q:run()
  end,
  ["error in a coroutine"] = function() coroutine.wrap(function() error("the end") end)() end,
}
ways[way]()
