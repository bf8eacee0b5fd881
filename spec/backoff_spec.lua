--- queue.backoff: ever longer pauses between retries, with a spread, and an end.
local H = require("spec.helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local fail, huge, nan = J.fail, math.huge, 0 / 0

-- Attempts that a user may well never see: the answer is a number all the same.
local attempts = { 1, 2, 3, 10, 31, 32, 62, 63, 64, 65, 1000, 1023, 1024, 1025, 1e6, 2 ^ 31, 2 ^ 53, 2 ^ 63, 2 ^ 64,
  1e300, huge, 0, -1, -1e6, -huge, 1.5 }

--- A duration: neither NaN, nor endless, nor negative.
local function finite(ms, what)
  if type(ms) ~= "number" or ms ~= ms or ms < 0 or ms == huge then
    error(("%s: %s is no finite duration"):format(what, tostring(ms)), 2)
  end
end

describe("a backoff", function()
  it("is a function that grows from base_ms by factor", function()
    local f = queue.backoff{ base_ms = 5, factor = 3, jitter = 0 }
    eq(type(f), "function"); local l = {}
    for a = 1, 6 do l[a] = ("%g"):format(f(a)) end
    list(l, "5 15 45 135 405 1215"); eq(f(1), 5, "it remembers nothing")
  end)

  it("defaults to 100, 2, 60000 and a tenth to both sides", function()
    for _, f in ipairs{ queue.backoff{}, queue.backoff(), queue.backoff(nil) } do
      for _ = 1, 200 do
        H.between(f(1), 90, 110); H.between(f(2), 180, 220); H.between(f(3), 360, 440); H.between(f(9), 23040, 28160)
        H.between(f(10), 46080, 56320); H.between(f(11), 54000, 60000); H.between(f(1e6), 54000, 60000)
      end
    end
    local low, high = huge, 0
    local f = queue.backoff{}
    for _ = 1, 2000 do low = math.min(low, f(1)); high = math.max(high, f(1)) end
    H.between(low, 90, 91); H.between(high, 109, 110)
  end)

  it("takes each default apart", function()
    eq(queue.backoff{ jitter = 0 }(1), 100); eq(queue.backoff{ jitter = 0 }(3), 400)
    eq(queue.backoff{ jitter = 0 }(60), 60000)
    eq(queue.backoff{ jitter = 0, base_ms = 7 }(2), 14); eq(queue.backoff{ jitter = 0, factor = 10 }(2), 1000)
    eq(queue.backoff{ jitter = 0, max_ms = 150 }(2), 150)
    eq(queue.backoff{ jitter = 0, base_ms = 1, factor = 1 }(1e6), 1)
    eq(queue.backoff{ base_ms = 1e6, max_ms = 1e9, jitter = 0 }(2), 2e6)
    eq(queue.backoff{ jitter = 0, base_ms = 0.5 }(1), 0.5)
  end)

  it("takes a factor that is a fraction", function()
    H.between(queue.backoff{ base_ms = 100, factor = 1.5, jitter = 0 }(3), 224.999, 225.001)
  end)

  it("spreads evenly to both sides", function()
    local f = queue.backoff{ base_ms = 100, max_ms = 1e6, jitter = 0.5 }
    local tenths, n, sum = {}, 20000, 0
    for i = 1, 10 do tenths[i] = 0 end
    for _ = 1, n do
      local ms = f(1)
      H.between(ms, 50, 150); sum = sum + ms
      local at = math.min(10, math.floor((ms - 50) / 10) + 1); tenths[at] = tenths[at] + 1
    end
    H.between(sum / n, 98.5, 101.5, "the mean")
    for i = 1, 10 do H.between(tenths[i], n / 10 * 0.85, n / 10 * 1.15, "tenth " .. i) end
  end)

  it("spreads in proportion to the pause", function()
    local f, low, high = queue.backoff{ base_ms = 10, factor = 10, jitter = 0.2, max_ms = 1e9 }, huge, 0
    for _ = 1, 2000 do local ms = f(5); low = math.min(low, ms); high = math.max(high, ms) end
    H.between(low, 80000, 81000); H.between(high, 119000, 120000)
  end)

  it("spreads from nothing to twice, with a jitter of 1", function()
    local f, low, high = queue.backoff{ base_ms = 100, jitter = 1, max_ms = 1e6 }, huge, 0
    for _ = 1, 5000 do local ms = f(1); low = math.min(low, ms); high = math.max(high, ms) end
    H.between(low, 0, 2); H.between(high, 198, 200)
  end)

  it("differs from call to call and from function to function, and leaves math.random alone", function()
    local f, g, same = queue.backoff{ jitter = 0.5 }, queue.backoff{ jitter = 0.5 }, 0
    for _ = 1, 100 do if f(1) == g(1) or f(1) == f(1) then same = same + 1 end end
    ok(same < 5, same .. " of 100 are the same")
    math.randomseed(7); local one, two = math.random(), math.random()
    math.randomseed(7); eq(math.random(), one); f(1); g(5); eq(math.random(), two)
  end)

  it("is clamped to max_ms after the spread: never above, often at it", function()
    local f, at, below = queue.backoff{ base_ms = 1000, max_ms = 1000, jitter = 0.5 }, 0, 0
    for _ = 1, 4000 do
      local ms = f(1); H.between(ms, 500, 1000)
      if ms == 1000 then at = at + 1 elseif ms < 750 then below = below + 1 end
    end
    H.between(at, 1700, 2300, "at max_ms"); H.between(below, 800, 1200, "in the lower quarter")
  end)

  it("that is far above max_ms is still spread below it, or is it", function()
    local f = queue.backoff{ base_ms = 1, max_ms = 50, jitter = 0.2 }
    for _, a in ipairs{ 20, 64, 1e6, huge } do for _ = 1, 50 do H.between(f(a), 40, 50) end end
  end)

  it("is finite for any attempt, whatever the options", function()
    for _, options in ipairs{ {}, { jitter = 0 }, { jitter = 1 }, { factor = 1 }, { factor = 1e300 }, { max_ms = 0 },
      { factor = 1.0000001 }, { base_ms = 0 }, { base_ms = 0, factor = 1e300 }, { base_ms = 1e-300 },
      { max_ms = 1e300 }, { base_ms = 5e-324, jitter = 1 }, { base_ms = 1e308, max_ms = 1e308, jitter = 1 } } do
      local f = queue.backoff(options)
      for _, a in ipairs(attempts) do
        local ms = f(a)
        finite(ms, ("attempt %g"):format(a)); ok(ms <= (options.max_ms or 60000), "above max_ms")
      end
    end
  end)

  it("without a bound of its own is finite too, or refused", function()
    for _, options in ipairs{ { max_ms = huge }, { base_ms = huge }, { factor = huge } } do
      local done, f = pcall(queue.backoff, options)
      if done then for _, a in ipairs(attempts) do finite(f(a), ("attempt %g"):format(a)) end
      else H.has(f, "bad option '" .. next(options) .. "' to 'backoff'") end
    end
  end)

  it("of attempt 1e6, 2^53 and math.huge is max_ms", function()
    local f = queue.backoff{ jitter = 0 }
    eq(f(1e6), 60000); eq(f(2 ^ 53), 60000); eq(f(huge), 60000)
    if H.integers then eq(f(math.maxinteger), 60000); finite(f(math.mininteger), "the least integer") end
  end)

  it("of nothing is no pause", function()
    for _, options in ipairs{ { base_ms = 0 }, { max_ms = 0 }, { base_ms = -5 }, { max_ms = -1 } } do
      local f = queue.backoff(options)
      for _, a in ipairs{ 1, 2, 1e6, huge } do eq(f(a), 0) end
    end
  end)

  it("reads its options once, and leaves the table as it was", function()
    local options = { base_ms = 3, factor = 2, max_ms = 100, jitter = 0 }
    local f = queue.backoff(options)
    options.base_ms, options.factor, options.max_ms, options.jitter = 1e6, 9, 1e9, 1
    eq(f(2), 6); local same = { base_ms = 3 }; queue.backoff(same)
    eq(next(same), "base_ms"); eq(next(same, "base_ms"), nil)
  end)

  it("heeds no second argument", function()
    local f = queue.backoff{ jitter = 0 }
    for _, e in ipairs{ "boom", {}, 5, false, noop } do eq(f(2, e), 200) end
    eq(f(2, nil, "more"), 200)
  end)

  it("is garbage like any other, and many cost little", function()
    local weak = setmetatable({}, { __mode = "v" })
    for i = 1, 1000 do weak[i] = queue.backoff{ base_ms = i } end
    H.collect(); local left = 0
    for _ in pairs(weak) do left = left + 1 end
    ok(left <= 1, left .. " are still held")
  end)
end)

describe("backoff_ms = queue.backoff{}", function()
  it("paces the retries of a push", function()
    for _, n in ipairs(J.widths) do
      local q, seen = J.watched{ concurrency = n }; local at = {}
      q:push(function() at[#at + 1] = queue.now(); fail() end, { id = "j", retries = 3,
        backoff_ms = queue.backoff{ base_ms = 4, factor = 2, jitter = 0 } })
      eq(q:run(), 4); list(J.told(seen), "retry j retry j retry j error j")
      for i = 1, 3 do
        eq(seen[i].info.delay_ms, 4 * 2 ^ (i - 1)); H.between(at[i + 1] - at[i], 4 * 2 ^ (i - 1), H.patience(1000))
      end
      eq(H.conserved(q).retried, 3)
    end
  end)

  it("with a spread keeps within it", function()
    local q, seen = J.watched()
    q:push(fail, { retries = 200, backoff_ms = queue.backoff{ base_ms = 0.02, factor = 1, jitter = 0.5 } })
    eq(q:run(), 201); local different = {}
    for i = 1, 200 do
      H.between(seen[i].info.delay_ms, 0.01, 0.03); different[seen[i].info.delay_ms] = true
    end
    local n = 0
    for _ in pairs(different) do n = n + 1 end
    ok(n > 100, n .. " different pauses")
  end)

  it("serves many jobs and queues at once", function()
    local shared, told = queue.backoff{ base_ms = 1, factor = 2, jitter = 0 }, {}
    local a = queue.new{ on_retry = function(_, info) told[#told + 1] = info.id .. info.delay_ms / 1 end }
    local b = queue.new{ on_retry = function(_, info) told[#told + 1] = info.id .. info.delay_ms / 1 end }
    a:push(fail, { id = "a", retries = 2, backoff_ms = shared })
    a:push(fail, { id = "c", retries = 1, backoff_ms = shared })
    b:push(fail, { id = "b", retries = 2, backoff_ms = shared }); a:run(); b:run(); eq(#told, 5)
    for i, word in ipairs(told) do told[i] = word:gsub("%.0$", "") end
    table.sort(told); list(told, "a1 a2 b1 b2 c1")
  end)

  it("may be wrapped: give up by one's own rule", function()
    local f, q = queue.backoff{ base_ms = 1, jitter = 0 }, queue.new()
    local function own(a, e) return not e.fatal and f(a) end
    q:push(function() error({ fatal = true }) end, { retries = 9, backoff_ms = own })
    eq(q:run(), 1); eq(H.conserved(q).failed, 1)
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local arg, option = J.arg, function(key, extra) return J.option(key, "backoff", extra) end
  local f = queue.backoff{}
  for _, case in ipairs{
    { "a number", arg(1, "backoff", "table expected, got number"), function() queue.backoff(5) end },
    { "a string", arg(1, "backoff", "table expected, got string"), function() queue.backoff("x") end },
    { "false", arg(1, "backoff", "table expected, got boolean"), function() queue.backoff(false) end },
    { "a queue", arg(1, "backoff", "table expected, got queue"), function() queue.backoff(queue.new()) end },
    { "base_ms text", option("base_ms", "number expected, got string"), function() queue.backoff{ base_ms = "x" } end },
    { "base_ms a digit", option("base_ms", "number expected, got string"),
      function() queue.backoff{ base_ms = "5" } end },
    { "base_ms NaN", option("base_ms"), function() queue.backoff{ base_ms = nan } end },
    { "factor a table", option("factor", "number expected, got table"), function() queue.backoff{ factor = {} } end },
    { "factor NaN", option("factor"), function() queue.backoff{ factor = nan } end },
    { "factor negative", option("factor"), function() queue.backoff{ factor = -2 } end },
    { "max_ms true", option("max_ms", "number expected, got boolean"), function() queue.backoff{ max_ms = true } end },
    { "max_ms NaN", option("max_ms"), function() queue.backoff{ max_ms = nan } end },
    { "jitter text", option("jitter", "number expected, got string"), function() queue.backoff{ jitter = "x" } end },
    { "jitter a function", option("jitter", "number expected, got function"),
      function() queue.backoff{ jitter = noop } end },
    { "jitter NaN", option("jitter"), function() queue.backoff{ jitter = nan } end },
    { "jitter negative", option("jitter"), function() queue.backoff{ jitter = -0.1 } end },
    { "jitter without end", option("jitter"), function() queue.backoff{ jitter = huge } end },
    { "a typo", "base.*'backoff'", function() queue.backoff{ base = 5 } end },
    { "a typo beside good options", "jiter.*'backoff'", function() queue.backoff{ base_ms = 5, jiter = 0 } end },
    { "an array", "'backoff'", function() queue.backoff{ 100, 2 } end },
  } do
    it("backoff of " .. case[1], function() H.raises(case[2], case[3]) end)
  end

  it("a backoff that is called with no number", function()
    H.raises("number expected, got string", function() f("x") end)
    H.raises("number expected, got table", function() f({}) end)
    H.raises("number expected, got no value", function() f() end)
    H.raises("number expected, got nil", function() f(nil) end)
    H.raises("", function() f(nan) end)
  end)
end)
