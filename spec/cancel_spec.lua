--- Jobs by their id: cancel, status, unique, set_priority, and the list of what is alive.
local H = require("spec.helper")
local G = require("spec.go_helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, noop = H.queue, H.eq, H.ok, H.list, H.noop
local fail, ids, row = J.fail, J.ids, J.row
local _, _, collected = G.its(function() return it, pending end)

-- What may be an id: any string, each another one.
local odd = { "", "\0", "a", "A", "a\0b", "a\0c", "a\0", " ", "\n", "job-", "job-01", "id = 5", "5", "%s", "\195\169",
  "e\204\129", "\227\129\130", "\255\254", ("x"):rep(100000), ("x"):rep(100000) .. "y", "y" .. ("x"):rep(100000) }

describe("cancel", function()
  it("removes what is pending of that id: ready, delayed, a parked retry", function()
    local q = queue.new(); local l, note = H.log()
    q:push(noop, { id = "a" }); q:push(noop, { id = "a", delay_ms = 1e6 }); q:push(note("b"), { id = "b" })
    q:push(fail, { id = "a", retries = 1, backoff_ms = 1e6, priority = 1 })
    eq(q:poll(1), 1); eq(q:size(), 4)
    eq(q:cancel("a"), 3); eq(q:cancel("a"), 0); eq(q:size(), 1); list(ids(q), "b")
    eq(q:run(), 1); list(l, "b")
    local m = H.conserved(q); eq(m.cancelled, 3); eq(m.failed, 0); eq(m.retried, 1); eq(m.dropped, 0)
  end)

  it("of an id that nobody has is 0, and touches nobody", function()
    local q = queue.new(); q:push(noop, { id = "ab" })
    for _, id in ipairs{ "a", "abc", "AB", "", "ab\0", "job-1" } do eq(q:cancel(id), 0) end
    eq(q:run(), 1); eq(q:cancel("ab"), 0, "when it is done"); eq(H.conserved(q).cancelled, 0)
  end)

  it("keeps a job from running that is due", function()
    for _, n in ipairs(J.widths) do
      for _, method in ipairs{ "run", "poll" } do
        local q = queue.new{ concurrency = n }; local l, note = H.log(); local count
        q:push(function() count = q:cancel("b") end, { id = "a" }); q:push(note("b"), { id = "b" }); q:push(note("c"))
        eq(q[method](q), 2); list(l, "c"); eq(count, 1); eq(H.conserved(q).cancelled, 1)
      end
    end
  end)

  it("in a job leaves the poll its turns", function()
    local q = queue.new(); local l, note = H.log()
    q:push(function() eq(q:cancel("b"), 2) end)
    for _, id in ipairs{ "b", "c", "b", "d", "e" } do q:push(note(id), { id = id }) end
    eq(q:poll(3), 3); list(l, "c d"); eq(q:size(), 1)
  end)

  it("does not touch a running job: 0, and its retries come", function()
    for _, n in ipairs(J.widths) do
      local q, got = queue.new{ concurrency = n }, {}
      q:push(function() got[#got + 1] = q:cancel("r"); if #got < 3 then error("x") end end, { id = "r", retries = 5 })
      eq(q:run(), 3); list(got, "0 0 0"); local m = H.conserved(q); eq(m.succeeded, 1); eq(m.cancelled, 0)
    end
  end)

  it("takes the twins of a running job, and lets it run on", function()
    local q, n = queue.new(), 0
    q:push(function() eq(q:cancel("t"), 2); eq(q:status("t"), "running"); n = n + 1 end, { id = "t" })
    q:push(function() n = n + 100 end, { id = "t" }); q:push(function() n = n + 100 end, { id = "t", delay_ms = 1 })
    eq(q:run(), 1); eq(n, 1); eq(H.conserved(q).failed, 0)
  end)

  it("does not touch a job that is parked in flight", function()
    local q, seen = G.crew(2); local ch, got = queue.channel(), nil
    q:push(function() got = ch:receive() end, { id = "p" }); q:poll()
    eq(q:status("p"), "running"); eq(q:cancel("p"), 0); eq(q:in_flight(), 1)
    ok(ch:try_send("v")); eq(q:run(), 1); eq(got, "v"); eq(#seen, 0)
  end)

  it("does not touch the job that waits for a nested run", function()
    local q, got = queue.new(), nil
    q:push(function() q:run() end, { id = "outer" }); q:push(function() got = q:cancel("outer") end)
    q:run(); eq(got, 0); eq(H.conserved(q).succeeded, 2)
  end)

  it("makes room in a bounded queue, and lets run return", function()
    local q = queue.new{ capacity = 1 }
    q:push(noop, { id = "a", delay_ms = 1e7 }); eq((q:push(noop)), nil)
    eq(q:cancel("a"), 1); eq(q:next_due(), nil); eq(q:run(), 0); ok(q:push(noop)); H.conserved(q, { refused = 1 })
  end)

  it("works on a stopped queue", function()
    local q = queue.new(); q:push(noop, { id = "a" }); q:push(noop); q:stop()
    eq(q:cancel("a"), 1); eq(q:size(), 1); H.conserved(q)
  end)

  it("knows made-up ids, and takes a given one of the same text along", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("given"), { id = "job-3" })
    for i = 1, 4 do eq(q:push(note(i)), "job-" .. i) end
    eq(q:status("job-3"), "ready"); eq(q:cancel("job-3"), 2); eq(q:status("job-3"), nil); eq(q:cancel("job-4"), 1)
    eq(q:run(), 2); list(l, "1 2"); eq(q:push(noop), "job-5"); eq(H.conserved(q).cancelled, 3)
  end)

  it("tells a given job-3 from a made-up one that is done", function()
    local q = queue.new()
    for _ = 1, 3 do q:push(noop) end
    eq(q:run(), 3); q:push(noop, { id = "job-3" })
    eq(q:cancel("job-03"), 0); eq(q:cancel("job-3\0"), 0); eq(q:cancel("job-3"), 1)
  end)

  it("takes any string for an id", function()
    local q = queue.new()
    for _, id in ipairs(odd) do eq(q:push(noop, { id = id }), id) end
    for i, id in ipairs(odd) do
      eq(q:status(id), "ready"); eq(q:set_priority(id, -i), 1)
      eq(q:cancel(id), 1, ("%q"):format(id:sub(1, 20))); eq(q:cancel(id), 0); eq(q:size(), #odd - i)
    end
    H.conserved(q)
  end)

  it("and what is left runs in its order, whatever was cancelled", function()
    local q, want, got = queue.new(), {}, {}
    for i = 1, 3000 do
      local p, id = math.random(-3, 3), "id " .. math.random(500)
      want[i] = { p = p, i = i, id = id }
      q:push(function() got[#got + 1] = i end, { priority = p, id = id })
    end
    for _ = 1, 200 do
      local id, n = "id " .. math.random(500), 0
      for i = #want, 1, -1 do if want[i].id == id then table.remove(want, i); n = n + 1 end end
      eq(q:cancel(id), n, id)
    end
    table.sort(want, function(a, b) if a.p ~= b.p then return a.p > b.p end return a.i < b.i end)
    eq(q:run(), #want)
    for i, w in ipairs(want) do eq(got[i], w.i, "place " .. i) end
    H.conserved(q)
  end)

  it("by a finalizer, in the middle of pushes and runs, loses no job", function()
    local q, pushed, ran, cancelled = queue.new(), 0, 0, 0
    local function job() ran = ran + 1 end
    for i = 1, H.count(3000) do
      H.finalizer(function() cancelled = cancelled + q:cancel("x") end)
      q:push(job, { id = "x", payload = {}, priority = i % 3 }); pushed = pushed + 1
      q:push(job, { id = "y", args = { {} } }); pushed = pushed + 1
      if i % 20 == 0 then q:poll(7) end
      if i % 100 == 0 then collectgarbage() end
    end
    H.collect(); q:run(); eq(q:size(), 0)
    eq(ran + cancelled, pushed); ok(cancelled > 0); eq(H.conserved(q).cancelled, cancelled)
  end)

  it("is quick among a million, and so are status and set_priority", function()
    local q, n = queue.new(), H.slow > 1 and 20000 or 1000000
    local delayed = { delay_ms = 1e9 }
    for i = 1, n do q:push(noop, i % 2 == 0 and delayed or nil) end
    eq(q:size(), n)
    local names, gone = {}, 0
    for i = 1, 1000 do names[i] = "job-" .. math.random(n) end
    local moved = H.timed(function()
      for i = 1, 1000 do q:status(names[i]); eq(q:set_priority(names[i], i % 7), 1) end
    end)
    local t = H.timed(function() for i = 1, 1000 do gone = gone + q:cancel(names[i]) end end)
    H.between(t, 0, H.patience(500), "ms for 1,000 cancels"); H.between(moved, 0, H.patience(500), "ms for 1,000 moves")
    ok(gone > 0); eq(q:size(), n - gone); eq(q:clear(), n - gone); H.conserved(q, { cleared = n - gone })
  end)
end)

describe("is let go at once, though others are pending:", function()
  local q = queue.new()
  for _ = 1, 10 do q:push(noop, { priority = 5 }); q:push(noop, { delay_ms = 1e8 }) end

  collected("a cancelled job, with its args and payload", function(m)
    q:push(function() return m end, { id = "x", args = { m }, payload = m, backoff_ms = function() return m end })
    eq(q:cancel("x"), 1)
  end)
  collected("a cancelled delayed job", function(m)
    q:push(function() return m end, { id = "x", delay_ms = 1e9, args = { m }, payload = m }); eq(q:cancel("x"), 1)
  end)
  collected("a cancelled retry, with what it threw", function(m)
    local other = queue.new(); m.other = other
    other:push(noop, { delay_ms = 1e8 })
    other:push(function() error(m) end, { id = "x", retries = 1, backoff_ms = 1e9 }); other:poll()
    eq(other:cancel("x"), 1)
  end)
  collected("a job that was refused as a duplicate", function(m)
    q:push(noop, { id = "twin" })
    q:push(function() return m end, { id = "twin", unique = true, payload = m, args = { m } })
    q:cancel("twin")
  end)
  collected("what jobs() has shown of a job that is cancelled", function(m)
    q:push(noop, { id = "x", payload = m }); eq(row(q, "x").payload, m); eq(q:cancel("x"), 1)
  end)
end)

describe("status", function()
  it("is ready, delayed, running, or nil", function()
    local q, seen = queue.new(), nil
    eq(q:status("j"), nil)
    q:push(function() seen = q:status("j") end, { id = "j", delay_ms = 15 }); eq(q:status("j"), "delayed")
    queue.sleep(20); eq(q:status("j"), "ready", "due, though nobody has looked"); eq(q:poll(), 1)
    eq(seen, "running"); eq(q:status("j"), nil)
    q:push(noop, { id = "j" }); eq(q:status("j"), "ready"); q:stop(); eq(q:status("j"), "ready"); q:clear()
    eq(q:status("j"), nil)
  end)

  it("of several of an id: running before ready before delayed", function()
    local q, seen = queue.new(), {}
    q:push(noop, { id = "s", delay_ms = 1e6 }); eq(q:status("s"), "delayed")
    q:push(function() seen[#seen + 1] = q:status("s") end, { id = "s", priority = 1 }); q:push(noop, { id = "s" })
    eq(q:status("s"), "ready"); q:poll(1); eq(q:status("s"), "ready"); q:poll(1); eq(q:status("s"), "delayed")
    list(seen, "running")
  end)

  it("of a retry is delayed till its time, and ready without a backoff", function()
    local q = queue.new()
    q:push(fail, { id = "p", retries = 2, backoff_ms = function(n) return n == 1 and 0 or 1e6 end })
    q:poll(1); eq(q:status("p"), "ready"); q:poll(1); eq(q:status("p"), "delayed")
  end)

  it("of what waits for ever is delayed, of what is late to start is ready", function()
    local q = queue.new()
    q:push(noop, { id = "a", delay_ms = math.huge }); q:push(noop, { id = "b", timeout_ms = 1e-3 })
    queue.sleep(1); eq(q:status("a"), "delayed"); eq(q:status("b"), "ready"); q:poll(); eq(q:status("b"), nil)
  end)

  it("is running through waits and nested runs", function()
    local q, ch = G.crew(2), queue.channel()
    q:push(function() ch:receive() end, { id = "w" }); q:poll(); eq(q:status("w"), "running")
    ch:close(); q:poll(); eq(q:status("w"), nil)
    local p, seen = queue.new(), {}
    p:push(function() p:run() end, { id = "o" })
    p:push(function() seen[1] = p:status("o"); seen[2] = p:status("i") end, { id = "i" })
    p:run(); list(seen, "running running")
  end)
end)

describe("unique", function()
  local function refused(q, id) H.results(H.pack(q:push(noop, { id = id, unique = true })), nil, "duplicate id") end

  it("refuses while a job of that id is pending or running, and only then", function()
    for _, n in ipairs(J.widths) do
      local q, inside = queue.new{ concurrency = n }, nil
      local function job() inside = H.pack(q:push(noop, { id = "u", unique = true })) end
      eq(q:push(job, { id = "u", unique = true }), "u"); refused(q, "u"); eq(q:run(), 1)
      H.results(inside, nil, "duplicate id"); eq(q:push(noop, { id = "u", unique = true }), "u")
      H.conserved(q, { refused = 2 })
    end
  end)

  it("asks for any job of that id: delayed, parked, in flight, not unique itself", function()
    local q, ch = G.crew(2), queue.channel()
    q:push(noop, { id = "d", delay_ms = 1e6 }); refused(q, "d")
    q:push(function() error("x") end, { id = "p", retries = 1, backoff_ms = 1e6 }); q:poll(); refused(q, "p")
    q:push(function() ch:receive() end, { id = "f" }); q:poll(); refused(q, "f")
    ch:close(); q:poll(); eq(q:push(noop, { id = "f", unique = true }), "f"); H.conserved(q, { refused = 3 })
  end)

  it("is asked of the new job alone: a twin that does not ask is taken", function()
    local q = queue.new()
    q:push(noop, { id = "u", unique = true }); eq(q:push(noop, { id = "u" }), "u")
    eq(q:push(noop, { id = "u", unique = false }), "u"); eq(q:size(), 3); refused(q, "u"); eq(q:run(), 3)
  end)

  it("lets the id go with the last job that has it: cancelled, cleared, shed, failed", function()
    local q = queue.new{ keep_failed = 5 }
    local function free() eq(q:push(fail, { id = "u", unique = true, timeout_ms = 1e6 }), "u") end
    free(); q:cancel("u"); free(); q:clear(); free(); eq(q:run(), 1); eq(#q:failed(), 1); free(); q:clear()
    q:push(noop, { id = "u", timeout_ms = 1e-3 }); queue.sleep(1); refused(q, "u"); eq(q:poll(), 0); free()
    q:push(noop, { id = "u", priority = 1 }); q:poll(1); refused(q, "u")
  end)

  it("comes after stopped and before full among the reasons", function()
    local q = queue.new{ capacity = 1 }; q:push(noop, { id = "u" }); refused(q, "u")
    H.results(H.pack(q:push(noop, { id = "v", unique = true })), nil, "queue is full")
    q:stop(); H.results(H.pack(q:push(noop, { id = "u", unique = true })), nil, "queue is stopped")
    H.conserved(q, { refused = 3 })
  end)

  it("refused uses up no made-up id", function()
    local q = queue.new(); q:push(noop, { id = "u" }); refused(q, "u"); eq(q:push(noop, { unique = true }), "job-1")
    refused(q, "job-1"); eq(q:push(noop, { unique = true }), "job-2")
  end)
end)

describe("an id in its job's callbacks", function()
  for _, n in ipairs(J.widths) do
    it("is free when the job is done, and taken when it is to be retried; concurrency " .. n, function()
      local l, q = {}, nil
      local function look(word, info)
        if info.payload then return end
        local id = q:push(noop, { id = info.id, unique = true, payload = "second" })
        l[#l + 1] = ("%s:%s:%s"):format(word, tostring(id), q:status(info.id))
        if id then eq(q:cancel(id), 1) end
      end
      q = queue.new{ concurrency = n, on_error = function(_, info) look("error", info) end,
        on_retry = function(_, info) look("retry", info) end, on_success = function(info) look("success", info) end }
      q:push(noop, { id = "s" }); q:push(fail, { id = "f", retries = 1 }); q:push(noop, { id = "e", timeout_ms = 1e-3 })
      q:push(fail, { id = "p", priority = -1, retries = 1, backoff_ms = H.patience(20) })
      queue.sleep(1); q:run()
      list(l, "success:s:ready retry:nil:ready error:e:ready error:f:ready retry:nil:delayed error:p:ready")
    end)
  end

  it("has no status left when the job is done", function()
    local l, q = {}, nil
    local function look(info) l[#l + 1] = tostring(q:status(info.id)) .. q:in_flight() end
    q = queue.new{ on_success = look, on_error = function(_, info) look(info) end }
    q:push(noop); q:push(fail); q:run(); list(l, "nil0 nil0")
  end)
end)

describe("set_priority", function()
  local function four()
    local q, l = queue.new(), {}
    for i, p in ipairs{ 0, 0, 1, 1 } do
      local id = ("abcd"):sub(i, i)
      q:push(function() l[#l + 1] = id end, { id = id, priority = p })
    end
    return q, l
  end

  it("moves a job to the place of its push among its new equals", function()
    local q, l = four()
    eq(q:set_priority("a", 1), 1); list(ids(q), "a c d b"); eq(q:set_priority("d", 0), 1); list(ids(q), "a c b d")
    eq(row(q, "a").priority, 1); eq(row(q, "d").priority, 0); eq(q:run(), 4); list(l, "a c b d")
  end)

  it("there and back changes nothing", function()
    local q, l = four()
    for _, id in ipairs{ "b", "a", "d", "c" } do eq(q:set_priority(id, 9), 1) end
    list(ids(q), "a b c d")
    for id, p in pairs{ a = 0, b = 0, c = 1, d = 1 } do q:set_priority(id, p); q:set_priority(id, p) end
    q:run(); list(l, "c d a b")
  end)

  it("moves all of an id, and says how many: 0 for none, and for a running one", function()
    local q = queue.new(); local l, note = H.log()
    for i = 1, 3 do q:push(note("x" .. i), { id = "x" }); q:push(note("y" .. i), { id = "y" }) end
    q:push(function() l[#l + 1] = q:set_priority("run", 5) end, { id = "run", priority = -1 })
    eq(q:set_priority("z", 1), 0); eq(q:set_priority("y", 1), 3); eq(q:run(), 7)
    list(l, "y1 y2 y3 x1 x2 x3 0"); eq(q:set_priority("y", 1), 0)
  end)

  it("moves delayed jobs", function()
    local q = queue.new(); local l, note = H.log()
    for _, id in ipairs{ "a", "b", "c" } do q:push(note(id), { id = id, delay_ms = 15 }) end
    eq(q:set_priority("b", 2), 1); eq(q:set_priority("a", -2), 1); eq(q:status("b"), "delayed")
    eq(q:poll(), 0); queue.sleep(20); eq(q:run(), 3); list(l, "b c a")
  end)

  it("moves a parked retry, which keeps its place at the back among equals", function()
    local q = queue.new(); local l, note = H.log()
    local function job() l[#l + 1] = "r"; error("x") end
    q:push(job, { id = "r", retries = 1, backoff_ms = 10 }); q:poll(); q:push(note("p"), { id = "p" })
    q:push(job, { id = "s", retries = 1, backoff_ms = 10, priority = 1 }); q:poll(1)
    eq(q:set_priority("s", 0), 1); eq(q:set_priority("r", 3), 1); eq(q:set_priority("r", 0), 1)
    eq(q:set_priority("p", -1), 1); eq(row(q, "s").status, "delayed"); queue.sleep(15)
    list(ids(q), "r s p"); eq(q:run(), 3); list(l, "r r r r p")
  end)

  it("stays with the job: in its retries, and in what the callbacks are told", function()
    local q, seen = J.watched(); q:push(fail, { id = "j", retries = 1, backoff_ms = 1, priority = 2 })
    eq(q:set_priority("j", 7), 1); eq(q:poll(), 1); eq(row(q, "j").priority, 7); eq(q:set_priority("j", -7), 1); q:run()
    eq(seen[1].info.priority, 7); eq(seen[2].info.priority, -7)
  end)

  it("in a job is heeded by what starts next", function()
    for _, n in ipairs(J.widths) do
      local q = queue.new{ concurrency = n }; local l, note = H.log()
      q:push(function() q:set_priority("c", 1) end); q:push(note("b")); q:push(note("c"), { id = "c" })
      eq(q:run(), 3); list(l, "c b")
    end
  end)

  it("takes integral floats, and the whole range of integers", function()
    local q = four()
    local least, most = -2 ^ 53, 2 ^ 53
    if H.integers then least, most = math.mininteger, math.maxinteger end
    q:set_priority("a", least); q:set_priority("b", most); q:set_priority("c", 3.0); q:set_priority("d", most - 1)
    list(ids(q), "b d c a"); eq(row(q, "b").priority, most); eq(row(q, "a").priority, least)
    if H.integers then eq(math.type(row(q, "c").priority), "integer") end
  end)

  it("works on a stopped queue, and counts nothing", function()
    local q = four(); q:stop(); eq(q:set_priority("b", 9), 1); list(ids(q), "b c d a"); eq(H.conserved(q).enqueued, 4)
  end)
end)

describe("jobs", function()
  it("of a queue without any is an empty table, a new one each time", function()
    local q = queue.new(); eq(type(q:jobs()), "table"); eq(next(q:jobs()), nil); ok(q:jobs() ~= q:jobs())
    q:push(noop); q:run(); eq(next(q:jobs()), nil); q:push(noop); q:clear(); eq(next(q:jobs()), nil)
  end)

  it("shows ready jobs as they would start, then delayed ones by due time", function()
    local q = queue.new()
    q:push(noop, { id = "late", delay_ms = 3e6, priority = 9 }); q:push(noop, { id = "low", priority = -1 })
    q:push(noop, { id = "soon", delay_ms = 1e6 }); q:push(noop, { id = "a" })
    q:push(noop, { id = "high", priority = 5 }); q:push(noop, { id = "never", delay_ms = math.huge })
    q:push(noop, { id = "b" }); q:push(noop, { id = "mid", delay_ms = 2e6 })
    list(ids(q), "high a b low soon mid late never")
    queue.sleep(1); list(ids(q), "high a b low soon mid late never", "once more")
  end)

  it("shows a job whose time has come among the ready ones, by the place of its push", function()
    local q = queue.new()
    q:push(noop, { id = "one", delay_ms = 8 }); q:push(noop, { id = "two", delay_ms = 2 })
    q:push(noop, { id = "three" }); queue.sleep(12); list(ids(q), "one two three"); eq(row(q, "one").status, "ready")
    eq(row(q, "one").due_ms, 0)
  end)

  it("tells of each: id, status, priority, attempts, due_ms, payload", function()
    local q, thing = queue.new(), {}
    q:push(noop, { id = "r", priority = 3, payload = thing })
    q:push(noop, { id = "d", delay_ms = 5000, payload = false })
    q:push(noop, { id = "n", delay_ms = math.huge })
    local rows = q:jobs(); eq(#rows, 3)
    local r, d, n = rows[1], rows[2], rows[3]
    eq(r.id, "r"); eq(r.status, "ready"); eq(r.priority, 3); eq(r.attempts, 0); eq(r.due_ms, 0); eq(r.running_ms, nil)
    eq(r.payload, thing); eq(d.status, "delayed"); eq(d.priority, 0); eq(d.payload, false); eq(d.running_ms, nil)
    H.between(d.due_ms, 5000 - H.patience(2000), 5000, "due_ms"); eq(n.due_ms, math.huge); eq(n.payload, nil)
    if H.integers then eq(math.type(r.attempts), "integer"); eq(math.type(r.priority), "integer") end
  end)

  it("counts the attempts, the running one included", function()
    local q, seen = queue.new(), {}
    q:push(function() seen[#seen + 1] = row(q, "j").attempts; fail() end, { id = "j", retries = 2, backoff_ms = 1 })
    for _ = 1, 3 do
      local before = row(q, "j").attempts
      eq(before, #seen); ok(H.wait_for(2000, function() return q:poll() == 1 end))
    end
    list(seen, "1 2 3"); eq(row(q, "j"), nil)
  end)

  it("shows those in flight first, in start order", function()
    local q, ch = G.crew(3), queue.channel()
    for i, id in ipairs{ "a", "b", "c", "d", "e" } do
      q:push(function() ch:receive() end, { id = id, priority = i == 4 and 9 or 0, payload = i })
    end
    q:push(noop, { id = "later", delay_ms = 1e6 })
    q:poll(); queue.sleep(5); list(ids(q), "d a b c e later")
    local rows = q:jobs()
    for i = 1, 3 do
      local r = rows[i]
      eq(r.status, "running"); eq(r.attempts, 1); eq(r.due_ms, nil)
      H.between(r.running_ms, 5, H.patience(5000), "running_ms")
      ok(i == 1 or r.running_ms <= rows[i - 1].running_ms, "the first has run the longest")
    end
    eq(rows[1].payload, 4); eq(rows[4].status, "ready"); eq(rows[4].running_ms, nil); eq(rows[6].status, "delayed")
    ok(ch:try_send(1)); q:poll(); list(ids(q), "a b c e later", "the next has started")
    eq(row(q, "c").status, "running")
    eq(q:cancel("later"), 1); ch:close(); q:run(); eq(#q:jobs(), 0); G.fine(q)
  end)

  it("in a job shows it, and those around it", function()
    local q, l = queue.new(), nil
    q:push(function() q:run() end, { id = "outer", priority = -1 })
    q:push(function()
      l = ids(q); local r = row(q, "inner"); eq(r.status, "running"); H.between(r.running_ms, 0, H.patience(5000))
      ok(row(q, "outer").running_ms >= r.running_ms)
    end, { id = "inner", priority = -2 })
    q:push(noop, { id = "rest", priority = -3 })
    q:run(); list(l, "outer inner rest"); eq(H.conserved(q).failed, 0)
  end)

  it("in a retry shows the same job once", function()
    local q, l = queue.new(), {}
    q:push(function() l[#l + 1] = table.concat(ids(q), "+"); fail() end, { id = "j", retries = 1 })
    q:run(); list(l, "j j")
  end)

  it("is a look: what is written into it changes nothing, and it stays as it was", function()
    local q = queue.new(); q:push(noop, { id = "j", priority = 1 }); q:push(noop, { id = "k" })
    local rows = q:jobs(); rows[1].id = "x"; rows[1].priority = -5; rows[2] = nil
    list(ids(q), "j k"); eq(row(q, "j").priority, 1)
    local kept = q:jobs(); q:run(); eq(#kept, 2); eq(kept[1].status, "ready")
  end)

  it("agrees with size, in_flight and status, at any time", function()
    local q, ch = G.crew(2), queue.channel()
    local function agree()
      local flying, rows = 0, q:jobs()
      for _, r in ipairs(rows) do
        local now = q:status(r.id)
        if r.status == "running" then flying = flying + 1 end
        -- What was delayed may have become due meanwhile.
        ok(now == r.status or r.status == "delayed" and now == "ready", r.id)
      end
      eq(flying, q:in_flight()); eq(#rows, q:size() + q:in_flight())
    end
    for i = 1, 30 do
      local function job() agree(); if i % 3 == 0 then ch:receive(0.5) end agree() end
      q:push(job, { delay_ms = i % 4, priority = i % 5 }); agree()
    end
    while q:size() + q:in_flight() > 0 do q:poll(3); agree() end
    G.fine(q)
  end)

  it("stands finalizers that push, cancel and run meanwhile", function()
    local q, pushed, ran, cancelled = queue.new(), 0, 0, 0
    local function job() ran = ran + 1 end
    local function meddle()
      q:push(job, { id = "m" }); pushed = pushed + 1
      if pushed % 3 == 0 then cancelled = cancelled + q:cancel("m") else q:poll(1) end
    end
    for i = 1, H.count(300) do
      for _ = 1, 5 do q:push(job, { id = "j" .. i, payload = {} }); pushed = pushed + 1 end
      H.finalizer(meddle)
      if i % 10 == 0 then collectgarbage() end
      for k, r in ipairs(q:jobs()) do
        ok(type(r.id) == "string" and r.status and r.attempts <= 1 and r.priority, "row " .. k .. " is torn")
      end
      q:poll(5)
    end
    H.collect(); H.collect(); q:run(); eq(ran + cancelled, pushed); H.conserved(q)
  end)

  it("of many is in order, and quick", function()
    local q, n = queue.new(), H.count(20000)
    for i = 1, n do q:push(noop, { priority = i % 100, delay_ms = i % 2 == 0 and 1e6 + i or nil }) end
    local t, r = H.timed(function() return q:jobs() end)
    H.between(t, 0, H.patience(2000)); local rows = r[1]; eq(#rows, n)
    for i = 2, n do
      local a, b = rows[i - 1], rows[i]
      if a.status ~= b.status then ok(a.status == "ready" and b.status == "delayed", "row " .. i)
      elseif a.status == "ready" then ok(a.priority >= b.priority, "row " .. i)
      else ok(a.due_ms <= b.due_ms, "row " .. i) end
    end
  end)
end)

describe("a plain list of jobs", function()
  local function program(pick)
    local q, jobs, seq, cancelled = queue.new(), {}, 0, 0
    local ran
    local function id() return "id " .. pick(6) end
    local function of(name)
      local n, ready = 0, false
      for _, job in ipairs(jobs) do if job.id == name then n = n + 1; ready = ready or not job.far end end
      return n, ready
    end
    local function before(a, b)
      if a.far ~= b.far then return b.far end
      if a.far then return a.due < b.due end
      if a.p ~= b.p then return a.p > b.p end
      return a.seq < b.seq
    end
    for _ = 1, 60 do
      local what, name = pick(10), id()
      if what <= 4 then
        local far, fails, unique = pick(4) == 1, pick(3) - 1, pick(3) == 1
        seq = seq + 1
        local job = { id = name, p = pick(3), seq = seq, far = far, due = 1e8 * (seq + 1), fails = fails, tried = 0 }
        local got, why = q:push(function() ran = job; if job.tried < job.fails then error("x") end end, {
          id = name, unique = unique, priority = job.p, retries = 9, delay_ms = far and job.due or nil })
        if unique and of(name) > 0 then eq(got, nil); eq(why, "duplicate id")
        else eq(got, name); jobs[#jobs + 1] = job end
      elseif what <= 6 then
        local n = of(name); eq(q:cancel(name), n, "cancel"); cancelled = cancelled + n
        for i = #jobs, 1, -1 do if jobs[i].id == name then table.remove(jobs, i) end end
      elseif what <= 8 then
        local p = pick(3); eq(q:set_priority(name, p), (of(name)), "set_priority")
        for _, job in ipairs(jobs) do if job.id == name then job.p = p end end
      else
        local job = jobs[1]
        ran = nil
        if job and not job.far then
          table.remove(jobs, 1); eq(q:poll(1), 1); eq(ran, job, "the job that ran")
          job.tried = job.tried + 1
          if job.tried <= job.fails then seq = seq + 1; job.seq = seq; jobs[#jobs + 1] = job end
        else eq(q:poll(1), 0) end
      end
      table.sort(jobs, before)
      local rows = q:jobs()
      eq(#rows, #jobs, "rows"); eq(q:size(), #jobs)
      for i, job in ipairs(jobs) do
        eq(rows[i].id, job.id, "row " .. i); eq(rows[i].priority, job.p); eq(rows[i].attempts, job.tried)
      end
      local n, ready = of(name)
      eq(q:status(name), n > 0 and (ready and "ready" or "delayed") or nil, "status")
      eq(q:metrics().cancelled, cancelled)
    end
  end

  it("does the same", function()
    H.for_seeds(300, program)
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local arg, option, nan = J.arg, J.option, 0 / 0
  local q

  for _, name in ipairs{ "cancel", "status", "set_priority", "jobs" } do
    it(name .. " on what is no queue", function() J.wrong_self(name) end)
  end

  for _, case in ipairs{
    { "cancel of a number", arg(1, "cancel", "string expected, got number"), function() q:cancel(5) end },
    { "cancel of nothing", arg(1, "cancel", "string expected, got no value"), function() q:cancel() end },
    { "cancel of nil", arg(1, "cancel", "string expected, got nil"), function() q:cancel(nil) end },
    { "cancel of a table", arg(1, "cancel", "string expected, got table"), function() q:cancel({}) end },
    { "cancel of a queue", arg(1, "cancel", "string expected, got queue"), function() q:cancel(q) end },
    { "status of a number", arg(1, "status", "string expected, got number"), function() q:status(5) end },
    { "status of nothing", arg(1, "status", "string expected, got no value"), function() q:status() end },
    { "status of false", arg(1, "status", "string expected, got boolean"), function() q:status(false) end },
    { "set_priority of a number", arg(1, "set_priority", "string expected, got number"),
      function() q:set_priority(5, 5) end },
    { "set_priority of nothing", arg(1, "set_priority", "string expected, got no value"),
      function() q:set_priority() end },
    { "set_priority to nothing", arg(2, "set_priority", ".*got no value"), function() q:set_priority("x") end },
    { "set_priority to nil", arg(2, "set_priority", ".*got nil"), function() q:set_priority("x", nil) end },
    { "set_priority to text", arg(2, "set_priority", ".*got string"), function() q:set_priority("x", "high") end },
    { "set_priority to a digit", arg(2, "set_priority", ".*got string"), function() q:set_priority("x", "5") end },
    { "set_priority to 1.5", arg(2, "set_priority"), function() q:set_priority("x", 1.5) end },
    { "set_priority to NaN", arg(2, "set_priority"), function() q:set_priority("x", nan) end },
    { "set_priority without end", arg(2, "set_priority"), function() q:set_priority("x", math.huge) end },
    { "unique a number", option("unique", "push", "boolean expected, got number"),
      function() q:push(noop, { unique = 1 }) end },
    { "unique a string", option("unique", "push", "boolean expected, got string"),
      function() q:push(noop, { unique = "x" }) end },
    { "unique a table", option("unique", "push", "boolean expected, got table"),
      function() q:push(noop, { unique = {} }) end },
  } do
    it(case[1], function()
      q = queue.new(); H.raises(case[2], case[3]); J.untouched(q)
    end)
  end

  it("set_priority to what is no integer leaves the job where it is", function()
    local p = queue.new(); p:push(noop, { id = "x", priority = 4 })
    for _, bad in ipairs{ 1.5, nan, math.huge, "5", {}, true } do eq(pcall(p.set_priority, p, "x", bad), false) end
    eq(row(p, "x").priority, 4)
  end)
end)
