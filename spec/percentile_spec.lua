--- The spread of waits and runs that metrics tells: p50, p95 and p99.
local H = require("spec.helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, noop = H.queue, H.eq, H.ok, H.noop
local fail = J.fail

local counts = { "enqueued", "processed", "succeeded", "failed", "retried", "expired", "dropped", "cancelled",
  "pending", "in_flight" }
local heads, tails = { "avg", "max", "p50", "p95", "p99" }, { "wait_ms", "exec_ms" }

-- How far off a percentile may be: it is told to a few parts in a hundred.
local low, high = 0.9, 1.1

--- The percentiles of `tail`, held against each other and the maximum.
local function spread(q, tail)
  local m = q:metrics()
  local p50, p95, p99, max = m["p50_" .. tail], m["p95_" .. tail], m["p99_" .. tail], m["max_" .. tail]
  ok(0 <= p50 and p50 <= p95 and p95 <= p99 and p99 <= max, ("%s: %g %g %g %g"):format(tail, p50, p95, p99, max))
  ok(m["avg_" .. tail] <= max, "the average is above the maximum")
  return p50, p95, p99, max
end

describe("metrics", function()
  it("has these numbers and no other: integers, and floats", function()
    local q = queue.new{ on_error = noop }
    for _ = 1, 3 do
      local m, names, n = q:metrics(), {}, 0
      for _, k in ipairs(counts) do
        names[k] = true; eq(type(m[k]), "number", k); eq(m[k] % 1, 0, k)
        if H.integers then eq(math.type(m[k]), "integer", k) end
      end
      for _, head in ipairs(heads) do
        for _, tail in ipairs(tails) do
          local k = head .. "_" .. tail
          names[k] = true; eq(type(m[k]), "number", k); if H.integers then eq(math.type(m[k]), "float", k) end
        end
      end
      for k in pairs(m) do n = n + 1; ok(names[k], "what is " .. tostring(k)) end
      eq(n, 20)
      q:push(function() queue.sleep(1) end); q:push(fail, { retries = 1 }); q:push(noop, { id = "c" }); q:cancel("c")
      q:run()
    end
  end)

  it("are 0 without samples: for what is pending, cancelled, cleared or shed", function()
    local q = queue.new{ on_error = noop }
    local function none()
      local m = q:metrics()
      for _, head in ipairs(heads) do
        for _, tail in ipairs(tails) do eq(m[head .. "_" .. tail], 0, head .. "_" .. tail) end
      end
    end
    none(); q:push(noop); q:push(noop, { id = "c", timeout_ms = 1e-3 }); queue.sleep(2); none(); q:clear(); none()
    q:push(noop, { id = "c" }); q:cancel("c"); none(); q:push(noop, { timeout_ms = 1e-3 }); queue.sleep(2)
    eq(q:run(), 0)
    eq(q:metrics().expired, 1); none()
  end)

  it("is a table of the caller's own", function()
    local q = queue.new(); q:metrics().p50_wait_ms = 99; eq(q:metrics().p50_wait_ms, 0)
  end)
end)

describe("percentiles", function()
  it("of one sample are that sample, about", function()
    local q = queue.new(); q:push(function() queue.sleep(20) end); queue.sleep(10); q:run()
    for _, tail in ipairs{ "wait_ms", "exec_ms" } do
      local p50, p95, p99, max = spread(q, tail)
      H.between(max, tail == "wait_ms" and 10 or 20, H.patience(1000)); eq(p50, p95); eq(p95, p99)
      H.between(p50, max * low, max, tail)
    end
  end)

  it("rise, and stay below the maximum, whatever was measured", function()
    local q = queue.new()
    for i = 1, 60 do q:push(function() if i % 7 == 0 then queue.sleep(i / 20) end end, { delay_ms = i % 5 }) end
    while q:size() > 0 do q:poll(1); spread(q, "wait_ms"); spread(q, "exec_ms") end
  end)

  it("tell the common case from the rare one", function()
    H.eventually(5, function()
      local q = queue.new()
      for i = 1, 100 do q:push(function() if i % 10 == 0 then queue.sleep(H.patience(15)) end end) end
      q:run(); local p50, p95, p99, max = spread(q, "exec_ms")
      H.between(p50, 0, H.patience(5)); H.between(p95, H.patience(15) * low, max)
      H.between(p99, H.patience(15) * low, max)
    end)
  end)

  it("leave the one in a hundred and fifty to the maximum", function()
    H.eventually(5, function()
      local q = queue.new()
      for i = 1, 150 do q:push(function() if i == 70 then queue.sleep(H.patience(30)) end end) end
      q:run(); local _, _, p99, max = spread(q, "exec_ms")
      H.between(max, H.patience(30), math.huge); H.between(p99, 0, H.patience(10))
    end)
  end)

  it("put half of the samples below the middle one", function()
    H.eventually(5, function()
      local q, unit = queue.new(), H.patience(0.5)
      for i = 1, 21 do q:push(function() queue.sleep(i * unit) end) end
      q:run(); local p50, p95, _, max = spread(q, "exec_ms")
      H.between(p50, 10 * unit * low, 13 * unit * high); H.between(p95, 19 * unit * low, max)
    end)
  end)

  it("of a wait run from when the attempt might start, one sample an attempt", function()
    local q = queue.new(); local n = 0
    q:push(function() n = n + 1; if n < 3 then error("x") end end, { delay_ms = 40, retries = 3, backoff_ms = 40 })
    eq(q:run(), 3); local p50 = spread(q, "wait_ms"); H.between(p50, 0, H.patience(30))
    local p = queue.new(); p:push(noop); p:push(noop, { delay_ms = 1 }); p:pause(30); p:run()
    H.between((spread(p, "wait_ms")), 29 * low, H.patience(1000))
  end)

  it("of a run include the job's waits, and each attempt is one", function()
    local q = queue.new{ concurrency = 3 }; local n = 0
    for _ = 1, 3 do q:push(function() queue.sleep(15) end) end
    q:push(function() n = n + 1; queue.sleep(15); if n < 3 then error("x") end end, { retries = 5 })
    eq(q:run(), 6); local p50, p95, p99 = spread(q, "exec_ms"); H.between(p50, 15 * low, H.patience(1000))
    ok(p95 >= 15 * low and p99 >= 15 * low)
  end)

  it("know runs of no time, and long ones, and count all", function()
    local q = queue.new(); for _ = 1, 1000 do q:push(noop) end
    q:run(); local p50, p95 = spread(q, "exec_ms"); H.between(p50, 0, H.patience(5)); H.between(p95, 0, H.patience(5))
    q:push(function() queue.sleep(200) end); q:run(); local _, _, p99, max = spread(q, "exec_ms")
    H.between(max, 200, H.patience(2000)); ok(p99 < 200 * H.slow)
  end)

  it("of many samples cost no room", function()
    local q = queue.new()
    local function work() for _ = 1, H.count(100000) do q:push(noop); q:poll() end H.collect() end
    work(); local lua, resident = collectgarbage("count"), H.resident()
    work(); H.between(collectgarbage("count") - lua, -1e9, 100, "KiB of Lua's own")
    if resident then H.between(H.resident() - resident, -1e9, 3000, "KiB resident") end
    spread(q, "wait_ms"); spread(q, "exec_ms")
  end)

  it("are each queue's own", function()
    local a, b = queue.new(), queue.new(); a:push(function() queue.sleep(3) end); a:run()
    ok(a:metrics().p50_exec_ms > 0)
    eq(b:metrics().p50_exec_ms, 0)
  end)
end)
