--- Recurring jobs: when beats are due, what ends one and what follows it, and what ends the series.
local H = require("spec.helper")
local G = require("spec.go_helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local fail, row, due, huge = J.fail, J.row, J.due, math.huge
local not51, since54, collected = G.its(function() return it, pending end)

--- A series that ends itself in its beat number `last`, after what `fn` does in each.
local function beats(q, ms, last, fn, options)
  local n, id = 0, nil
  id = q:every(ms, function(...)
    n = n + 1
    if n == last then eq(q:cancel(id), 1) end
    return (fn or noop)(n, ...)
  end, options)
  return id
end

describe("a series", function()
  it("beats at every interval, never early, first after one of them", function()
    for _, n in ipairs(J.widths) do
      local q, at = queue.new{ concurrency = n }, {}
      local from = queue.now()
      beats(q, 10, 6, function() at[#at + 1] = queue.now() end)
      eq(q:run(), 6); eq(#at, 6)
      for i, t in ipairs(at) do ok(t - from >= 10 * i, ("beat %d after %.3f ms"):format(i, t - from)) end
      H.between(at[6] - from, 60, H.patience(1000)); H.conserved(q)
    end
  end)

  it("has an id, made up where none is given, the same for all its beats", function()
    local q, seen = J.watched()
    eq(q:push(noop), "job-1"); eq(beats(q, 1, 3), "job-2"); eq(q:push(noop), "job-3")
    eq(beats(q, 3, 2, nil, { id = "own" }), "own")
    q:run(); local n = { ["job-2"] = 0, own = 0, ["job-1"] = 0, ["job-3"] = 0 }
    for _, s in ipairs(seen) do n[s.id] = n[s.id] + 1 end
    eq(n["job-2"], 3); eq(n.own, 2); eq(q:push(noop), "job-4", "beats use no ids up")
  end)

  it("hands args and payload to each beat", function()
    local q, seen = J.watched(); local got, thing, l = {}, {}, { 1, nil, 3, n = 4 }
    beats(q, 1, 3, function(n, ...) got[n] = H.pack(...) end, { args = l, payload = thing, retries = 2, priority = 4 })
    eq(q:run(), 3)
    for i = 1, 3 do
      H.results(got[i], 1, nil, 3, nil); local info = seen[i].info
      eq(info.payload, thing); eq(info.retries, 2); eq(info.priority, 4)
      eq(info.attempts, 1, "counted anew in each beat")
    end
  end)

  it("is one beat at a time: pending, or in flight", function()
    local q = queue.new()
    beats(q, 3, 3, function()
      eq(#q:jobs(), 1); eq(q:size(), 0); eq(q:in_flight(), 1); eq(q:status("s"), "running"); queue.sleep(8)
      eq(#q:jobs(), 1)
    end, { id = "s" })
    eq(q:size(), 1); eq(q:status("s"), "delayed"); eq(q:run(), 3); eq(H.conserved(q).failed, 0); eq(#q:jobs(), 0)
  end)

  it("counts each beat as enqueued when it is filed", function()
    local q, l = nil, {}
    q = queue.new{ on_success = function() local m = H.conserved(q); l[#l + 1] = m.enqueued .. "+" .. m.pending end }
    beats(q, 2, 3, function(n) eq(q:metrics().enqueued, n) end); eq(q:metrics().enqueued, 1); eq(q:run(), 3)
    list(l, "2+1 3+1 3+0"); local m = H.conserved(q); eq(m.enqueued, 3); eq(m.succeeded, 3); eq(m.cancelled, 0)
    eq(m.pending, 0)
  end)

  it("beside others takes its place by priority", function()
    local q = queue.new(); local l, note = H.log()
    q:every(1e4, note("low"), { priority = -1, delay_ms = 0 })
    q:every(1e4, note("high"), { priority = 1, delay_ms = 0 })
    q:push(note("mid")); q:poll(); list(l, "high mid low"); q:clear()
  end)

  it("may be many of one id", function()
    local q, n = queue.new(), 0
    for _ = 1, 3 do q:every(5, function() n = n + 1 end, { id = "s" }) end
    eq(q:size(), 3); ok(H.wait_for(2000, function() q:poll(); return n >= 6 end)); eq(q:size(), 3)
    eq(q:cancel("s"), 3); eq(q:run(), 0); H.conserved(q)
  end)

  it("runs anything that can be called", function()
    local q, n = queue.new(), 0
    local thing = setmetatable({}, { __call = function(_, x) n = n + x; if n == 3 then q:stop() end end })
    q:every(1, thing, { args = { 1 } }); eq(q:run(), 3)
  end)

  it("under poll and next_due beats as well", function()
    local q, n = queue.new(), 0
    local from = queue.now()
    q:every(8, function() n = n + 1 end, { id = "s" }); H.between(q:next_due(), 0, 8)
    while n < 4 do
      queue.sleep(q:next_due()); eq(q:poll(), 1); if n == 2 then H.between(q:next_due(), 0, 8) end
    end
    H.between(queue.now() - from, 32, H.patience(1000)); eq(q:size(), 1)
  end)

  it("at a tiny interval lets poll return, and run be stopped", function()
    for _, ms in ipairs{ 1e-3, 1e-9, 1e-300, 5e-324 } do
      local q, n = queue.new(), 0
      q:every(ms, function() n = n + 1 end, { id = "s" }); queue.sleep(0.1)
      eq(q:poll(), 1); eq(q:size(), 1); q:poll(); ok(n >= 1); H.between(q:next_due(), 0, 1); eq(q:cancel("s"), 1)
      q = queue.new(); beats(q, ms, 500); eq(q:run(), 500); eq(H.conserved(q).enqueued, 500)
    end
  end)

  it("at an interval of any size waits, and nothing wraps", function()
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 32, 2 ^ 53, 2 ^ 63, 2 ^ 64, 1e300, huge } do
      local q = queue.new(); q:every(ms, noop, { id = "s" }); eq(q:poll(), 0); ok(q:next_due() > 2 ^ 30)
      if ms == huge then eq(q:next_due(), huge) end
      eq(q:status("s"), "delayed"); eq(q:cancel("s"), 1)
      q:every(ms, noop, { id = "t", delay_ms = 0 }); eq(q:poll(), 1); eq(q:size(), 1); ok(q:next_due() > 2 ^ 30)
      eq(q:cancel("t"), 1)
    end
  end)

  it("without end in its interval alone makes run raise", function()
    local q = queue.new(); q:every(huge, noop); H.raises("deadlock: run", function() q:run() end); eq(q:size(), 1)
  end)
end)

describe("the phase", function()
  it("is set by the first beat, and kept by each that follows", function()
    local q, low, high = nil, nil, nil
    local n, seen, trouble = 0, 0, nil
    q = queue.new{ on_success = function()
      n = n + 1
      if n == 8 then return end
      local done, later = pcall(J.on_phase, q, "s", 15, low, high)
      if not done then trouble = trouble or later elseif later then seen = seen + 1 end
    end }
    beats(q, 15, 8, function(i) if i % 3 == 0 then queue.sleep(17 + i) end end, { id = "s" })
    low, high = due(q, "s"); eq(q:run(), 8); eq(n, 8); eq(trouble, nil); ok(seen > 0)
    eq(H.conserved(q).failed, 0)
  end)

  it("does not drift over many beats", function()
    local q, n = queue.new(), 0
    local count = H.count(300)
    q:every(2, function() n = n + 1 end, { id = "s" })
    local low, high = due(q, "s")
    while n < count do queue.sleep(q:next_due()); q:poll() end
    ok(H.wait_for(5000, function() return J.on_phase(q, "s", 2, low, high) or q:poll() < 0 end))
    H.between(due(q, "s") or huge, low + 2 * (count - 1), huge); eq(q:cancel("s"), 1)
  end)

  it("is that of delay_ms where that is given", function()
    local q = queue.new(); q:every(4000, noop, { id = "s", delay_ms = 7 }); H.between(q:next_due(), 0, 7)
    local low, high = due(q, "s"); queue.sleep(9); eq(q:poll(), 1)
    ok(J.on_phase(q, "s", 4000, low, high)); H.between(q:next_due(), 4000 - H.patience(1000), 4000)
  end)

  it("with a delay_ms of 0 begins at once; with a longer one than the interval, later", function()
    local q = queue.new(); q:every(5000, noop, { id = "now", delay_ms = 0 }); eq(q:next_due(), 0); eq(q:poll(), 1)
    H.between(q:next_due(), 5000 - H.patience(2000), 5000); q:cancel("now")
    q:every(5, noop, { delay_ms = 9000 }); H.between(q:next_due(), 9000 - H.patience(2000), 9000); eq(q:poll(), 0)
    q:every(5, noop, { delay_ms = -3 }); eq(q:next_due(), 0)
  end)

  it("is not moved by a beat that is late or long, nor by its retries", function()
    local q, n = queue.new(), 0
    local function beat() n = n + 1; queue.sleep(5); if n < 3 then error("x") end end
    q:every(25, beat, { id = "s", retries = 2, backoff_ms = 3 })
    local low, high = due(q, "s")
    queue.sleep(40); eq(q:poll(1), 1)
    while n < 3 do queue.sleep(q:next_due()); q:poll(1) end
    ok(H.wait_for(5000, function() return J.on_phase(q, "s", 25, low, high) or q:poll() < 0 end))
    eq(q:cancel("s"), 1); H.conserved(q)
  end)

  it("of times that were missed only the latest is made up", function()
    H.eventually(5, function()
      local q, l = nil, {}
      q = queue.new{ on_success = function() l[#l + 1] = q:status("s") or "gone" end }
      local ms = H.patience(20)
      beats(q, ms, 4, function(n) if n == 1 then queue.sleep(3.5 * ms) end end, { id = "s" })
      local from = queue.now(); eq(q:run(), 4)
      -- Beats: at 20, till 90; at 90, for 80; at 100; at 120.
      list(l, "ready delayed delayed gone"); H.between(queue.now() - from, 6 * ms - 1, 6.9 * ms)
    end)
  end)

  it("a beat that was due long ago is one beat, however many intervals have passed", function()
    local q, n = queue.new(), 0
    q:every(0.01, function() n = n + 1 end); queue.sleep(20); eq(q:size(), 1); eq(q:poll(), 1); eq(n, 1)
    eq(q:size(), 1)
  end)
end)

describe("a beat that fails", function()
  it("is told of, and the series goes on", function()
    local q, seen = J.watched()
    beats(q, 2, 5, function(n) if n % 2 == 0 then error("beat " .. n) end end, { id = "s" })
    eq(q:run(), 5); list(J.told(seen), "success s error s success s error s success s"); H.has(seen[4].msg, "beat 4")
    eq(seen[4].info.attempts, 1); local m = H.conserved(q); eq(m.failed, 2); eq(m.succeeded, 3); eq(m.enqueued, 5)
  end)

  it("is retried first: no other beat is alive meanwhile, and each beat has all its attempts", function()
    local q, seen = J.watched(); local tries, twos = 0, 0
    local id
    id = q:every(4, function()
      tries = tries + 1; if #q:jobs() ~= 1 then twos = twos + 1 end
      if tries == 7 then q:cancel(id) end
      if tries % 3 ~= 0 then error("x") end
    end, { id = "s", retries = 2, backoff_ms = 6 })
    eq(q:run(), 7)
    list(J.told(seen), "retry s retry s success s retry s retry s success s error s")
    for i, a in ipairs{ 1, 2, 3, 1, 2, 3, 1 } do eq(seen[i].info.attempts, a, "attempts in event " .. i) end
    eq(twos, 0); local m = H.conserved(q); eq(m.enqueued, 3); eq(m.retried, 4); eq(m.failed, 1)
  end)

  it("gives up by its backoff, and the next beat comes", function()
    local q, seen = J.watched()
    beats(q, 2, 3, fail, { id = "s", retries = 5, backoff_ms = function() return nil end }); eq(q:run(), 3)
    list(J.told(seen), "error s error s error s"); H.conserved(q)
  end)

  it("by Ctrl-C ends the run; the next beat is filed, and a later run goes on", function()
    local q, seen = J.watched()
    beats(q, 2, 2, function(n) if n == 1 then error("interrupted!", 0) end end, { id = "s", retries = 3 })
    local done, err = pcall(q.run, q); eq(done, false); eq(err, "interrupted!")
    eq(q:size(), 1); eq(H.conserved(q).failed, 1); eq(q:run(), 1); list(J.told(seen), "error s success s")
  end)
end)

describe("a beat that is shed", function()
  it("is told of, and the next one is filed", function()
    local q, seen = J.watched(); local n = 0
    local ms = H.patience(30)
    q:every(ms, function() n = n + 1 end, { id = "s", timeout_ms = ms / 6 }); local low, high = due(q, "s")
    queue.sleep(1.5 * ms); eq(q:poll(), 0); eq(n, 0); list(J.told(seen), "error s"); eq(seen[1].info.expired, true)
    eq(seen[1].msg, 'job "s" expired before it ran'); eq(q:size(), 1); J.on_phase(q, "s", ms, low, high)
    local m = H.conserved(q); eq(m.expired, 1); eq(m.enqueued, 2)
    ok(H.wait_for(2000, function() q:poll(); return n > 0 end), "no beat ran any more"); H.conserved(q)
  end)

  it("leaves poll an end, though each one that follows is late as well", function()
    local q, seen = J.watched()
    q:every(1e-3, noop, { id = "s", timeout_ms = 1e-6 }); queue.sleep(1)
    eq(q:poll(), 0); eq(#seen, 1); eq(q:size(), 1); H.conserved(q)
  end)
end)

describe("the end of a series", function()
  it("by cancel while its beat is pending is a job cancelled", function()
    local q, n = queue.new(), 0
    q:every(5, function() n = n + 1 end, { id = "s" }); eq(q:cancel("s"), 1); eq(q:cancel("s"), 0)
    eq(q:run(), 0); eq(n, 0); local m = H.conserved(q); eq(m.cancelled, 1); eq(m.enqueued, 1)
  end)

  for _, n in ipairs(J.widths) do
    it("by cancel in flight returns 1, then 0, and counts none; concurrency " .. n, function()
      local q, seen = J.watched{ concurrency = n }; local got = {}
      q:every(2, function() for i = 1, 3 do got[i] = q:cancel("s") end eq(q:status("s"), "running") end, { id = "s" })
      eq(q:run(), 1); list(got, "1 0 0"); list(J.told(seen), "success s"); eq(q:status("s"), nil); eq(q:size(), 0)
      local m = H.conserved(q); eq(m.cancelled, 0); eq(m.enqueued, 1)
    end)

    it("by cancel in flight lets no retry follow either; concurrency " .. n, function()
      local q, seen = J.watched{ concurrency = n }
      q:every(2, function() q:cancel("s"); fail() end, { id = "s", retries = 5 })
      eq(q:run(), 1); list(J.told(seen), "error s"); eq(seen[1].info.attempts, 1); eq(seen[1].info.retries, 5)
      local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 0); eq(m.pending, 0)
    end)

    it("by clear and by stop in flight is the same; concurrency " .. n, function()
      for _, how in ipairs{ "clear", "stop" } do
        for _, fails in ipairs{ false, true } do
          local q, seen = J.watched{ concurrency = n }
          q:every(2, function()
            if how == "clear" then eq(q:clear(), 0) else q:stop() end
            if fails then fail() end
          end, { id = "s", retries = 5 })
          eq(q:run(), 1); list(J.told(seen), (fails and "error" or "success") .. " s"); eq(q:size(), 0)
          eq(q:status("s"), nil)
          eq(H.conserved(q).enqueued, 1)
        end
      end
    end)
  end

  it("from outside, while the beat is parked, lets it end", function()
    for _, how in ipairs{ "cancel", "clear", "stop" } do
      local q, ch = G.crew(2), queue.channel()
      q:every(1, function() ch:receive() end, { id = "s" })
      ok(H.wait_for(2000, function() q:poll(); return q:in_flight() == 1 end))
      if how == "cancel" then eq(q:cancel("s"), 1); eq(q:cancel("s"), 0)
      elseif how == "clear" then eq(q:clear(), 0) else q:stop() end
      eq(q:status("s"), "running"); eq(q:in_flight(), 1); eq(q:metrics().cancelled, 0)
      ok(ch:try_send(1)); eq(q:run(), 1); eq(q:size(), 0); G.fine(q)
    end
  end)

  it("by clear while its beat is pending is a job cleared", function()
    local q = queue.new(); q:every(5, noop); q:every(5, noop); q:push(noop); eq(q:clear(), 3); eq(q:run(), 0)
    H.conserved(q, { cleared = 3 })
  end)

  it("while a retry of its beat is parked takes the retry along", function()
    for _, how in ipairs{ "cancel", "clear" } do
      local q = queue.new(); q:every(1, fail, { id = "s", retries = 5, backoff_ms = 1e6 }); queue.sleep(3)
      eq(q:poll(), 1)
      eq(q:status("s"), "delayed"); eq(q[how](q, "s"), 1); eq(q:run(), 0); eq(q:size(), 0)
      H.conserved(q, { cleared = how == "clear" and 1 or 0 }); eq(q:metrics().cancelled, how == "cancel" and 1 or 0)
    end
  end)

  it("by stop while its beat is pending: none starts any more", function()
    local q, n = queue.new(), 0
    q:every(2, function() n = n + 1 end, { id = "s" }); q:stop(); queue.sleep(5)
    eq(q:run(), 0); eq(q:poll(), 0); eq(n, 0); H.conserved(q)
  end)

  since54("by <close> clears the beat that is pending and cancels the one that is parked", function()
    local q, ch = G.crew(2), queue.channel()
    q:every(1, function() ch:receive() end, { id = "parked" }); q:every(1e6, noop, { id = "pending" })
    ok(H.wait_for(2000, function() q:poll(); return q:in_flight() == 1 end))
    assert(load("local q <close> = ..."))(q)
    local m = H.conserved(q, { cleared = 1 }); eq(m.cancelled, 1); eq(m.enqueued, 2); eq(q:status("parked"), nil)
    eq(m.pending, 0); eq(m.in_flight, 0); eq(q:run(), 0)
  end)

  it("in a callback finds the next beat filed: one pending job cancelled", function()
    for _, job in ipairs{ noop, fail } do
      local q, l = nil, {}
      local function cancel(info) l[#l + 1] = q:status(info.id); l[#l + 1] = q:cancel(info.id) end
      q = queue.new{ on_success = cancel, on_error = function(_, info) cancel(info) end }
      q:every(1e4, job, { id = "s", delay_ms = 1 }); eq(q:run(), 1); list(l, "delayed 1")
      local m = H.conserved(q); eq(m.cancelled, 1); eq(m.enqueued, 2)
    end
  end)

  it("in on_retry finds the retry: one pending job cancelled, and no beat more", function()
    local q, got = nil, nil
    q = queue.new{ on_retry = function(_, info) got = q:cancel(info.id) end }
    q:every(2, fail, { id = "r", retries = 1 }); eq(q:run(), 1); eq(got, 1)
    local m = H.conserved(q); eq(m.cancelled, 1); eq(m.enqueued, 1); eq(m.failed, 0)
  end)

  it("by clear in a callback drops the beat that is filed", function()
    local q, n = nil, nil
    q = queue.new{ on_success = function() n = q:clear() end }
    q:every(2, noop); eq(q:run(), 1); eq(n, 1); H.conserved(q, { cleared = 1 })
  end)

  it("of one leaves others of the queue beating", function()
    local q, l = queue.new(), {}
    q:every(3, function() l[#l + 1] = "a"; if #l > 5 then q:stop() end end, { id = "a" })
    q:every(3, function() q:cancel("b") end, { id = "b" }); q:run(); list(l, "a a a a a a")
  end)

  it("by cancel of an id counts the series in flight and the plain jobs that are pending", function()
    local q, got = queue.new(), nil
    q:every(2, function() got = q:cancel("s") end, { id = "s", priority = 1 })
    q:push(noop, { id = "s", delay_ms = 1e6 }); q:push(noop, { id = "s", delay_ms = 1e6 })
    eq(q:run(), 1); eq(got, 3); eq(H.conserved(q).cancelled, 2)
  end)

  it("leaves a plain job in flight of the same id alone", function()
    local q, got, n = queue.new(), {}, 0
    local function job() got[#got + 1] = q:cancel("s"); n = n + 1; if n < 3 then error("x") end end
    q:push(job, { id = "s", retries = 5 })
    eq(q:run(), 3); list(got, "0 0 0")
  end)
end)

describe("every is refused", function()
  it("by a stopped queue alone: a full one takes it, and every beat", function()
    local q = queue.new{ capacity = 1 }
    eq(q:push(noop, { delay_ms = 1e7, id = "long" }), "long"); local n = 0
    eq(q:every(2, function() n = n + 1; if n == 3 then q:cancel("s") end end, { id = "s" }), "s"); eq(q:size(), 2)
    H.results(H.pack(q:push(noop)), nil, "queue is full"); eq(q:cancel("long"), 1)
    H.results(H.pack(q:push(noop)), nil, "queue is full"); eq(q:run(), 3); H.conserved(q, { refused = 2 })
    q:stop(); H.results(H.pack(q:every(2, noop)), nil, "queue is stopped"); eq(q:size(), 0)
  end)

  it("by unique, in this call only", function()
    local q, got = queue.new(), nil
    q:push(noop, { id = "u", delay_ms = 1e7 })
    H.results(H.pack(q:every(2, noop, { id = "u", unique = true })), nil, "duplicate id"); eq(q:cancel("u"), 1)
    local n = 0
    eq(q:every(2, function() n = n + 1; if n == 3 then got = q:cancel("u") end end, { id = "u", unique = true }), "u")
    H.results(H.pack(q:every(2, noop, { id = "u", unique = true })), nil, "duplicate id")
    eq(q:push(noop, { id = "u", delay_ms = 1e7 }), "u", "which a twin does not ask for")
    eq(q:run(), 3, "and no beat asks again"); eq(got, 2)
    eq(q:every(2, noop, { id = "u", unique = true }), "u"); eq(q:cancel("u"), 1); eq(q:size(), 0)
  end)

  it("a push that is unique finds the series' id taken, pending and in flight", function()
    local q, l = queue.new(), {}
    local function ask() l[#l + 1] = select(2, q:push(noop, { id = "s", unique = true })) or "taken" end
    q:every(2, function() ask(); q:cancel("s"); ask() end, { id = "s" }); ask(); q:run(); ask()
    for i, word in ipairs(l) do l[i] = word:gsub(" ", "_") end
    list(l, "duplicate_id duplicate_id duplicate_id taken")
  end)

  it("refused on a stopped queue comes before unique", function()
    local q = queue.new(); q:push(noop, { id = "u" }); q:stop()
    H.results(H.pack(q:every(2, noop, { id = "u", unique = true })), nil, "queue is stopped")
  end)
end)

describe("set_priority of a series", function()
  it("moves the beat that is pending, and later beats keep it", function()
    local q, seen = J.watched(); local n = 0
    q:every(3, function() n = n + 1; if n == 3 then q:cancel("s") end end, { id = "s", priority = 1 })
    eq(q:set_priority("s", 8), 1); eq(row(q, "s").priority, 8); eq(q:run(), 3)
    for i = 1, 3 do eq(seen[i].info.priority, 8) end
  end)

  it("in a callback moves the next beat", function()
    local q, l = nil, {}
    q = queue.new{ on_success = function(info) l[#l + 1] = info.priority; q:set_priority("s", #l * 10) end }
    beats(q, 2, 4, nil, { id = "s" }); eq(q:run(), 4); list(l, "0 10 20 30")
  end)
end)

describe("a series among concurrent jobs", function()
  it("goes on while others wait, and never overtakes itself", function()
    local q, now, most, n = G.crew(3), 0, 0, 0
    q:push(function() queue.sleep(H.patience(60)); q:cancel("s") end)
    q:every(4, function()
      now = now + 1; most = math.max(most, now); queue.sleep(6); n = n + 1; now = now - 1
    end, { id = "s" })
    G.run(q); eq(most, 1); ok(n >= 2, "beats: " .. n)
  end)

  it("takes a slot only while it beats", function()
    local q, l = G.crew(2), {}
    q:every(H.patience(20), function() l[#l + 1] = "beat"; q:cancel("s") end, { id = "s" })
    for i = 1, 2 do q:push(function() queue.sleep(1); l[#l + 1] = i end) end
    eq(G.run(q), 3); eq(#l, 3); eq(l[3], "beat")
  end)

  not51("may end a run in which others wait for it", function()
    local q, ch, got = G.crew(3), queue.channel(), {}
    q:push(function() for v in ch:iter() do G.add(got, v) end end)
    beats(q, 2, 4, function(n) ch:send(n); if n == 4 then ch:close() end end); eq(G.run(q), 5); list(got, "1 2 3 4")
  end)
end)

describe("beats and nested runs", function()
  it("a beat may run its queue, and is not waited for", function()
    local q, l = queue.new(), {}
    beats(q, 2, 2, function() l[#l + 1] = q:run() end, { id = "s" }); q:push(noop, { delay_ms = 4, id = "p" })
    eq(q:run() + l[1] + (l[2] or 0), 3); eq(q:size(), 0); H.conserved(q)
  end)

  it("a series may be begun in a job, in a beat, in a callback", function()
    local q, l = nil, {}
    local function series(word, and_then)
      return q:every(1, function() l[#l + 1] = word; q:cancel(word); if and_then then and_then() end end, { id = word })
    end
    q = queue.new{ on_error = function() series("callback") end }
    q:push(function() series("job", function() series("beat", fail) end) end)
    eq(q:run(), 4); list(l, "job beat callback"); H.conserved(q)
  end)
end)

describe("is collected:", function()
  collected("a queue with a series that captures it", function(m)
    local q = queue.new(); q:every(1e6, function() return q, m end, { payload = m, args = { m } })
  end)
  collected("a queue with a series that has beaten", function(m)
    local q = queue.new(); q:every(1e6, function() return q, m end, { payload = m, delay_ms = 0 }); q:poll()
  end)
  local kept = queue.new()
  collected("a series that was cancelled, with its args and payload", function(m)
    kept:every(1e6, function() return m end, { id = "s", args = { m }, payload = m, delay_ms = 0 }); kept:poll()
    kept:cancel("s")
  end)
  collected("a series that was cancelled in flight", function(m)
    kept:every(1e6, function() kept:cancel("s"); return m end, { id = "s", args = { m }, payload = m, delay_ms = 0 })
    kept:poll()
  end)
  collected("a series that was refused", function(m)
    kept:push(noop, { id = "u" }); kept:every(1, function() return m end, { id = "u", unique = true, payload = m })
    kept:clear()
  end)

  it("never, a series that goes on: each beat finds its args", function()
    local q, sum = queue.new(), 0
    beats(q, 0.5, 30, function(_, x) sum = sum + x[1]; H.collect() end, { args = { { 2 } }, payload = {} })
    eq(q:run(), 30); eq(sum, 60)
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local arg, option, q = J.arg, function(key, extra) return J.option(key, "every", extra) end, nil

  it("every on what is no queue", function() J.wrong_self("every") end)

  for _, case in ipairs{
    { "of nothing", arg(1, "every", "number expected, got no value"), function() q:every() end },
    { "of a function first", arg(1, "every", "number expected, got function"), function() q:every(noop, 5) end },
    { "of text", arg(1, "every", "number expected, got string"), function() q:every("x", noop) end },
    { "of nil", arg(1, "every", "number expected, got nil"), function() q:every(nil, noop) end },
    { "NaN", arg(1, "every"), function() q:every(0 / 0, noop) end },
    { "0", arg(1, "every", "interval must be > 0.*"), function() q:every(0, noop) end },
    { "-0.0", arg(1, "every", "interval must be > 0.*"), function() q:every(-0.0, noop) end },
    { "less than nothing", arg(1, "every", "interval must be > 0.*"), function() q:every(-5, noop) end },
    { "less than nothing without end", arg(1, "every", "interval must be > 0.*"), function() q:every(-huge, noop) end },
    { "of no function", arg(2, "every", "function expected, got no value"), function() q:every(5) end },
    { "of a string to call", arg(2, "every", "function expected, got string"), function() q:every(5, "x") end },
    { "of a plain table to call", arg(2, "every", "function expected, got table"), function() q:every(5, {}) end },
    { "options a number", arg(3, "every", "table expected, got number"), function() q:every(5, noop, 3) end },
    { "options false", arg(3, "every", "table expected, got boolean"), function() q:every(5, noop, false) end },
    { "id a number", option("id", "string expected, got number"), function() q:every(5, noop, { id = 5 }) end },
    { "priority 1.5", option("priority", "integer expected, got 1%.5"),
      function() q:every(5, noop, { priority = 1.5 }) end },
    { "delay_ms text", option("delay_ms", "number expected, got string"),
      function() q:every(5, noop, { delay_ms = "x" }) end },
    { "delay_ms NaN", option("delay_ms"), function() q:every(5, noop, { delay_ms = 0 / 0 }) end },
    { "retries negative", option("retries"), function() q:every(5, noop, { retries = -1 }) end },
    { "backoff_ms a table", option("backoff_ms", ".*got table"), function() q:every(5, noop, { backoff_ms = {} }) end },
    { "timeout_ms NaN", option("timeout_ms"), function() q:every(5, noop, { timeout_ms = 0 / 0 }) end },
    { "args a number", option("args", "table expected, got number"), function() q:every(5, noop, { args = 5 }) end },
    { "unique a number", option("unique", "boolean expected, got number"),
      function() q:every(5, noop, { unique = 1 }) end },
    { "a typo", "retrys.*'every'", function() q:every(5, noop, { retrys = 1 }) end },
    { "an array", "'every'", function() q:every(5, noop, { 5 }) end },
  } do
    it("every, " .. case[1], function()
      q = queue.new(); H.raises(case[2], case[3]); J.untouched(q)
    end)
  end
end)
