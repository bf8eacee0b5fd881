--- The pure-Lua peer: a job queue as one would write it by hand, with ids, priorities, delays, retries, start
-- deadlines, a capacity, metrics, and errors that stop nobody. It is meant to be quick: two binary heaps in plain
-- tables, one table for each job, and no more readings of the clock than the metrics need.
--
-- Lua itself has no monotonic clock, so `new` is given one, in milliseconds, and a way to sleep.

local Queue = {}
Queue.__index = Queue

-- Heaps -----------------------------------------------------------------------------------------------------------

local function before(a, b)
  local pa, pb = a.priority, b.priority
  if pa ~= pb then return pa > pb end
  return a.order < b.order
end

local function sooner(a, b)
  local da, db = a.due, b.due
  if da ~= db then return da < db end
  return a.order < b.order
end

local floor = math.floor

local function add(heap, item, less)
  local n = heap.n + 1
  heap.n = n
  while n > 1 do
    local up = floor(n / 2)
    local parent = heap[up]
    if not less(item, parent) then break end
    heap[n] = parent
    n = up
  end
  heap[n] = item
end

local function take(heap, less)
  local n, top = heap.n, heap[1]
  local item = heap[n]
  heap[n] = nil
  n = n - 1
  heap.n = n
  if n == 0 then return top end
  local i, child = 1, 2
  while child <= n do
    local best = heap[child]
    if child < n then
      local other = heap[child + 1]
      if less(other, best) then child, best = child + 1, other end
    end
    if not less(best, item) then break end
    heap[i] = best
    i, child = child, child * 2
  end
  heap[i] = item
  return top
end

-- The queue -------------------------------------------------------------------------------------------------------

local function new(options)
  return setmetatable({
    now = options.now,
    sleep = options.sleep,
    on_error = options.on_error,
    capacity = options.capacity or math.huge,
    ready = { n = 0 },
    delayed = { n = 0 },
    pending = 0,
    order = 0,
    made_ids = 0,
    enqueued = 0, processed = 0, succeeded = 0, failed = 0, retried = 0, expired = 0, dropped = 0, cancelled = 0,
    wait_ms = 0, max_wait_ms = 0, exec_ms = 0, max_exec_ms = 0,
  }, Queue)
end

local none = {}

function Queue:push(fn, options)
  if type(fn) ~= "function" then error("bad argument #1 to 'push' (function expected, got " .. type(fn) .. ")", 2) end
  options = options or none
  if self.stopped then
    self.dropped = self.dropped + 1
    return nil, "queue is stopped"
  end
  if self.pending >= self.capacity then
    self.dropped = self.dropped + 1
    return nil, "queue is full"
  end
  local id = options.id
  if not id then
    self.made_ids = self.made_ids + 1
    id = "job-" .. self.made_ids
  end
  local delay, order = options.delay_ms or 0, self.order + 1
  self.order = order
  local job = {
    fn = fn,
    id = id,
    priority = options.priority or 0,
    order = order,
    due = self.now() + delay,
    attempts = 0,
    retries = options.retries or 0,
    backoff = options.backoff_ms or 0,
    timeout = options.timeout_ms,
    args = options.args,
  }
  if delay > 0 then add(self.delayed, job, sooner) else add(self.ready, job, before) end
  self.pending = self.pending + 1
  self.enqueued = self.enqueued + 1
  return id
end

--- Takes the pending jobs of that id out. They stay in their heap, marked, until their turn comes.
function Queue:cancel(id)
  local count = 0
  for _, heap in ipairs{ self.ready, self.delayed } do
    for i = 1, heap.n do
      local job = heap[i]
      if job.id == id and not job.gone then
        job.gone = true
        count = count + 1
      end
    end
  end
  self.pending = self.pending - count
  self.cancelled = self.cancelled + count
  return count
end

local function report(queue, job, message, expired)
  if not queue.on_error then return end
  local ok, why = pcall(queue.on_error, tostring(message), {
    id = job.id, priority = job.priority, attempts = job.attempts, retries = job.retries, expired = expired,
  })
  if not ok then io.stderr:write("on_error failed: ", tostring(why), "\n") end
end

local function failed(queue, job, why, now)
  if job.attempts <= job.retries and not queue.stopped then
    queue.retried = queue.retried + 1
    queue.order = queue.order + 1
    queue.pending = queue.pending + 1
    job.order = queue.order
    job.due = now + job.backoff
    add(queue.delayed, job, sooner)
  else
    queue.failed = queue.failed + 1
    report(queue, job, why, false)
  end
end

local unpack = table.unpack or unpack

local function attempt(queue, job, now)
  local wait = now - job.due
  queue.wait_ms = queue.wait_ms + wait
  if wait > queue.max_wait_ms then queue.max_wait_ms = wait end
  job.attempts = job.attempts + 1
  local args = job.args
  local ok, why
  if args then
    ok, why = pcall(job.fn, unpack(args, 1, args.n or #args))
  else
    ok, why = pcall(job.fn)
  end
  local done = queue.now()
  local exec = done - now
  queue.exec_ms = queue.exec_ms + exec
  if exec > queue.max_exec_ms then queue.max_exec_ms = exec end
  queue.processed = queue.processed + 1
  if ok then queue.succeeded = queue.succeeded + 1 else failed(queue, job, why, done) end
  return done
end

local function pump(queue, max, waits)
  local ready, delayed, count = queue.ready, queue.delayed, 0
  local now = queue.now()
  while count < max and not queue.stopped do
    while delayed.n > 0 and delayed[1].due <= now do add(ready, take(delayed, sooner), before) end
    if ready.n > 0 then
      local job = take(ready, before)
      if not job.gone then
        queue.pending = queue.pending - 1
        if job.timeout and now - job.due > job.timeout then
          queue.expired = queue.expired + 1
          report(queue, job, ("job %q expired before it ran"):format(job.id), true)
        else
          now = attempt(queue, job, now)
          count = count + 1
        end
      end
    elseif waits and delayed.n > 0 then
      queue.sleep(delayed[1].due - now)
      now = queue.now()
    else
      break
    end
  end
  return count
end

function Queue:run() return pump(self, math.huge, true) end
function Queue:poll(max) return pump(self, max or math.huge, false) end
function Queue:stop() self.stopped = true end
function Queue:size() return self.pending end

function Queue:metrics()
  local n = math.max(1, self.processed)
  return {
    enqueued = self.enqueued, processed = self.processed, succeeded = self.succeeded, failed = self.failed,
    retried = self.retried, expired = self.expired, dropped = self.dropped, cancelled = self.cancelled,
    pending = self.pending,
    avg_wait_ms = self.wait_ms / n, max_wait_ms = self.max_wait_ms,
    avg_exec_ms = self.exec_ms / n, max_exec_ms = self.max_exec_ms,
  }
end

return { new = new }
