-- A live view of a queue: what is pending, in flight and done, how fast it goes, how long jobs wait and take. On a
-- terminal it is redrawn in place; into a pipe or a file it goes as plain lines, fewer of them.
--
--   lua5.4 examples/dashboard.lua            asks whether the output is a terminal
--   lua5.4 examples/dashboard.lua live       redraws in any case; `plain` prints lines in any case

local queue = require("queue")

-- `test -t 1` asks about standard output. Lua 5.1 answers with the exit code, later ones with true or nil.
local function on_a_terminal()
  local answer = os.execute("test -t 1")
  return (answer == 0 or answer == true) and os.getenv("TERM") ~= "dumb"
end

local mode = arg and arg[1] or (on_a_terminal() and "live" or "plain")
local FRAME_MS = mode == "live" and 50 or 250

-- Prints lines over those of the frame before.
local frame_height = 0
local function draw(lines)
  if mode == "live" and frame_height > 0 then io.write("\27[", frame_height, "A") end
  for _, line in ipairs(lines) do io.write(line, mode == "live" and "\27[K\n" or "\n") end
  io.flush()
  frame_height = #lines
end

-- A bar of that many characters, shared out among `{ count, mark }` pairs.
local function bar(width, parts)
  local total, counted, drawn, text = 0, 0, 0, ""
  for _, part in ipairs(parts) do total = total + part[1] end
  for _, part in ipairs(parts) do
    counted = counted + part[1]
    local upto = total > 0 and math.floor(width * counted / total + 0.5) or 0
    text = text .. part[2]:rep(upto - drawn)
    drawn = upto
  end
  return "[" .. text .. "]"
end

-- Runs the queue until all is done, and asks `view(metrics)` for the lines of each frame. One attempt a turn, so that a
-- frame is late by one job at most.
local function watch(q, view)
  local next_frame = queue.now()
  frame_height = 0
  repeat
    q:poll(1)
    local due_ms = q:next_due()                      -- nil: all done, and one last frame
    if not due_ms or queue.now() >= next_frame then
      draw(view(q:metrics()))
      next_frame = queue.now() + FRAME_MS
    end
    if due_ms then queue.sleep(math.min(due_ms, next_frame - queue.now())) end
  until not due_ms
end

local function done(m) return m.succeeded + m.failed + m.expired + m.cancelled end

-- 1. The dashboard.
local function dashboard()
  local last_at, last_done, rate = queue.now(), 0, 0
  return function(m)
    local now, passed = queue.now(), queue.now() - last_at
    if passed >= 200 then                            -- shorter spans make a figure that jumps
      rate = (done(m) - last_done) * 1000 / passed
      last_at, last_done = now, done(m)
    end
    return {
      ("%s %d done, %d in flight, %d pending"):format(
        bar(30, { { done(m), "#" }, { m.in_flight, ">" }, { m.pending, "." } }), done(m), m.in_flight, m.pending),
      ("  rate %5.0f jobs/s    retried %d, failed %d, expired %d"):format(rate, m.retried, m.failed, m.expired),
      ("  wait p50 %6.1f ms    p99 %6.1f ms    max %6.1f ms"):format(m.p50_wait_ms, m.p99_wait_ms, m.max_wait_ms),
      ("  exec p50 %6.1f ms    p99 %6.1f ms    max %6.1f ms"):format(m.p50_exec_ms, m.p99_exec_ms, m.max_exec_ms),
    }
  end
end

-- 2. The progress bar of a batch: one call.
local function progress(q, title)
  watch(q, function(m)
    return { ("%s %s %3d %%"):format(title, bar(30, { { done(m), "#" }, { m.enqueued - done(m), "." } }),
      math.floor(100 * done(m) / m.enqueued)) }
  end)
end

-- Something to look at: requests that come in three waves, eight at a time are served, and some fail at first.
local web = queue.new{ concurrency = 8 }
local asked = {}
local function request(n)
  queue.sleep(5 + n % 7 * 5)
  asked[n] = (asked[n] or 0) + 1
  if n % 10 == 0 and asked[n] == 1 then error("503") end
end
for n = 1, 180 do
  web:push(request, { args = { n }, delay_ms = 250 * math.floor((n - 1) / 60), retries = 1, backoff_ms = 30 })
end
watch(web, dashboard())

local batch = queue.new()
for _ = 1, 40 do batch:push(queue.sleep, { args = { 10 } }) end
progress(batch, "thumbnails")
