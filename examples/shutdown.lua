-- A graceful end on SIGTERM: no new job starts, those in flight are finished, and what remains is reported.
--
-- Plain Lua cannot catch a signal; an event loop can. The queue is polled in the loop, and the signal's callback calls
-- `q:stop()`. It is shown with luv and with cqueues, whichever is there.

local queue = require("queue")
local has_luv, uv = pcall(require, "luv")
local has_cqueues, cqueues = pcall(require, "cqueues")
local _, signal = pcall(require, "cqueues.signal")

if not has_luv and not has_cqueues then
  print("Neither luv nor cqueues is installed: nothing to show here.")
  return
end

local GRACE_MS = 5000                     -- what takes longer after the signal is not waited for

-- Ten requests, three at a time. The fifth does what `kill PID` in a shell would do.
local function requests(terminate)
  local q = queue.new{ concurrency = 3 }
  for i = 1, 10 do
    q:push(function()
      if i == 5 then terminate() end
      queue.sleep(40)
    end, { id = "request " .. i })
  end
  return q
end

-- The program's last words. What is left could be written down here, and pushed again at the next start.
local function report(q)
  local m, left = q:metrics(), {}
  for _, job in ipairs(q:jobs()) do left[#left + 1] = job.id end
  print(("%d done, %d in flight, %d left: %s"):format(m.succeeded, m.in_flight, m.pending, table.concat(left, ", ")))
  print("none is lost: " .. tostring(m.succeeded + #left == 10))
end

local function with_luv()
  local q = requests(function() uv.kill(uv.os_getpid(), "sigterm") end)
  local timer, outside, sigterm = uv.new_timer(), uv.new_poll(q:getfd()), uv.new_signal()
  local last_call                         -- when to give up, once the signal has come

  local function turn()
    q:poll()
    local ms = q:next_due()               -- nil: all done, or stopped and nothing in flight
    if ms and last_call then ms = math.min(ms, last_call - queue.now()) end
    if ms == nil or ms < 0 then
      for _, handle in ipairs{ timer, outside, sigterm } do handle:close() end
    elseif ms < math.huge then
      timer:start(math.ceil(ms), 0, turn)
    else
      timer:stop()
    end
  end

  sigterm:start("sigterm", function()
    print("SIGTERM, " .. q:in_flight() .. " in flight")
    q:stop()
    last_call = queue.now() + GRACE_MS
    turn()
  end)
  outside:start("r", turn)
  turn()
  uv.run()
  report(q)
end

local function with_cqueues()
  local q, loop = requests(function() signal.raise(signal.SIGTERM) end), cqueues.new()

  signal.block(signal.SIGTERM)            -- else it ends the program before anybody has listened
  local sigterm = signal.listen(signal.SIGTERM)
  loop:wrap(function()
    local outside = { pollfd = q:getfd(), events = "r" }
    local last_call
    repeat
      q:poll()
      local ms = q:next_due()
      if ms and last_call then ms = math.min(ms, last_call - queue.now()) end
      if ms and ms >= 0 then cqueues.poll(outside, sigterm, ms / 1000) end
      if not last_call and sigterm:wait(0) then
        print("SIGTERM, " .. q:in_flight() .. " in flight")
        q:stop()
        last_call = queue.now() + GRACE_MS
      end
    until ms == nil or ms < 0
  end)
  assert(loop:loop())
  report(q)
end

if has_luv then
  print("with luv")
  with_luv()
end
if has_cqueues then
  print("with cqueues")
  with_cqueues()
end
