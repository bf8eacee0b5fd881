--- Failed jobs that are kept: which ones, what is shown of them, and how one is tried again.
local H = require("spec.helper")
local G = require("spec.go_helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, has, noop = H.queue, H.eq, H.ok, H.list, H.has, H.noop
local fail = J.fail
local _, _, collected = G.its(function() return it, pending end)

--- The ids of the jobs that are kept, oldest first.
local function kept(q) return J.ids(q, q:failed()) end

--- Jobs that fail, one for each id.
local function fails(q, ...)
  for i = 1, select("#", ...) do q:push(fail, { id = (select(i, ...)) }) end
  q:run()
end

--- Calls `fn` on a stack of its own, where a traceback is short and soon made.
local function shallow(fn) coroutine.wrap(fn)() end

describe("keep_failed", function()
  it("absent or 0 keeps none", function()
    for _, q in ipairs{ queue.new(), queue.new{}, queue.new{ keep_failed = 0 } } do
      fails(q, "a", "b"); eq(type(q:failed()), "table"); eq(next(q:failed()), nil); eq(q:metrics().failed, 2)
      H.results(H.pack(q:retry("a")), nil, "no such job")
    end
  end)

  it("n keeps the last n, oldest first", function()
    local q = queue.new{ keep_failed = 3 }
    fails(q, "a", "b"); list(kept(q), "a b"); fails(q, "c", "d"); list(kept(q), "b c d")
    fails(q, "e", "f", "g", "h"); list(kept(q), "f g h"); eq(H.conserved(q).failed, 8)
  end)

  it("takes an integral float, and a great number without taking room", function()
    local q = queue.new{ keep_failed = 2.0 }; fails(q, "a", "b", "c"); list(kept(q), "b c")
    q = queue.new{ keep_failed = 2 ^ 53 }; fails(q, "a", "b", "c"); list(kept(q), "a b c")
  end)

  it("keeps those that failed for good, not what was retried, shed, cancelled, cleared, or went well", function()
    local q = queue.new{ keep_failed = 10, on_error = noop }; local a = 0
    q:push(function() a = a + 1; if a < 3 then error("x") end end, { id = "recovers", retries = 5 })
    q:push(fail, { id = "last", retries = 2 }); q:push(noop, { id = "fine" })
    q:push(noop, { id = "shed", timeout_ms = 1e-3 }); q:push(fail, { id = "cancelled" }); q:cancel("cancelled")
    queue.sleep(1)
    q:run(); q:push(fail, { id = "parked", retries = 1, backoff_ms = 1e6 }); q:poll(); q:clear()
    list(kept(q), "last"); eq(q:failed()[1].attempts, 3); eq(q:metrics().expired, 1); H.conserved(q, { cleared = 1 })
  end)

  it("keeps a job that gave up, whose backoff failed, that was stopped, that met a dead end", function()
    local q = queue.new{ keep_failed = 10 }
    q:push(fail, { id = "gave up", retries = 5, backoff_ms = function() return nil end })
    q:push(fail, { id = "backoff", retries = 5, backoff_ms = function() error("in backoff") end })
    q:push(function() queue.channel():receive() end, { id = "dead end" })
    q:push(function() q:stop(); fail() end, { id = "stopped", retries = 5 }); q:run()
    local f = q:failed(); eq(#f, 4); eq(f[1].id, "gave up"); eq(f[1].attempts, 1)
    has(f[2].message, "backoff_ms failed: ")
    has(f[2].error, "boom"); has(f[3].message, "deadlock: receive"); eq(f[4].id, "stopped"); eq(f[4].attempts, 1)
  end)

  it("keeps a job that Ctrl-C ended", function()
    for _, n in ipairs(J.widths) do
      local q = queue.new{ keep_failed = 2, concurrency = n }; local fine = false
      q:push(function() if not fine then error("interrupted!", 0) end end, { id = "c", retries = 4 }); q:push(noop)
      local done, err = pcall(q.run, q); eq(done, false); eq(err, "interrupted!")
      list(kept(q), "c"); eq(q:failed()[1].message, "interrupted!"); fine = true
      eq(q:retry("c"), "c"); eq(q:run(), 2); eq(H.conserved(q).succeeded, 2)
    end
  end)

  it("is no part of what is pending: size, jobs, clear, cancel and status pass by", function()
    local q = queue.new{ keep_failed = 5, capacity = 1 }; fails(q, "a"); eq(q:size(), 0); eq(q:empty(), true)
    eq(#q:jobs(), 0); eq(q:clear(), 0); eq(q:cancel("a"), 0); eq(q:set_priority("a", 3), 0); eq(q:status("a"), nil)
    eq(q:next_due(), nil); eq(q:push(noop, { id = "a", unique = true }), "a"); eq(q:run(), 1); list(kept(q), "a")
  end)

  it("keeps at a width above 1 in the order in which they failed", function()
    local q, gates = queue.new{ keep_failed = 2, concurrency = 3 }, {}
    for i = 1, 3 do
      gates[i] = queue.channel(1); q:push(function() gates[i]:receive(); fail() end, { id = "j" .. i })
    end
    q:poll(); for _, i in ipairs{ 3, 1, 2 } do gates[i]:send(1); q:poll() end
    list(kept(q), "j1 j2"); eq(q:in_flight(), 0)
  end)
end)

describe("failed", function()
  it("shows the info that on_error had, and the message", function()
    local q, seen = J.watched{ keep_failed = 9 }; local thing, thrown = {}, { code = 7 }
    q:push(function() error(thrown) end, { id = "w", retries = 2, priority = 7, payload = thing })
    q:push(function() error("disk full") end, { id = "v", payload = false })
    eq(q:run(), 4); local f = q:failed(); eq(#f, 2); local told = {}
    for _, s in ipairs(seen) do if s.what == "error" then told[#told + 1] = s end end
    for i, s in ipairs(told) do
      eq(f[i].message, s.msg)
      for _, k in ipairs{ "id", "priority", "attempts", "retries", "expired", "payload", "error", "traceback" } do
        eq(f[i][k], s.info[k], k)
      end
    end
    local w, v = f[1], f[2]
    eq(w.id, "w"); eq(w.attempts, 3); eq(w.retries, 2); eq(w.priority, 7); eq(w.expired, false); eq(w.payload, thing)
    eq(w.error, thrown); eq(type(w.message), "string"); has(w.traceback, "failed_spec.lua"); eq(v.payload, false)
    ok(v.message:find("failed_spec%.lua:%d+: disk full$"), v.message); eq(v.error, v.message); eq(v.attempts, 1)
    if H.integers then eq(math.type(w.priority), "integer"); eq(math.type(w.attempts), "integer") end
  end)

  it("shows whatever was thrown, and a string for it", function()
    local named = setmetatable({}, { __tostring = function() return "E7" end })
    for _, thrown in ipairs{ "text", 42, {}, named, true, noop, false } do
      local q, seen = J.watched{ keep_failed = 1 }; q:push(function() error(thrown, 0) end); q:run()
      eq(q:failed()[1].error, thrown); eq(q:failed()[1].message, seen[1].msg); eq(type(seen[1].msg), "string")
    end
    local q = queue.new{ keep_failed = 1 }; q:push(function() error(nil) end); q:run()
    eq(type(q:failed()[1].message), "string")
  end)

  it("is a copy: what is written into it changes nothing", function()
    local q = queue.new{ keep_failed = 2 }; fails(q, "a", "b")
    local f = q:failed(); f[1].id = "x"; f[1].message = nil; f[2] = nil
    list(kept(q), "a b"); has(q:failed()[1].message, "boom"); ok(q:failed() ~= q:failed())
    ok(q:failed()[1] ~= q:failed()[1])
    local old = q:failed(); fails(q, "c", "d"); list(J.ids(q, old), "a b"); eq(q:retry("d"), "d")
  end)

  it("is not touched by what on_error does to its info", function()
    local q
    q = queue.new{ keep_failed = 1, on_error = function(_, info)
      info.id = "x"; info.payload = nil; info.error = nil; info.message = "mine"; info.priority = 9
    end }
    q:push(fail, { id = "a", payload = 5 }); q:run(); local f = q:failed()[1]
    eq(f.id, "a"); eq(f.payload, 5); has(f.error, "boom"); has(f.message, "boom"); eq(f.priority, 0)
    eq(q:retry("a"), "a")
  end)

  it("holds the job when on_error is called, with its id free", function()
    local q, l = nil, {}
    q = queue.new{ keep_failed = 2, on_error = function(msg, info)
      local f = q:failed(); l[#l + 1] = f[#f].id; eq(f[#f].message, msg); l[#l + 1] = tostring(q:status(info.id))
    end }
    fails(q, "a", "b", "c"); list(l, "a nil b nil c nil")
  end)
end)

describe("retry", function()
  it("takes the job out and pushes it: due at once, attempts from 0, with all that it had", function()
    local q, seen = J.watched{ keep_failed = 5 }; local got, thing, fine = {}, {}, false
    q:push(function(...)
      got[#got + 1] = H.pack(...)
      if not fine then error("down") end
    end, { id = "j", args = { 1, nil, n = 2 }, payload = thing, priority = 4, retries = 1, delay_ms = 3 })
    eq(q:run(), 2); list(kept(q), "j"); fine = #got > 2
    H.results(H.pack(q:retry("j")), "j"); list(kept(q), ""); eq(q:size(), 1); eq(q:next_due(), 0)
    local r = J.row(q, "j"); eq(r.attempts, 0); eq(r.priority, 4); eq(r.payload, thing); eq(r.status, "ready")
    eq(q:run(), 2, "all its attempts again"); list(kept(q), "j"); eq(q:failed()[1].attempts, 2)
    fine = true; eq(q:retry("j"), "j"); eq(q:run(), 1); list(kept(q), "")
    for i = 1, 5 do H.results(got[i], 1, nil) end
    list(J.told(seen), "retry j error j retry j error j success j"); eq(seen[5].info.attempts, 1)
    eq(seen[5].info.payload, thing)
    local m = H.conserved(q); eq(m.enqueued, 3); eq(m.failed, 2); eq(m.succeeded, 1); eq(m.dropped, 0)
  end)

  it("of a job with a long delay or a deadline on starting does not wait, and is not late", function()
    local q = queue.new{ keep_failed = 1 }; local n = 0
    local function job() n = n + 1; if n == 1 then error("x") end end
    q:push(job, { id = "j", delay_ms = 200, timeout_ms = H.patience(100) })
    q:run(); queue.sleep(H.patience(100) + 20); eq(q:retry("j"), "j"); eq(q:next_due(), 0); eq(q:poll(), 1); eq(n, 2)
  end)

  it("keeps its own backoff", function()
    local q = queue.new{ keep_failed = 1 }; local asked = {}
    q:push(fail, { id = "j", retries = 1, backoff_ms = function(n) asked[#asked + 1] = n; return 1 end })
    q:run(); q:retry("j"); eq(q:run(), 2); list(asked, "1 1")
  end)

  it("goes to the back of its priority", function()
    local q = queue.new{ keep_failed = 2 }; local l, note = H.log(); local fine = false
    q:push(function() l[#l + 1] = "j"; if not fine then error("x") end end, { id = "j" }); q:run(); fine = true
    q:push(note("a")); q:push(note("low"), { priority = -1 }); q:retry("j"); q:push(note("b")); q:run()
    list(l, "j a j b low")
  end)

  it("takes the newest of that id, then the one before", function()
    local q, l = queue.new{ keep_failed = 5 }, {}
    for i = 1, 3 do q:push(function() if not l.fine then error("x") end l[#l + 1] = i end, { id = "s" }) end
    fails(q, "other"); l.fine = true
    eq(q:retry("s"), "s"); eq(q:run(), 1); eq(q:retry("s"), "s"); eq(q:retry("s"), "s"); eq(q:run(), 2)
    list(l, "3 2 1")
    list(kept(q), "other"); H.results(H.pack(q:retry("s")), nil, "no such job")
  end)

  it("from the middle leaves the others in their order, and its place to a new one", function()
    local q = queue.new{ keep_failed = 3 }; fails(q, "a", "b", "c"); eq(q:retry("b"), "b"); list(kept(q), "a c")
    q:cancel("b")
    fails(q, "d"); list(kept(q), "a c d"); fails(q, "e"); list(kept(q), "c d e"); eq(q:retry("c"), "c")
    list(kept(q), "d e")
    q:cancel("c"); H.conserved(q)
  end)

  it("of what is not there is no drop", function()
    local q = queue.new{ keep_failed = 2 }; q:push(noop, { id = "pending" })
    for _, id in ipairs{ "x", "", "pending", "a\0" } do H.results(H.pack(q:retry(id)), nil, "no such job") end
    fails(q, "a", "b", "c"); H.results(H.pack(q:retry("a")), nil, "no such job"); eq(q:metrics().dropped, 0)
    H.conserved(q)
  end)

  it("that push would refuse leaves the job there, and is a drop: stopped, duplicate, full", function()
    local q = queue.new{ keep_failed = 3, capacity = 1 }
    q:push(fail, { id = "u", unique = true }); q:run(); q:push(noop, { id = "u" })
    H.results(H.pack(q:retry("u")), nil, "duplicate id"); q:cancel("u"); q:push(noop, { id = "other" })
    H.results(H.pack(q:retry("u")), nil, "queue is full"); list(kept(q), "u"); H.conserved(q, { refused = 2 })
    q:cancel("other"); eq(q:retry("u"), "u"); list(kept(q), ""); q:run(); list(kept(q), "u")
    q:push(noop, { id = "u" }); q:stop(); H.results(H.pack(q:retry("u")), nil, "queue is stopped"); list(kept(q), "u")
    H.results(H.pack(q:retry("u")), nil, "queue is stopped"); H.conserved(q, { refused = 4 })
  end)

  it("of a job that was not unique takes no notice of a twin", function()
    local q = queue.new{ keep_failed = 3 }; fails(q, "t"); q:push(noop, { id = "t" }); eq(q:retry("t"), "t")
    eq(q:size(), 2)
    eq(q:cancel("t"), 2); H.conserved(q)
  end)

  it("of a made-up id keeps the id, and uses none up", function()
    local q = queue.new{ keep_failed = 3 }; q:push(fail); q:run(); eq(q:retry("job-1"), "job-1")
    eq(q:push(noop), "job-2")
    q:run(); list(kept(q), "job-1")
  end)

  it("in on_error runs the job again", function()
    local q, n = nil, 0
    q = queue.new{ keep_failed = 1, on_error = function(_, info) if n < 4 then eq(q:retry(info.id), info.id) end end }
    q:push(function() n = n + 1; fail() end, { id = "j" }); eq(q:run(), 4); list(kept(q), "j"); H.conserved(q)
  end)

  it("in a job, in flight and among others", function()
    local q, l = queue.new{ keep_failed = 3, concurrency = 3 }, {}
    q:push(function() l[#l + 1] = "f"; if #l < 2 then error("x") end end, { id = "f" })
    q:push(function() queue.sleep(1); l[#l + 1] = q:retry("f") end); eq(q:run(), 3); list(l, "f f f"); H.conserved(q)
  end)

  it("cancelled before it runs is gone for good", function()
    local q = queue.new{ keep_failed = 3 }; fails(q, "a"); q:retry("a"); eq(q:cancel("a"), 1); list(kept(q), "")
    H.results(H.pack(q:retry("a")), nil, "no such job"); eq(H.conserved(q).cancelled, 1)
  end)

  it("among many takes any id at once", function()
    local q, n = queue.new{ keep_failed = 100000 }, H.count(3000)
    for i = 1, n do q:push(fail, { id = "j" .. i }) end
    shallow(function() q:run() end); eq(#q:failed(), n); local order = {}
    for i = 1, n do order[i] = i end
    for i = n, 2, -1 do local k = math.random(i); order[i], order[k] = order[k], order[i] end
    for i = 1, 1000 do local id = "j" .. order[(i - 1) % n + 1]; if i <= n then eq(q:retry(id), id) end end
    eq(q:size(), math.min(n, 1000)); eq(#q:failed(), n - math.min(n, 1000))
  end)
end)

describe("a plain list", function()
  it("does the same over random failures and retries", function()
    local function program(seed)
      math.randomseed(seed)
      local room = math.random(0, 5)
      local q, want, n = queue.new{ keep_failed = room }, {}, 0
      for _ = 1, 60 do
        local id = "id " .. math.random(6)
        if math.random(3) > 1 then
          n = n + 1; q:push(fail, { id = id, payload = n }); q:run(); want[#want + 1] = { id, n }
          if #want > room then table.remove(want, 1) end
        else
          local at
          for i = #want, 1, -1 do if want[i][1] == id then at = i break end end
          local got, why = q:retry(id)
          if at then
            eq(got, id); eq(J.row(q, id).payload, want[at][2], "which one"); eq(q:cancel(id), 1); table.remove(want, at)
          else eq(got, nil); eq(why, "no such job") end
        end
        local f = q:failed(); eq(#f, #want, "kept")
        for i, w in ipairs(want) do eq(f[i].id, w[1]); eq(f[i].payload, w[2]) end
      end
      H.conserved(q)
    end
    for seed = 1, H.count(80) do shallow(function() program(seed) end) end
  end)
end)

describe("a failed beat", function()
  it("is kept, and tried again as one plain job while its series goes on", function()
    local q, l, fine = queue.new{ keep_failed = 5 }, {}, false
    q:every(1e4, function(x) l[#l + 1] = x; if not fine then error("beat") end end,
      { id = "s", delay_ms = 0, args = { "arg" }, payload = "p", priority = 3 })
    eq(q:poll(), 1); list(kept(q), "s"); eq(q:failed()[1].payload, "p"); eq(q:size(), 1)
    fine = true; eq(q:retry("s"), "s"); eq(q:size(), 2); eq(q:status("s"), "ready"); eq(J.row(q, "s").priority, 3)
    eq(q:poll(), 1, "at once"); list(l, "arg arg"); eq(q:size(), 1, "no second series has begun")
    eq(q:status("s"), "delayed"); H.between(q:next_due(), 1e4 - H.patience(2000), 1e4)
    local m = H.conserved(q); eq(m.enqueued, 3); eq(q:cancel("s"), 1); eq(q:run(), 0)
  end)

  it("in flight again is a plain job for cancel", function()
    local q, got, n = queue.new{ keep_failed = 5 }, nil, 0
    local function beat() n = n + 1; if n == 1 then error("x") end got = q:cancel("s") end
    q:every(1e4, beat, { id = "s", delay_ms = 0 })
    q:poll(); eq(q:retry("s"), "s"); eq(q:poll(), 1); eq(got, 1, "the series' pending beat alone"); eq(q:size(), 0)
    eq(H.conserved(q).cancelled, 1)
  end)

  it("and its series are cancelled together, while it is pending", function()
    local q = queue.new{ keep_failed = 5 }; q:every(1e4, fail, { id = "s", delay_ms = 0 }); q:poll()
    q:retry("s"); eq(q:cancel("s"), 2); eq(q:run(), 0); H.conserved(q)
  end)

  it("of a series that is over can be tried again, and begins none", function()
    local q, n = queue.new{ keep_failed = 5 }, 0
    q:every(1, function() n = n + 1; if n == 1 then q:cancel("s"); error("x") end end, { id = "s" }); eq(q:run(), 1)
    list(kept(q), "s"); eq(q:retry("s"), "s"); eq(q:run(), 1); eq(n, 2); eq(q:size(), 0); H.conserved(q)
  end)

  it("of each beat is kept, up to the bound", function()
    local q, n = queue.new{ keep_failed = 2 }, 0
    q:every(1, function() n = n + 1; if n == 4 then q:cancel("s") end error("beat " .. n, 0) end, { id = "s" }); q:run()
    local f = q:failed(); eq(f[1].message, "beat 3"); eq(f[2].message, "beat 4"); eq(#f, 2)
  end)
end)

describe("is let go, though the queue lives on:", function()
  local q = queue.new{ keep_failed = 1 }
  local function push(m)
    q:push(function() error(m) end, { id = "j", payload = m, args = { m }, backoff_ms = function() return m end })
    q:run()
  end
  collected("what falls out of the ring", function(m) push(m); fails(q, "next") end)
  collected("what was retried and went well", function(m)
    local n = 0
    q:push(function() n = n + 1; if n == 1 then error(m) end end, { id = "j", payload = m }); q:run(); q:retry("j")
    q:run()
  end)
  collected("what was retried and cancelled", function(m) push(m); q:retry("j"); q:cancel("j") end)
  collected("what was retried and cleared", function(m) push(m); q:retry("j"); q:clear() end)
  collected("what failed() has shown", function(m) push(m); eq(q:failed()[1].payload, m); fails(q, "next") end)
  collected("a failed job of a queue that keeps none", function(m)
    local none = queue.new{ keep_failed = 0 }; m.q = none
    none:push(function() error(m) end, { payload = m }); none:run()
  end)
  collected("a queue whose failed job captures it", function(m)
    local own = queue.new{ keep_failed = 3 }; own:push(function() error({ own, m }) end, { payload = own }); own:run()
  end)
  collected("a failed beat that fell out, its series cancelled", function(m)
    q:every(1e4, function() error(m) end, { id = "s", payload = m, delay_ms = 0 }); q:poll(); q:cancel("s")
    fails(q, "next")
  end)
end)

describe("is kept while it may be tried again:", function()
  it("the function, its args and payload, and what was thrown", function()
    local q, sum = queue.new{ keep_failed = 200 }, 0
    for i = 1, 200 do
      q:push(function(x) if sum < 0 then error({ x[1] }) end sum = sum + x[1] end, { id = "j" .. i, args = { { i } },
        payload = { i } })
    end
    sum = -1; q:run(); H.collect(); local f = q:failed(); eq(#f, 200)
    for i = 1, 200 do eq(f[i].error[1], i); eq(f[i].payload[1], i) end
    sum = 0; f = nil; H.collect()
    for i = 1, 200 do q:retry("j" .. i) end
    eq(q:run(), 200); eq(sum, 20100); eq(f, nil)
  end)

  it("while finalizers fail and retry jobs of the same queue", function()
    local q, n, again = queue.new{ keep_failed = 5 }, 0, 0
    local function meddle()
      n = n + 1; q:push(fail, { id = "m", payload = {} })
      if q:retry("m") then again = again + 1 end
    end
    for i = 1, H.count(300) do
      H.finalizer(meddle)
      q:push(fail, { id = "j", payload = { i } }); n = n + 1; q:poll()
      if q:retry("j") then again = again + 1 end
      for _, f in ipairs(q:failed()) do has(f.message, "boom"); eq(type(f.payload), "table") end
      if i % 20 == 0 then collectgarbage() end
    end
    H.collect(); H.collect(); q:run(); local m = H.conserved(q); eq(m.enqueued, n + again); eq(m.failed, m.enqueued)
  end)

  it("and memory stays flat over many failures", function()
    local q = queue.new{ keep_failed = 100 }
    local function work()
      shallow(function()
        for i = 1, H.count(2000) do q:push(fail, { id = "j" .. i, payload = {} }); q:poll() end
      end)
      H.collect()
    end
    work(); local lua, resident = collectgarbage("count"), H.resident()
    for _ = 1, 3 do work() end
    H.between(collectgarbage("count") - lua, -1e9, 300, "KiB of Lua's own")
    eq(#q:failed(), math.min(100, H.count(2000)))
    if resident then H.between(H.resident() - resident, -1e9, 6000, "KiB resident") end
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  local arg, q = J.arg, nil
  local function option(extra) return J.option("keep_failed", "new", extra) end

  for _, name in ipairs{ "failed", "retry" } do
    it(name .. " on what is no queue", function() J.wrong_self(name) end)
  end

  for _, case in ipairs{
    { "retry of a number", arg(1, "retry", "string expected, got number"), function() q:retry(5) end },
    { "retry of nothing", arg(1, "retry", "string expected, got no value"), function() q:retry() end },
    { "retry of nil", arg(1, "retry", "string expected, got nil"), function() q:retry(nil) end },
    { "retry of a table", arg(1, "retry", "string expected, got table"), function() q:retry({ id = "x" }) end },
    { "keep_failed text", option(".*got string"), function() queue.new{ keep_failed = "x" } end },
    { "keep_failed true", option(".*got boolean"), function() queue.new{ keep_failed = true } end },
    { "keep_failed a table", option(".*got table"), function() queue.new{ keep_failed = {} } end },
    { "keep_failed negative", option(), function() queue.new{ keep_failed = -1 } end },
    { "keep_failed 1.5", option(".*1%.5"), function() queue.new{ keep_failed = 1.5 } end },
    { "keep_failed NaN", option(), function() queue.new{ keep_failed = 0 / 0 } end },
    { "a typo", "keep_faild.*'new'", function() queue.new{ keep_faild = 1 } end },
  } do
    it(case[1], function()
      q = queue.new(); H.raises(case[2], case[3]); J.untouched(q)
    end)
  end

  it("and the job that was meant stays kept", function()
    local p = queue.new{ keep_failed = 1 }; fails(p, "5"); eq(pcall(p.retry, p, 5), false); list(kept(p), "5")
    eq(p:retry("5"), "5")
  end)
end)
