--- Random programs on a queue and on a channel, held after every step against the plainest thing that could be right.
local H = require("spec.helper")
local queue, eq = H.queue, H.eq

describe("a queue", function()
  -- The model: a list of jobs in push order. Delays are none, or so long that they never end.
  local function program(pick)
    local capacity = pick(3) == 1 and pick(8) or 0
    local ran, told = {}, {}
    local q = queue.new{ capacity = capacity, on_error = function(_, info) told[#told + 1] = info.id end }
    local jobs, seq, made, stopped = {}, 0, 0, false
    local m = { enqueued = 0, processed = 0, succeeded = 0, failed = 0, retried = 0, dropped = 0 }
    local cleared = 0

    local function push()
      local job = { pri = pick(4) - 2, fails = pick(4) - 1, retries = pick(4) - 1, far = pick(5) == 1, attempts = 0 }
      local options = { priority = job.pri, retries = job.retries, delay_ms = job.far and 1e9 or nil }
      if pick(3) == 1 then options.id = "own " .. pick(3) end
      local id, why = q:push(function()
        ran[#ran + 1] = job.id
        job.attempts = job.attempts + 1
        if job.attempts <= job.fails then error("as told") end
      end, options)
      if stopped then eq(id, nil); eq(why, "queue is stopped"); m.dropped = m.dropped + 1; return end
      if capacity > 0 and #jobs >= capacity then eq(id, nil); eq(why, "queue is full"); m.dropped = m.dropped + 1; return end
      if not options.id then made = made + 1 end
      job.id = options.id or "job-" .. made
      eq(id, job.id, "id")
      seq = seq + 1; job.seq, job.tried = seq, 0; jobs[#jobs + 1] = job
      m.enqueued = m.enqueued + 1
    end

    local function best()
      local found
      for i, job in ipairs(jobs) do
        local other = found and jobs[found]
        if not job.far and (not other or job.pri > other.pri or job.pri == other.pri and job.seq < other.seq) then found = i end
      end
      return found
    end

    local function ready()
      local n = 0
      for _, job in ipairs(jobs) do if not job.far then n = n + 1 end end
      return n
    end

    local function poll(max)
      local from, tell = #ran, #told
      local most = max > 0 and max or ready()
      local got = q:poll(max)
      if stopped then most = 0 end
      local count = 0
      while count < most do
        local i = best()
        if not i then break end
        local job = table.remove(jobs, i)
        count = count + 1; m.processed = m.processed + 1; job.tried = job.tried + 1
        eq(ran[from + count], job.id, "the job that ran")
        if job.tried > job.fails then m.succeeded = m.succeeded + 1
        elseif job.tried <= job.retries then
          m.retried = m.retried + 1; seq = seq + 1; job.seq = seq; jobs[#jobs + 1] = job
        else m.failed = m.failed + 1; tell = tell + 1; eq(told[tell], job.id, "the job that was told of") end
      end
      eq(got, count, "poll"); eq(#ran, from + count, "jobs that ran"); eq(#told, tell, "jobs that were told of")
    end

    for _ = 1, 60 do
      local what = pick(20)
      if what <= 11 then push()
      elseif what <= 15 then poll(pick(3))
      elseif what <= 17 then poll(0)
      elseif what <= 19 then
        if pick(4) == 1 then eq(q:clear(), #jobs, "clear"); cleared = cleared + #jobs; m.dropped = m.dropped + #jobs; jobs = {} end
      elseif pick(5) == 1 then q:stop(); stopped = true end
      eq(q:size(), #jobs, "size"); eq(#q, #jobs); eq(q:empty(), #jobs == 0); eq(q:is_stopped(), stopped)
      local real = q:metrics()
      for k, v in pairs(m) do eq(real[k], v, k) end
      eq(real.enqueued, real.succeeded + real.failed + real.expired + cleared + real.pending + real.in_flight, "conservation")
      local due = q:next_due()
      if stopped or #jobs == 0 then eq(due, nil, "next_due")
      elseif ready() > 0 then eq(due, 0, "next_due")
      else H.between(due, 1e8, 1e9, "next_due") end
    end
  end

  it("does what a list of jobs would do", function() H.for_seeds(400, program) end)
end)

describe("a channel", function()
  local function program(pick)
    local capacity = pick(6) - 1
    local ch, values, closed, n = queue.channel(capacity), {}, false, 0
    for _ = 1, 80 do
      local what = pick(10)
      if what <= 5 then
        n = n + 1
        local value = n % 5 == 0 and { n } or n % 7 == 0 and false or n
        if closed then H.results(H.pack(ch:try_send(value)), false, "closed")
        elseif #values < capacity then
          if pick(2) == 1 then H.results(H.pack(ch:try_send(value)), true) else H.results(H.pack(ch:send(value)), true) end
          values[#values + 1] = value
        elseif pick(2) == 1 then H.results(H.pack(ch:try_send(value)), false, "full")
        else H.results(H.pack(ch:send(value, 0)), false, "timeout") end
      elseif what <= 9 then
        local way = pick(3)
        local got = H.pack((way == 1 and ch.try_receive or ch.receive)(ch, way == 2 and 0 or 1e-3))
        if #values > 0 then H.results(got, table.remove(values, 1), true)
        else H.results(got, nil, false, closed and "closed" or way == 1 and "empty" or "timeout") end
      elseif pick(12) == 1 then ch:close(); closed = true end
      eq(ch:len(), #values, "len"); eq(#ch, #values); eq(ch:cap(), capacity); eq(ch:is_closed(), closed)
      eq(tostring(ch), ("channel(%d/%d%s)"):format(#values, capacity, closed and ", closed" or ""))
    end
  end

  it("does what a list of values would do", function() H.for_seeds(400, program) end)
end)
