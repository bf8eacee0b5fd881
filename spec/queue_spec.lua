--- Jobs: in what order they run, when, and what run and poll count.
local H = require("spec.helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop

describe("order", function()
  it("is priority first, push order among equals", function()
    local q = queue.new(); local l, note = H.log()
    for i, p in ipairs{ 0, 5, 0, 5, -3, 2, -3 } do q:push(note(p .. ":" .. i), { priority = p }) end
    eq(q:run(), 7); list(l, "5:2 5:4 2:6 0:1 0:3 -3:5 -3:7")
  end)

  it("is a stable sort of any mix", function()
    local q, want, got = queue.new(), {}, {}
    for i = 1, 3000 do
      local p = math.random(-4, 4)
      want[i] = { p = p, i = i }
      q:push(function() got[#got + 1] = i end, { priority = p })
    end
    table.sort(want, function(a, b) if a.p ~= b.p then return a.p > b.p end return a.i < b.i end)
    eq(q:run(), 3000)
    for i = 1, 3000 do eq(got[i], want[i].i, "place " .. i) end
  end)

  it("lets a job that a job pushes take its place by priority", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function()
      l[#l + 1] = "first"
      q:push(note("low"), { priority = -1 }); q:push(note("high"), { priority = 1 })
    end)
    q:push(note("second"))
    eq(q:run(), 4); list(l, "first high second low")
  end)

  it("starves low priorities while higher ones come", function()
    local q, n = queue.new(), 0
    local l, note = H.log()
    local function high() n = n + 1; if n < 50 then q:push(high, { priority = 1 }) else l[#l + 1] = "high" end end
    q:push(note("low")); q:push(high, { priority = 1 })
    eq(q:run(), 51); list(l, "high low")
  end)

  it("takes integral floats for integers", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("a"), { priority = 1.0 }); q:push(note("b"), { priority = 2.0 }); q:push(note("c"), { priority = 1 })
    q:run(); list(l, "b a c")
  end)

  it("knows the whole range of integers", function()
    local q = queue.new(); local l, note = H.log()
    local least, most = -2 ^ 53, 2 ^ 53
    if H.integers then least, most = math.mininteger, math.maxinteger end
    q:push(note("least"), { priority = least }); q:push(note("most"), { priority = most })
    q:push(note("zero")); q:push(note("below"), { priority = most - 1 }); q:push(note("above"), { priority = least + 1 })
    q:push(note("-2^63"), { priority = -2 ^ 63 })
    eq(q:run(), 6)
    list(l, "most below zero above least -2^63")
  end)
end)

describe("delay_ms", function()
  it("keeps a job back, and no other", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("late"), { delay_ms = 20, priority = 9 }); q:push(note("now"))
    local t = H.timed(function() eq(q:run(), 2) end)
    list(l, "now late"); H.between(t, 20, H.patience(1000))
  end)

  it("is never cut short", function()
    local q = queue.new()
    for _, ms in ipairs{ 0.5, 3, 11.75, 25 } do
      local started
      local pushed = queue.now()
      q:push(function() started = queue.now() end, { delay_ms = ms }); q:run()
      H.between(started - pushed, ms, ms + H.patience(500), ms .. " ms")
    end
  end)

  it("of less than nothing is none", function()
    local q = queue.new()
    q:push(noop, { delay_ms = -5 }); q:push(noop, { delay_ms = -math.huge }); q:push(noop, { delay_ms = 0 })
    eq(q:poll(), 3)
  end)

  it("lets all that are due be considered before one is picked", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("low"), { delay_ms = 2, priority = 1 }); q:push(note("mid"), { delay_ms = 2, priority = 2 })
    q:push(note("high"), { delay_ms = 5, priority = 3 }); q:push(note("zero"))
    queue.sleep(10)
    eq(q:poll(), 4); list(l, "high mid low zero")
  end)

  it("does not cost a job the place of its push", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("one"), { delay_ms = 8 }); q:push(note("two"), { delay_ms = 2 }); q:push(note("three"))
    queue.sleep(12)
    eq(q:run(), 3); list(l, "one two three")
  end)

  it("may be of any size: nothing wraps, nothing fires", function()
    local q = queue.new()
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 32, 2 ^ 53, 2 ^ 63, 2 ^ 64, 1e19, 1e300, math.huge } do
      q:push(noop, { delay_ms = ms })
    end
    eq(q:poll(), 0); eq(q:size(), 8)
    ok(q:next_due() > 2 ^ 30); eq(q:clear(), 8)
  end)

  it("makes an event loop of a job that pushes itself", function()
    local q, n = queue.new(), 0
    local function beat() n = n + 1; if n < 5 then q:push(beat, { delay_ms = 4 }) end end
    q:push(beat)
    local t = H.timed(function() eq(q:run(), 5) end)
    eq(n, 5); H.between(t, 16, H.patience(1000))
  end)
end)

describe("run", function()
  it("returns 0 at once where nothing is pending", function()
    local q = queue.new()
    eq(q:run(), 0); eq(q:run(), 0)
  end)

  it("sleeps out a delay without burning the processor", function()
    local q = queue.new(); q:push(noop, { delay_ms = 300 })
    local cpu = os.clock(); eq(q:run(), 1)
    H.between(os.clock() - cpu, 0, 0.1 * H.slow, "seconds of processor time")
  end)

  it("wakes for what a job pushes while a later one is delayed", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("last"), { delay_ms = 60 })
    q:push(function() q:push(note("mid"), { delay_ms = 5 }) end)
    eq(q:run(), 3); list(l, "mid last")
  end)

  it("raises where all that is pending waits for ever", function()
    local q = queue.new(); local ran
    q:push(noop, { delay_ms = math.huge })
    q:push(function() ran = true end)
    H.raises("deadlock: run", function() q:run() end)
    eq(ran, true); eq(q:size(), 1); eq(q:clear(), 1); eq(q:run(), 0)
  end)

  it("inside a job of the same queue drains the rest, and counts what it ran", function()
    local q = queue.new(); local l, note = H.log(); local inner
    q:push(function() l[#l + 1] = "out"; inner = q:run(); l[#l + 1] = "back" end, { priority = 1 })
    q:push(note("a")); q:push(note("b"), { delay_ms = 5 })
    eq(q:run(), 1, "outer"); eq(inner, 2, "inner"); list(l, "out a b back")
    eq(q:metrics().processed, 3)
  end)

  it("inside a job three deep counts each attempt once", function()
    local q, counts = queue.new(), {}
    local function run() local n = q:run(); counts[#counts + 1] = n end
    local function dig(n) return function() if n > 0 then q:push(dig(n - 1)); run() end end end
    q:push(dig(3)); run()
    list(counts, "1 1 1 1"); H.conserved(q)
  end)

  it("of another queue inside a job runs that queue", function()
    local a, b = queue.new(), queue.new(); local l, note = H.log()
    b:push(note("b"), { delay_ms = 5 })
    a:push(function() eq(b:run(), 1); l[#l + 1] = "a" end)
    eq(a:run(), 1); list(l, "b a"); eq(a:metrics().failed, 0)
  end)

  it("keeps a flat stack over a long chain of jobs", function()
    local q, n = queue.new(), 0
    local function hop() n = n + 1; if n < 50000 then q:push(hop) end end
    q:push(hop); eq(q:run(), 50000); eq(n, 50000)
  end)
end)

describe("poll", function()
  it("never sleeps", function()
    local q = queue.new(); q:push(noop, { delay_ms = 5000 }); q:push(noop)
    local t = H.timed(function() eq(q:poll(), 1); eq(q:poll(), 0) end)
    H.between(t, 0, H.patience(1000)); eq(q:size(), 1)
  end)

  it("starts at most max attempts; 0 is no bound", function()
    local q = queue.new()
    for _ = 1, 7 do q:push(noop) end
    eq(q:poll(2), 2); eq(q:poll(1.0), 1); eq(q:size(), 4); eq(q:poll(100), 4); eq(q:poll(100), 0)
    for _ = 1, 3 do q:push(noop) end
    eq(q:poll(0), 3)
  end)

  it("ends although each job pushes another", function()
    local q = queue.new()
    local function again() q:push(again) end
    q:push(again)
    eq(q:poll(10), 10); eq(q:size(), 1)
    eq(q:poll(), 1, "as many as were due at the call"); eq(q:size(), 1)
    q:push(again); q:push(again)
    eq(q:poll(), 3); eq(q:poll(0), 3); eq(q:size(), 3)
  end)

  it("counts a retry that is due at once as another attempt", function()
    local q = queue.new(); q:push(function() error("x") end, { retries = 3 })
    eq(q:poll(), 1); eq(q:size(), 1); eq(q:poll(2), 2); eq(q:poll(9), 1); eq(q:size(), 0)
  end)

  it("ends although each shed job's callback pushes one that is late already", function()
    local q
    local n = 0
    local function stale() q:push(noop, { timeout_ms = 1e-3 }); queue.sleep(0.1) end
    q = queue.new{ on_error = function() n = n + 1; if n < 1000 then stale() end end }
    stale()
    eq(q:poll(), 0); eq(n, 1); eq(q:size(), 1); eq(q:metrics().expired, 1)
    eq(q:poll(5), 0); eq(n, 2)
  end)

  it("inside a job of the same queue runs the rest", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() l[#l + 1] = "out"; eq(q:poll(1), 1); l[#l + 1] = "back" end)
    q:push(note("a")); q:push(note("b"))
    eq(q:poll(2), 2); list(l, "out a back b")
  end)
end)

describe("push", function()
  it("makes ids up where none is given, and uses none up otherwise", function()
    local q = queue.new{ capacity = 3 }
    eq(q:push(noop), "job-1"); eq(q:push(noop, { id = "mine" }), "mine")
    pcall(q.push, q, "no function"); pcall(q.push, q, noop, { delay_ms = 0 / 0 }); pcall(q.push, q, noop, { typo = 1 })
    eq(q:push(noop, {}), "job-2")
    eq((q:push(noop)), nil); eq((q:push(noop)), nil)
    q:run(); eq(q:push(noop), "job-3")
    eq(queue.new():push(noop), "job-1", "each queue counts for itself")
  end)

  it("takes any string for an id, and the same one twice", function()
    local seen = {}
    local q = queue.new{ on_error = function(_, info) seen[#seen + 1] = info.id end }
    for _, id in ipairs{ "a", "a", "", "with\0zero", ("long"):rep(5000), "job-1" } do
      eq(q:push(function() error("x") end, { id = id }), id)
    end
    eq(q:run(), 6)
    eq(seen[1], "a"); eq(seen[2], "a"); eq(seen[3], ""); eq(seen[4], "with\0zero"); eq(#seen[5], 20000)
  end)

  it("runs anything that can be called", function()
    local q = queue.new(); local l = {}
    local callable = setmetatable({ word = "table" }, { __call = function(self, x) l[#l + 1] = self.word .. x end })
    q:push(callable, { args = { "!" } })
    q:push(tostring, { args = { 1 } })
    q:push(coroutine.wrap(function() l[#l + 1] = "wrap" end))
    eq(q:run(), 3); list(l, "table! wrap"); eq(q:metrics().failed, 0)
  end)

  it("hands args to every attempt, nils included", function()
    local q, seen = queue.new(), {}
    q:push(function(...) seen[#seen + 1] = H.pack(...); error("again") end,
      { args = { nil, 2, nil, n = 3 }, retries = 1 })
    q:push(function(...) seen[#seen + 1] = H.pack(...) end, { args = { "a", false } })
    q:push(function(...) seen[#seen + 1] = H.pack(...) end, { args = {} })
    q:push(function(...) seen[#seen + 1] = H.pack(...) end)
    q:push(function(...) seen[#seen + 1] = H.pack(...) end, { args = { 1, 2, 3, n = 2 } })
    q:push(function(...) seen[#seen + 1] = H.pack(...) end, { args = { 1, 2, 3, n = 0 } })
    eq(q:run(), 7)
    H.results(seen[1], nil, 2, nil); H.results(seen[2], "a", false); H.results(seen[3]); H.results(seen[4])
    H.results(seen[5], 1, 2); H.results(seen[6]); H.results(seen[7], nil, 2, nil)
  end)

  it("hands over a great many args", function()
    local q, args, n = queue.new(), {}, 0
    for i = 1, 200 do args[i] = i end
    q:push(function(...) n = select("#", ...); eq((select(200, ...)), 200) end, { args = args })
    q:run(); eq(n, 200); eq(q:metrics().failed, 0)
  end)

  it("reads its options once, at the call", function()
    local seen
    local q = queue.new{ on_error = function(_, info) seen = info end }
    local opts = { id = "was", priority = 3, retries = 1, payload = "was", args = { "was" } }
    q:push(function(x) error(x, 0) end, opts)
    for k in pairs(opts) do opts[k] = nil end
    opts.id, opts.retries, opts.payload, opts.args, opts.delay_ms = "is", 9, "is", { "is" }, 1e6
    eq(q:run(), 2); eq(seen.id, "was"); eq(seen.priority, 3); eq(seen.payload, "was"); eq(seen.error, "was")
  end)

  it("leaves the table of options as it was", function()
    local q, opts = queue.new(), { priority = 1, args = { 1 } }
    q:push(noop, opts); q:run()
    eq(opts.priority, 1); eq(opts.id, nil); eq(#opts.args, 1)
    local n = 0; for _ in pairs(opts) do n = n + 1 end
    eq(n, 2)
  end)
end)
