-- Uses memory in the way that the first argument names until it is refused, catches that, and goes on.
local queue = require("queue")
if rawget(_G, "jit") then require("jit").off() end      -- compiled code crashes by itself where memory is refused
local what = arg[1]
local function noop() end

local q, ch, kept = queue.new(), queue.channel(1e9), {}
local uses = {}
uses["push"] = function() q:push(noop) end
uses["push with options"] = function(i) q:push(noop, { args = { i }, payload = { i }, id = "some id " .. i, delay_ms = i }) end
uses["send"] = function(i) ch:send({ i }) end
uses["queues"] = function(i) local new = queue.new(); new:push(noop); rawset(kept, i, new) end
uses["channels"] = function(i) local new = queue.channel(4); new:send({}); rawset(kept, i, new) end
uses["run"] = function(i)
  q:push(function() rawset(kept, i, ("x"):rep(100000) .. i) end)
  q:run()
  if q:metrics().failed > 0 then error("not enough memory") end
end

local use, i, refused = uses[what], 0, nil
while not refused and i < 1e7 do
  i = i + 1
  local ok, err = pcall(use, i)
  if not ok then refused = err end
end
if not refused then print("no limit"); os.exit(0) end
kept = nil
if not tostring(refused):find("not enough memory", 1, true) then error(refused, 0) end
q:clear(); ch:close()
for v in ch:iter() do if not v then break end end
for _ = 1, 3 do collectgarbage() end
q:push(noop); q:run()
print("caught, goes on")
