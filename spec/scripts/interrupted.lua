-- Says ready, then waits, in the way that the first argument names, at the place that the second names.
local queue = require("queue")
local wait, place = arg[1], arg[2]
local never = queue.after(1e7)                        -- a live timer: a wait on it is no deadlock

local function say(...) io.stdout:write(table.concat({ ... }, " "), "\n"); io.stdout:flush() end
local function further() say("a further job ran") end
local function watched() return queue.new{ on_error = function(_, info) say("failed", info.id, info.attempts) end } end

local waits = {
  ["receive"] = function() never:receive() end,
  ["receive with a time"] = function() queue.channel(1):receive(1e7) end,
  ["send"] = function() queue.channel():send(1, 1e7) end,
  ["send with a time"] = function() queue.channel(0):send({}, 2 ^ 53) end,
  ["send to a full channel"] = function() local ch = queue.channel(1); ch:send(1); ch:send(2, 1e7) end,
  ["sleep"] = function() queue.sleep(1e7) end,
  ["iter"] = function() for v in never:iter() do say("value", tostring(v)) end end,
  ["tick"] = function() queue.tick(1e7):receive() end,
  ["run of a delayed job"] = function() local q = watched(); q:push(further, { delay_ms = 1e7 }); q:run() end,
  ["run of a job far away"] = function() local q = watched(); q:push(further, { delay_ms = 1e300 }); q:run() end,
  ["job"] = function()
    local q = watched()
    q:push(function() queue.sleep(1e7) end, { id = "job", retries = 5, priority = 1 })
    q:push(further); q:run()
  end,
  ["job in a job"] = function()
    local q = watched()
    q:push(function() q:run() end, { id = "job", retries = 5, priority = 2 })
    q:push(function() never:receive() end, { id = "inner", retries = 5, priority = 1, backoff_ms = 1 })
    q:push(further); q:run()
  end,
  ["on_error"] = function()
    local q = queue.new{ on_error = function() queue.sleep(1e7) end }
    q:push(function() error("x") end); q:push(further); q:run()
  end,
  ["backoff_ms"] = function()
    local q = queue.new()
    q:push(function() error("x") end, { retries = 1, backoff_ms = function() queue.sleep(1e7) end })
    q:push(further); q:run()
  end,
  ["loop"] = function()
    local q = watched()
    q:push(function() while true do queue.now() end end, { id = "job", retries = 5 })
    q:push(further); q:run()
  end,
  ["coroutine in a job"] = function()
    local q = watched()
    q:push(function() coroutine.wrap(function() queue.sleep(1e7) end)() end, { id = "job", retries = 5 })
    q:push(further); q:run()
  end,
  ["run"] = function() end,
}

local function caught()
  local ok, err = pcall(waits[wait])
  queue.sleep(150); queue.channel(1):receive(150)
  local q = queue.new(); q:push(function() queue.sleep(1) end)
  say(("caught %s, slept on, ran %d"):format(tostring(not ok and tostring(err):find("interrupted!$") ~= nil), q:run()))
  os.exit(3)
end

local places = {
  ["top"] = function() waits[wait]() end,
  ["coroutine"] = function() coroutine.wrap(waits[wait])() end,
  ["deep"] = function() coroutine.wrap(function() coroutine.wrap(waits[wait])() end)() end,
  ["caught"] = caught,
  ["caught in a coroutine"] = function() coroutine.wrap(caught)() end,
  ["goes on"] = function()
    local q = queue.new()
    q:push(function() end, { delay_ms = 1300, retries = 5 }); q:push(function() end, { delay_ms = 1200 })
    local ok, err = pcall(q.run, q)
    local pending, failed = q:size(), q:metrics().failed
    say(("caught %s, pending %d, failed %d, then ran %d"):format(
      tostring(not ok and tostring(err):find("interrupted!$") ~= nil), pending, failed, q:run()))
    os.exit(3)
  end,
}
say("ready")
places[place]()
say("went on")
