-- A queue and channels in a luv loop.
--
-- A job waits for a callback of luv by waiting for a channel that the callback sends to. So code that calls luv reads
-- from top to bottom, and ten such jobs wait side by side.

local queue = require("queue")
local there, uv = pcall(require, "luv")
if not there then
  print("luv is not installed: nothing to show here.")
  return
end

-- A queue in the loop: a timer for its times, a descriptor for what comes from outside.
local function drive(q)
  local timer, outside = uv.new_timer(), uv.new_poll(q:getfd())
  local function turn()
    q:poll()
    local ms = q:next_due()
    if ms == nil then                     -- nothing pending, nothing in flight
      timer:close()
      outside:close()
    elseif ms < math.huge then
      timer:start(math.ceil(ms), 0, turn)
    else
      timer:stop()
    end
  end
  outside:start("r", turn)
  turn()
end

-- What luv would answer in a callback, a job gets as results.
local function await(start)
  local answer = queue.channel(1)
  start(function(...) answer:send({ ... }) end)
  return (table.unpack or unpack)((answer:receive()))
end

local q = queue.new{
  concurrency = 10,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

-- A server that answers each line in capitals, and closes.
local server = uv.new_tcp()
server:bind("127.0.0.1", 0)
server:listen(16, function(err)
  assert(not err, err)
  local peer = uv.new_tcp()
  server:accept(peer)
  peer:read_start(function(_, text)
    if text then peer:write(text:upper(), function() peer:close() end) end
  end)
end)
local port = server:getsockname().port

local open = 3
for i = 1, 3 do
  q:push(function(word)
    queue.sleep(10 * i)
    local client = uv.new_tcp()
    local err = await(function(done) client:connect("127.0.0.1", port, done) end)
    assert(not err, err)
    client:write(word)
    local text
    err, text = await(function(done) client:read_start(done) end)
    assert(not err, err)
    client:read_stop()
    client:close()
    print(word .. " -> " .. text)
    open = open - 1
    if open == 0 then server:close() end
  end, { args = { ({ "one", "two", "three" })[i] }, id = "client " .. i })
end

-- A channel by itself: luv watches its descriptor, and the callback takes what is there.
local tea = queue.after(200, "tea is ready")
local watcher = uv.new_poll(tea:getfd())
watcher:start("r", function()
  print((tea:receive()))
  watcher:close()
end)

drive(q)
uv.run()
print(q:metrics().succeeded .. " jobs done")
