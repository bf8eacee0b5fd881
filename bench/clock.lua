--- The clock that the pure-Lua peer is given: luv's, else luasocket's, else the processor time that Lua has.
-- (On LuaJIT the system's clock through ffi makes no difference that can be measured.)

local H = require("bench.harness")

local clock = {}

local uv, socket = H.optional("luv"), H.optional("socket")
if uv then
  local hrtime = uv.hrtime
  function clock.now() return hrtime() / 1e6 end
elseif socket then
  function clock.now() return socket.gettime() * 1e3 end
else
  function clock.now() return os.clock() * 1e3 end
end

function clock.sleep(ms)
  if uv then return uv.sleep(math.max(1, math.ceil(ms))) end
  local last = clock.now() + ms
  repeat until clock.now() >= last
end

return clock
