-- A small cron: jobs that come again and again, each on a beat of its own. One ends itself, one is cancelled, one takes
-- longer than its interval, and one fails, is kept, and is done once more by hand. (A minute takes 10 ms here.)

local queue = require("queue")

local MINUTE_MS = 10

local operator
local q = queue.new{
  concurrency = math.huge,                -- an entry that waits holds up nobody
  keep_failed = 10,
  on_error = function(msg, info)
    print(info.id .. " failed: " .. msg)
    operator()
  end,
}

local beats = {}                          -- name -> how often it came
local function every(minutes, name, fn, options)
  options = options or {}
  options.id = name
  q:every(minutes * MINUTE_MS, function()
    beats[name] = (beats[name] or 0) + 1
    fn(beats[name])
  end, options)
end

every(1, "heartbeat", function() end)

every(2, "greeting", function(n)
  print("greeting " .. n .. " of 3")
  if n == 3 then q:cancel("greeting") end -- a beat may end its own series
end)

-- Takes longer than its interval. Beats do not overlap, and of those that were missed only the latest is made up.
local at_work, overlaps = false, 0
every(1, "sync", function()
  if at_work then overlaps = overlaps + 1 end
  at_work = true
  queue.sleep(2.5 * MINUTE_MS)
  at_work = false
end)

-- Fails while the disk is full. The series goes on after a beat that failed.
local disk_full = true
every(12, "backup", function()
  if disk_full then error("disk full", 0) end
  print("backup written")
end, { retries = 1, backoff_ms = MINUTE_MS })

-- On the hour, whenever the program was started: the delay of the first beat sets the phase of all.
local minute_of_the_hour = 45
every(60, "chime", function() print("the clock strikes") end, { delay_ms = (60 - minute_of_the_hour) * MINUTE_MS })

-- What comes once is a plain job.
function operator()
  q:push(function()
    disk_full = false
    print("done once more: " .. q:retry(q:failed()[1].id))
    print("cancelled: " .. q:cancel("heartbeat"))
  end, { delay_ms = 5 * MINUTE_MS })
end

q:push(function()
  for _, entry in ipairs(q:jobs()) do
    if entry.status == "delayed" then print("would come next: " .. entry.id) end
  end
  q:stop()                                -- ends every series, and `run` once the beats in flight are done
end, { delay_ms = 31 * MINUTE_MS })

q:run()
print("the heartbeat came until it was cancelled: " .. tostring(beats.heartbeat >= 2))
print("greetings: " .. beats.greeting .. ", syncs that overlapped: " .. overlaps)
