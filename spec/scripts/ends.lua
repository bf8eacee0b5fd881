-- Ends in the way that the first argument names, with `count` things of the kind that the second names alive.
local queue = require("queue")
local way, kind, count = arg[1], arg[2], tonumber(arg[3])
local alive, exit = {}, os.exit

local kinds = {}
function kinds.timers()
  for i = 1, count do alive[i] = i % 2 == 0 and queue.after(1e6 + i, i) or queue.tick(1e6 + i) end
end
function kinds.tickers()
  for i = 1, count do alive[i] = queue.tick(i % 3 == 0 and 0.05 or 1); queue.after(i / 10, i) end
end
function kinds.jobs()
  local q, ch = queue.new(), queue.channel(count)
  for i = 1, count do
    q:push(function() return q, ch end, { delay_ms = i % 2 * 1e6, retries = 3, payload = { q } })
    ch:send({ ch, q })
  end
  alive = { q, ch }
end
function kinds.parked()
  for i = 1, count do
    local q = queue.new()
    q:push(function() coroutine.yield() end)
    local co = coroutine.create(function() q:run() end)
    coroutine.resume(co)
    alive[i] = { q, co, queue.after(1e6) }
  end
end
function kinds.finalizers()
  local q, ch, t = queue.new(), queue.channel(10), queue.tick(1)
  local function last()
    q:push(function() end, { payload = {} }); q:poll(); ch:try_send({}); ch:try_receive(); t:try_receive()
    t:stop(); q:stop(); ch:close()
    local fresh = queue.new(); fresh:push(function() return fresh end); fresh:run()
    queue.channel(1):send(fresh)
  end
  for i = 1, count do
    if rawget(_G, "newproxy") then
      alive[i] = newproxy(true); getmetatable(alive[i]).__gc = last
    else
      alive[i] = setmetatable({}, { __gc = last })
    end
  end
end
function kinds.unloaded()
  kinds.tickers()
  queue, alive = nil, {}
  package.loaded.queue = nil
  for _ = 1, 3 do collectgarbage() end
end
kinds[kind]()

local function in_job(fn) local q = queue.new(); q:push(fn); q:run() end

local ways = {
  ["end of file"] = function() end,
  ["error"] = function() error("the end") end,
  ["error in a coroutine"] = function() coroutine.wrap(function() error("the end") end)() end,
  ["os.exit(0)"] = function() exit(0) end,
  ["os.exit(7)"] = function() exit(7) end,
  ["os.exit(0, true)"] = function() exit(0, true) end,
  ["os.exit(7, true)"] = function() exit(7, true) end,
  ["os.exit(7) in a coroutine"] = function() coroutine.wrap(function() exit(7) end)() end,
  ["os.exit(0, true) in a coroutine"] = function() coroutine.wrap(function() exit(0, true) end)() end,
  ["os.exit(0) in a job"] = function() in_job(function() exit(0) end) end,
  ["os.exit(7, true) in a job"] = function() in_job(function() exit(7, true) end) end,
  ["os.exit(0, true) in on_error"] = function()
    local q = queue.new{ on_error = function() exit(0, true) end }
    q:push(function() error("x") end); q:run()
  end,
  ["os.exit(0) in a finalizer"] = function()
    -- Not os.exit(0, true): to close a state inside its own collector is beyond any Lua.
    local function last() exit(0) end
    if rawget(_G, "newproxy") then getmetatable(newproxy(true)).__gc = last else setmetatable({}, { __gc = last }) end
    for _ = 1, 3 do collectgarbage() end
  end,
  ["error in a loop over a ticker"] = function()
    local n = 0
    for _ in queue.tick(1):iter() do n = n + 1; if n == 3 then error("the end") end end
  end,
}
ways[way]()
