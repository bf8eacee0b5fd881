#!/usr/bin/env lua
--- Runs the specs on the Lua that runs this file, with the module that was built for it:
--
--   lua5.4 spec/run.lua                       all of them
--   luajit spec/run.lua spec/timer_spec.lua   one room; busted's own options work too
--
-- The last line is `lua5.4: N passed, N failed, N pending`. With QUEUE_SPEC_GC=1 the collector never rests, and a
-- finalizer uses a queue and a channel at every point where the module lets it run.

local name = rawget(_G, "jit") and "luajit" or "lua" .. _VERSION:match("%d+%.%d+")
package.cpath = ("./%s/%s/?.so;%s"):format(os.getenv("QUEUE_BUILD") or "build", name, package.cpath)

local passed, failed, pending = 0, 0, 0

local function started() end
local function ended() end

local function report()
  io.stdout:write(("%s: %d passed, %d failed, %d pending\n"):format(name, passed, failed, pending))
  io.stdout:flush()
end

local function tally(status)
  if status == "success" then passed = passed + 1
  elseif status == "pending" then pending = pending + 1
  else failed = failed + 1 end
end

-- The collector at its hardest ----------------------------------------------------------------------------------

if (os.getenv("QUEUE_SPEC_GC") or "") ~= "" then
  -- A cycle begins as soon as the last one ends, every twenty to a hundred allocations. The multiplier is measured: in 5.4 one
  -- twice as large makes it a cycle an allocation, and hours of the suite. The stock 5.4 starts in generational mode.
  if name == "lua5.5" then
    collectgarbage("incremental")
    collectgarbage("param", "pause", 0)
  else
    if name == "lua5.4" then collectgarbage("incremental") end
    collectgarbage("setpause", 0)
    collectgarbage("setstepmul", name == "lua5.4" and 50 or 1000)
  end
  -- The new pause counts from the end of a cycle.
  collectgarbage()

  -- One garbage object whose finalizer leaves another behind: it runs once a cycle, wherever the collector happens to
  -- run, which is also in the middle of the module's own calls.
  local queue = require("queue")
  local q, ch, runs, pushes, overflow, trouble, armed

  local function job() runs = runs + 1 end
  local function work()
    pushes = pushes + 1
    assert(q:push(job, { id = "chained", payload = {} }))
    assert(q:poll() == 1, "the finalizer's job was not the one that ran")
    assert(ch:try_send({ pushes }))
    assert(ch:try_receive()[1] == pushes, "the finalizer's value is not the one it sent")
  end

  local arm
  local function finalizer()
    armed = false
    if not overflow then
      -- Some specs use the stack up. A finalizer that runs then finds none left, perhaps not even to tell.
      overflow = true
      local fine, why = pcall(work)
      overflow = not fine and tostring(why):find("overflow") ~= nil
      if not fine and not overflow then trouble = trouble or why end
    end
    arm()
  end
  function arm()
    if rawget(_G, "newproxy") then
      getmetatable(newproxy(true)).__gc = finalizer
    else
      setmetatable({}, { __gc = finalizer })
    end
    armed = true
  end

  -- What only a finalizer holds is finalized with it: `started` holds the two.
  function started()
    if overflow or not q then
      q, ch, runs, pushes, overflow = queue.new(), queue.channel(1), 0, 0, false
    end
    if not armed then arm() end
    collectgarbage()
  end
  function ended()
    collectgarbage()
    -- The metrics first: making their table may well run the finalizer.
    local m = q:metrics()
    if not overflow and runs + m.failed ~= pushes then
      trouble = ("%d jobs pushed, %d have run, %d failed"):format(pushes, runs, m.failed)
    end
    if trouble then
      io.stdout:write("\nin a finalizer: ", tostring(trouble), "\n")
      failed, trouble = failed + 1, nil
      -- Once is enough: what follows starts with a queue of its own.
      q = nil
    end
  end

  started()
end

-- busted --------------------------------------------------------------------------------------------------------

local function with_busted(core)
  -- After each file busted forgets what the file loaded, and luv does not survive being collected and loaded again.
  pcall(require, "luv")
  -- The runner makes its bus of events itself; this is where it comes by.
  package.loaded["busted.core"] = function()
    local busted = core()
    busted.subscribe({ "test", "start" }, function()
      started()
      return nil, true
    end)
    busted.subscribe({ "test", "end" }, function(_, _, status)
      tally(status)
      ended()
      return nil, true
    end)
    -- A file that does not load, a set-up that raises.
    local function outside(element)
      if element.descriptor ~= "it" then failed = failed + 1 end
      return nil, true
    end
    busted.subscribe({ "error" }, outside)
    busted.subscribe({ "failure" }, outside)
    busted.subscribe({ "exit" }, function()
      report()
      return nil, true
    end)
    return busted
  end
  -- Exits by itself when something failed.
  require("busted.runner")({ standalone = false })
end

-- A few lines in its place, for a Lua that busted does not run on: `describe`, `it`, and `pending` in an `it` ---------

local function without_busted(files)
  local titles = {}
  local function line(word, text) io.stdout:write(word, " ", table.concat(titles, " "), text or "", "\n") end

  function _G.describe(title, body)
    titles[#titles + 1] = title
    body()
    titles[#titles] = nil
  end

  local skip = {}
  function _G.pending(reason)
    skip.reason = reason
    error(skip, 0)
  end

  function _G.it(title, body)
    titles[#titles + 1] = title
    started()
    local ok, why = xpcall(body, function(e) return e == skip and e or debug.traceback(tostring(e), 2) end)
    local status = ok and "success" or why == skip and "pending" or "failure"
    tally(status)
    ended()
    if status == "pending" then line("pending", ": " .. tostring(skip.reason)) end
    if status == "failure" then line("FAILED", "\n" .. why) end
    titles[#titles] = nil
  end

  for _, file in ipairs(files) do
    io.stdout:write(file, "\n")
    local ok, why = pcall(dofile, file)
    if not ok then
      failed = failed + 1
      io.stdout:write("FAILED ", tostring(why), "\n")
    end
  end
  report()
end

local there, core = pcall(require, "busted.core")
if there then
  with_busted(core)
elseif name == "lua5.5" then
  local files = { (table.unpack or unpack)(arg) }
  if not files[1] then
    local list = assert(io.popen("ls spec/*_spec.lua"))
    for file in list:lines() do files[#files + 1] = file end
    list:close()
  end
  without_busted(files)
else
  io.stderr:write(name, ": busted is not installed for this Lua:\n", tostring(core), "\n")
  os.exit(1)
end

-- Closing the state runs the last finalizers and unloads the module, as the end of a script does.
local code = failed == 0 and 0 or 1
os.exit(code, true)
