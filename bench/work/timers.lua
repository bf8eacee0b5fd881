--- Timers, against luv's: how late they are, and what many of them cost. And a wait, which must cost nothing.

local H = require("bench.harness")
local queue = H.queue
local now = queue.now

local function summary(late)
  return { p50 = H.percentile(late, 0.5), p99 = H.percentile(late, 0.99) }
end

-- Of a ticker also how far the gaps between beats are off. One that counts each gap from the last beat keeps its gaps
-- and loses its phase, so each of the two alone would tell half.
local function steadiness(late)
  local answer, off = summary(late), {}
  for i = 2, #late do off[i - 1] = math.abs(late[i] - late[i - 1]) end
  answer.gap = H.percentile(off, 0.99)
  return answer
end

-- One timer after the other, each of 1 to 5 ms; how long after its time it is seen, in microseconds.
local function after(n)
  local random, late = H.random(5), {}
  for i = 1, n do
    local ms = random() + 1
    local start = now()
    queue.after(ms):receive()
    late[i] = (now() - start - ms) * 1000
  end
  return summary(late)
end

local function luv_once(n)
  local uv = require("luv")
  local random, late = H.random(5), {}
  for i = 1, n do
    local ms, timer = random() + 1, uv.new_timer()
    -- Or it would count from when the loop last looked at the clock.
    uv.update_time()
    local start = now()
    timer:start(ms, 0, function()
      late[i] = (now() - start - ms) * 1000
      timer:close()
    end)
    uv.run()
  end
  return summary(late)
end

-- A beat each 5 ms; the k-th is due 5 k ms after the start.
local BEAT = 5

local function tick(n)
  local late = {}
  local start = now()
  local ticker = queue.tick(BEAT)
  for i = 1, n do
    ticker:receive()
    late[i] = (now() - start - i * BEAT) * 1000
  end
  ticker:stop()
  return steadiness(late)
end

local function luv_repeat(n)
  local uv = require("luv")
  local late, count = {}, 0
  local timer = uv.new_timer()
  uv.update_time()
  local start = now()
  timer:start(BEAT, BEAT, function()
    count = count + 1
    late[count] = (now() - start - count * BEAT) * 1000
    if count == n then timer:close() end
  end)
  uv.run()
  return steadiness(late)
end

-- Many live timers in a fresh process, and how long after its last line that process is gone.
local function many(which, n)
  return function()
    local file = H.start("probe.lua", "timers", which, n)
    local answer, start = {}, nil
    for line in file:lines() do
      if line == "end" then
        start = now()
      else
        local name, value = line:match("^(%S+) (%S+)$")
        if name then answer[name] = tonumber(value) end
      end
    end
    file:close()
    if not start then error("10,000 timers cannot be made here", 0) end
    answer.end_ms = now() - start
    return answer
  end
end

-- The processor time of three waits, each in a process of its own, side by side.
local function blocked(ms)
  local files = {}
  for _, kind in ipairs{ "channel", "job", "shared" } do files[kind] = H.start("probe.lua", "blocked", kind, ms) end
  local answer = {}
  for kind, file in pairs(files) do answer[kind] = H.numbers(file).cpu_ms end
  return answer
end

local T = {}

function T.contests(size)
  local samples, beats, timers, wait = size(400, 3), size(200, 3), size(10000, 20), size(5000, 20)
  local function row(work, ours, theirs, goal)
    goal.section, goal.work, goal.ours, goal.theirs = "Timers and waits", work, ours, theirs
    goal.against = goal.against or theirs and "luv timers" or "–"
    return goal
  end
  return {
    {
      id = "timer after",
      unit = "us",
      rounds = 5,
      contenders = {
        { name = "queue", run = function() return after(samples) end },
        { name = "luv", needs = "luv", run = function() return luv_once(samples) end },
      },
      rows = {
        row("lateness of `after`, median", "queue:p50", "luv:p50", {}),
        row("lateness of `after`, p99", "queue:p99", "luv:p99", { most = 1, short = "after: lateness, p99" }),
      },
    },
    {
      id = "timer tick",
      unit = "us",
      rounds = 5,
      contenders = {
        { name = "queue", run = function() return tick(beats) end },
        { name = "luv", needs = "luv", run = function() return luv_repeat(beats) end },
      },
      rows = {
        row("lateness of `tick`, median", "queue:p50", "luv:p50", {}),
        row("lateness of `tick`, p99", "queue:p99", "luv:p99", { most = 1, short = "tick: lateness, p99" }),
        row("gaps of `tick`: off by, p99", "queue:gap", "luv:gap", {}),
      },
    },
    {
      id = "timer many",
      rounds = 5,
      contenders = {
        { name = "queue", run = many("queue", timers) },
        { name = "luv", needs = "luv", run = many("luv", timers) },
      },
      rows = {
        row("10,000 live timers: time to make", "queue:make_ms", "luv:make_ms", { unit = "ms" }),
        row("10,000 live timers: resident memory", "queue:mib", "luv:mib", { unit = "MiB" }),
        row("10,000 live timers: time to end the script", "queue:end_ms", "luv:end_ms",
          { unit = "ms", limit = 1000, against = "luv timers, to compare", short = "end with 10,000 timers" }),
      },
    },
    {
      id = "blocked",
      unit = "ms",
      rounds = 3,
      contenders = { { name = "queue", run = function() return blocked(wait) end } },
      rows = {
        row("processor time of a `receive` that waits 5 s", "queue:channel", nil,
          { limit = 20, short = "CPU of a receive of 5 s" }),
        row("the same in a concurrent job", "queue:job", nil, { limit = 20, short = "the same in a job" }),
        row("the same at a shared channel", "queue:shared", nil, { limit = 20, short = "the same, shared channel" }),
      },
    },
  }
end

return T
