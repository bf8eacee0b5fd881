--- What the specs of concurrent jobs, select and shared channels share: crews, and jobs of which none may fail.
local H = require("spec.helper")
local queue = H.queue

local G = {}

-- For each queue that was made here, what its jobs threw.
local troubles = setmetatable({}, { __mode = "k" })

--- A queue whose jobs wait side by side, without a bound where none is given.
function G.crew(n)
  local seen = {}
  local q = queue.new{ concurrency = n or math.huge, on_error = function(msg, info)
    seen[#seen + 1] = { id = info.id, msg = msg, info = info }
  end }
  troubles[q] = seen
  return q, seen
end

--- No job of it has failed so far.
function G.fine(q)
  local first = troubles[q][1]
  if first then error("job " .. first.id .. " failed: " .. first.msg .. "\n" .. tostring(first.info.traceback), 2) end
  H.conserved(q)
end

--- Runs it to its end: every job must succeed. Returns how many attempts ended.
function G.run(q)
  local ended = q:run()
  local first = troubles[q][1]
  if first then error("job " .. first.id .. " failed: " .. first.msg .. "\n" .. tostring(first.info.traceback), 2) end
  H.conserved(q); H.eq(q:in_flight(), 0, "in flight")
  return ended
end

--- Runs these functions side by side, to their end.
function G.jobs(...)
  local q = G.crew()
  for i = 1, select("#", ...) do q:push((select(i, ...))) end
  return G.run(q)
end

--- Makes three kinds of `it`. busted gives `it` and `pending` to spec files alone, and
-- another `pending` inside an `it`: `own()` returns those of the caller.
function G.its(own)
  --- For what stock 5.1 cannot: to wait under pcall, an iterator or a metamethod, or to yield across the pump.
  local function not51(title, fn)
    own()(title, function()
      local _, pending = own()
      if H.lua51 then return pending("stock 5.1 has no yield across pcall, iterators and metamethods") end
      return fn()
    end)
  end

  --- For what 5.4 brought.
  local function since54(title, fn)
    own()(title, function()
      local _, pending = own()
      if not H.lua54 then return pending("needs Lua 5.4") end
      return fn()
    end)
  end

  --- For what must be garbage once it is let go of.
  local function collected(title, make)
    own()(title, function() H.collected(make) end)
  end

  return not51, since54, collected
end

--- Puts a value at the end of a list. `l[#l + 1] = ch:receive()` would look for the place before it waits.
function G.add(l, v) l[#l + 1] = v end

--- `msg` begins with the line on which `fn`, a one-line function, stands, and holds `text`.
function G.at(fn, msg, text)
  local info = debug.getinfo(fn, "S")
  local place = ("%s:%d: "):format(info.short_src, info.linedefined)
  if type(msg) ~= "string" or msg:sub(1, #place) ~= place then
    error(("%s does not begin with %s"):format(tostring(msg), place), 2)
  end
  H.has(msg, text)
end

--- Calls `fn` where no coroutine can yield: the suite itself may be one.
function G.unyieldable(fn)
  local r
  table.sort({ 2, 1 }, function(a, b) r = r or H.pack(fn()); return a < b end)
  return H.unpack(r, 1, r.n)
end

--- A light userdata, or nil on a Lua that has no way to make one.
function G.light()
  if debug.upvalueid then return debug.upvalueid(G.light, 1) end
end

return G
