-- Says ready, then waits, in the way that the first argument names, at the place that the second names.
local queue = require("queue")
local wait, place = arg[1], arg[2]

local function say(...) io.stdout:write(table.concat({ ... }, " "), "\n"); io.stdout:flush() end
local shared = queue.shared("interrupted_go")
local function watched()
  return queue.new{ concurrency = math.huge, on_error = function(_, info) say("failed", info.id, info.attempts) end }
end

-- A run of three jobs that wait on a shared channel. Interrupted, they stay in flight, and a later run goes on.
local function goes_on(q)
  local got = 0
  for i = 1, 3 do
    q:push(function()
      local v
      if i == 1 then v = shared:receive() elseif i == 2 then local _, w = queue.select{ queue.channel(), shared }; v = w
      else v = shared:receive(1e7) end
      got = got + v
    end, { retries = 5 })
  end
  q:push(function() say("the delayed one"); shared:send(1); shared:send(2); shared:send(3) end, { delay_ms = 1500 })
  local done, err = pcall(q.run, q)
  local m = q:metrics()
  say(("caught %s, in flight %d, pending %d, failed %d"):format(
    tostring(not done and tostring(err):find("interrupted!$") ~= nil), m.in_flight, m.pending, m.failed))
  say(("then ran %d, got %d"):format(q:run(), got))
  os.exit(3)
end

local waits = {
  ["select"] = function() queue.select{ queue.channel(), shared, false } end,
  ["select with a time"] = function() queue.select({ queue.channel() }, 1e7) end,
  ["select over timers"] = function() queue.select{ queue.after(1e7), queue.tick(1e7) } end,
  ["select that sends"] = function() queue.select({ { queue.channel(), {} }, { shared, {} } }, 2 ^ 53) end,
  ["select of many"] = function() local t = {}; for i = 1, 2000 do t[i] = queue.channel() end queue.select(t, 1e7) end,
  ["shared receive"] = function() shared:receive() end,
  ["shared send"] = function() shared:send({ 1 }) end,
  ["shared iter"] = function() for v in shared:iter() do say(v) end end,
  ["concurrent run"] = function()
    local q = watched()
    for _ = 1, 5 do q:push(function() shared:receive() end, { retries = 5 }) end
    q:run()
  end,
  ["concurrent run of sleepers"] = function()
    local q = watched()
    for _ = 1, 5 do q:push(function() queue.sleep(1e7) end, { retries = 5 }) end
    q:run()
  end,
  ["concurrent run in a concurrent job"] = function()
    local q, inner = watched(), watched()
    inner:push(function() shared:receive() end, { retries = 5 }); q:push(function() inner:run() end, { retries = 5 }); q:run()
  end,
  ["concurrent run of a delayed job"] = function() local q = watched(); q:push(say, { delay_ms = 1e7 }); q:run() end,
  ["blocking wait in a concurrent job"] = function()
    local q = watched()
    q:push(function() coroutine.wrap(function() shared:receive() end)() end, { id = "blocker", retries = 5 })
    q:push(function() queue.sleep(1e7) end); q:run()
  end,
  ["run of jobs that never rest"] = function()
    local q, to, fro = queue.new{ concurrency = 2 }, queue.channel(), queue.channel()
    q:push(function() while true do to:send(1); fro:receive() end end)
    q:push(function() while true do to:receive(); fro:send(1) end end)
    q:run()
  end,
  ["goes on"] = function() goes_on(watched()) end,
}
local places = {
  ["top"] = function() waits[wait]() end,
  ["coroutine"] = function() coroutine.wrap(waits[wait])() end,
}
say("ready")
places[place]()
say("went on")
