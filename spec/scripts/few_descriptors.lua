-- Under a small limit on descriptors: asks for more of them than there are, lets go, and asks again.
local queue = require("queue")

local function exhaust()
  local kept = {}
  for i = 1, 100 do
    local ch = i % 2 == 0 and queue.channel(1) or queue.new{ concurrency = 2 }
    local fd, why = ch:getfd()
    if not fd then
      assert(i > 3 and type(why) == "string" and #why > 0, tostring(why))
      -- What has no descriptor works all the same.
      if i % 2 == 0 then ch:send(1); assert(ch:receive() == 1 and ch:dirty() == false)
      else ch:push(function() end); assert(ch:run() == 1) end
      return i, kept
    end
    kept[i] = ch
  end
  error("descriptors without end")
end

local first = exhaust()
collectgarbage(); collectgarbage(); collectgarbage()
assert(exhaust() == first, "descriptors were lost")
print("done")
