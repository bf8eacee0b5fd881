--- on_success and on_retry beside on_error: what they are told and when, what they may do, and what they cannot break.
local H = require("spec.helper")
local G = require("spec.go_helper")
local J = require("spec.jobs_helper")
local queue, eq, ok, list, has, noop = H.queue, H.eq, H.ok, H.list, H.has, H.noop
local fail, told = J.fail, J.told
local _, _, collected = G.its(function() return it, pending end)

local all = { "on_success", "on_error", "on_retry" }

--- A job that fails so many times, then returns its number of attempts.
local function flaky(times)
  local n = 0
  return function() n = n + 1; if n <= times then error("no " .. n) end return n end
end

for _, width in ipairs(J.widths) do
  local function watched(options)
    options = options or {}; options.concurrency = width
    return J.watched(options)
  end
  local function with(callbacks) callbacks.concurrency = width; return queue.new(callbacks) end

  describe("concurrency " .. width .. ": on_success", function()
    it("gets the facts and the job's results, nils and a trailing nil included", function()
      local q, seen = watched(); local thing = {}
      q:push(function() return "res", nil, false, nil end, { id = "k", payload = thing, priority = 3, retries = 4 })
      q:push(noop); q:push(function() return nil end); q:push(function() return thing, thing end)
      eq(q:run(), 4); list(told(seen), "success k success job-1 success job-2 success job-3")
      H.results(seen[1].results, "res", nil, false, nil); H.results(seen[2].results); H.results(seen[3].results, nil)
      H.results(seen[4].results, thing, thing)
      local info = seen[1].info
      eq(info.id, "k"); eq(info.payload, thing); eq(info.priority, 3); eq(info.retries, 4); eq(info.attempts, 1)
      eq(info.expired, false); eq(info.error, nil); eq(info.traceback, nil); eq(seen[2].info.payload, nil)
    end)

    it("gets a great many results", function()
      local q, seen = watched(); local many = {}
      for i = 1, 200 do many[i] = i end
      q:push(function() return H.unpack(many) end); q:run()
      eq(seen[1].results.n, 200); eq(seen[1].results[1], 1); eq(seen[1].results[200], 200)
    end)

    it("gets what a job returns that waited", function()
      local q, seen = watched(); q:push(function() queue.sleep(1); return nil, "late", nil end); q:run()
      H.results(seen[1].results, nil, "late", nil)
    end)

    it("comes once, with the attempts that it took; never for a job that failed or was shed", function()
      local q, seen = watched()
      q:push(flaky(2), { id = "f", retries = 5 }); q:push(fail, { id = "x", priority = -1 })
      q:push(noop, { id = "late", timeout_ms = 1e-3, priority = -2 }); q:push(noop, { id = "gone" }); q:cancel("gone")
      queue.sleep(1); q:run(); list(told(seen), "retry f retry f success f error x error late")
      eq(seen[3].info.attempts, 3); H.results(seen[3].results, 3)
    end)

    it("comes once the job is counted", function()
      local q, m
      q = with{ on_success = function() m = H.conserved(q) end }
      q:push(noop); q:run(); eq(m.succeeded, 1); eq(m.processed, 1); eq(m.in_flight, 0); eq(m.pending, 0)
    end)
  end)

  describe("concurrency " .. width .. ": on_retry", function()
    it("gets the message, the facts and the delay, before each retry", function()
      local q, seen = watched(); local thing = {}
      q:push(function() error("disk full") end,
        { id = "r", retries = 2, backoff_ms = 3, payload = thing, priority = 2 })
      eq(q:run(), 3); list(told(seen), "retry r retry r error r")
      for i = 1, 2 do
        local msg, info = seen[i].msg, seen[i].info
        ok(msg:find("callbacks_spec%.lua:%d+: disk full$"), msg); eq(info.error, msg); eq(info.delay_ms, 3)
        eq(info.attempts, i); eq(info.retries, 2); eq(info.payload, thing); eq(info.priority, 2)
        eq(info.expired, false)
        has(info.traceback, "callbacks_spec.lua")
      end
    end)

    it("gets the delay that the backoff said, as it was counted", function()
      for _, case in ipairs{ { nil, 0 }, { 0, 0 }, { -5, 0 }, { 2.5, 2.5 }, { function() return 1.25 end, 1.25 },
        { function() return -1 end, 0 }, { function(a) return a * 2 end, 2 } } do
        local q, seen = watched(); q:push(fail, { retries = 1, backoff_ms = case[1] }); eq(q:run(), 2)
        eq(seen[1].info.delay_ms, case[2]); eq(type(seen[1].info.delay_ms), "number")
      end
      local q, seen = watched(); q:push(fail, { retries = 1, backoff_ms = math.huge }); eq(q:poll(), 1)
      eq(seen[1].info.delay_ms, math.huge); eq(q:clear(), 1)
    end)

    it("gets a string for whatever was thrown, and the thing itself", function()
      for _, thrown in ipairs{ {}, 42, false, noop, setmetatable({}, { __tostring = function() return {} end }) } do
        local q, seen = watched(); q:push(function() error(thrown, 0) end, { retries = 1 }); q:run()
        eq(seen[1].what, "retry"); eq(type(seen[1].msg), "string"); eq(seen[1].info.error, thrown)
      end
    end)

    it("comes once the retry is filed: pending, counted, its id taken", function()
      local q, l = nil, {}
      q = with{ on_retry = function(_, info)
        local m = H.conserved(q); eq(m.retried, 1); eq(m.pending, 1); eq(m.in_flight, 0); eq(m.processed, 1)
        l[#l + 1] = q:status(info.id); eq(J.row(q, info.id).attempts, 1)
        l[#l + 1] = tostring((q:push(noop, { id = info.id, unique = true }))); eq(q:clear(), 1)
      end }
      q:push(fail, { id = "a", retries = 1, backoff_ms = 1e6 }); eq(q:run(), 1); list(l, "delayed nil")
      q = with{ on_retry = function(_, info) l[#l + 1] = q:status(info.id) end }
      q:push(fail, { id = "b", retries = 1 }); eq(q:run(), 2); list(l, "delayed nil ready")
    end)

    it("never comes where no retry does: the last failure, one given up, stopped, Ctrl-C, a broken backoff", function()
      local q, seen = watched()
      q:push(fail, { id = "last" })
      q:push(fail, { id = "up", retries = 3, backoff_ms = function() return false end })
      q:push(fail, { id = "bad", retries = 3, backoff_ms = function() return "x" end })
      q:push(function() error("interrupted!", 0) end, { id = "c", retries = 3 })
      q:push(function() q:stop(); fail() end, { id = "stop", retries = 3 })
      eq(pcall(q.run, q), false); q:run(); list(told(seen), "error last error up error bad error c error stop")
    end)
  end)

  describe("concurrency " .. width .. ": a callback", function()
    --- A queue where `fn(q, info)` is called in the callback of that name for the job `x`, which brings it about; and
    -- a check that this has happened, once, and raised nothing.
    local function where(name, fn)
      local called, done, err = 0, nil, nil
      local q
      q = with{ [name] = function(a, b)
        local info = name == "on_success" and a or b
        if info.id ~= "x" then return end
        called = called + 1; done, err = pcall(fn, q, info)
      end }
      local job = ({ on_success = noop, on_error = fail, on_retry = flaky(1) })[name]
      q:push(job, { id = "x", retries = name == "on_retry" and 1 or 0, priority = 1 })
      return q, function() eq(called, 1, "calls of " .. name); ok(done, err) end
    end
    it("may push: what is pushed runs by priority", function()
      for _, name in ipairs(all) do
        local l, note = H.log()
        local q, fine = where(name, function(q)
          q:push(note("low"), { priority = -1 }); q:push(note("high"), { priority = 9 })
        end)
        q:push(note("mid")); eq(q:run(), name == "on_retry" and 5 or 4); fine(); list(l, "high mid low")
        H.conserved(q)
      end
    end)

    it("may stop: nothing starts any more, and a retry stays", function()
      for _, name in ipairs(all) do
        local q, fine = where(name, function(q) q:stop() end); q:push(noop); eq(q:run(), 1, name); fine()
        eq(q:size(), name == "on_retry" and 2 or 1); eq(q:is_stopped(), true); H.conserved(q)
      end
    end)

    it("may clear: a retry that is filed goes too", function()
      for _, name in ipairs(all) do
        local n
        local q, fine = where(name, function(q) n = q:clear() end); q:push(noop); q:push(noop, { delay_ms = 1e6 })
        eq(q:run(), 1); fine(); eq(n, name == "on_retry" and 3 or 2); H.conserved(q, { cleared = n })
      end
    end)

    it("may cancel others, and in on_retry the retry itself", function()
      for _, name in ipairs(all) do
        local own
        local q, fine = where(name, function(q, info) own = q:cancel(info.id); eq(q:cancel("other"), 1) end)
        q:push(noop, { id = "other" }); eq(q:run(), 1); fine(); eq(own, name == "on_retry" and 1 or 0)
        eq(H.conserved(q).cancelled, own + 1); eq(q:size(), 0)
      end
    end)

    it("may pause: run returns, and resume goes on", function()
      for _, name in ipairs(all) do
        local q, fine = where(name, function(q) q:pause() end); q:push(noop); eq(q:run(), 1, name); fine()
        eq(q:size(), name == "on_retry" and 2 or 1); q:resume(); eq(q:run(), name == "on_retry" and 2 or 1)
        H.conserved(q)
      end
    end)

    it("may look at the queue: jobs, failed, metrics, next_due", function()
      for _, name in ipairs(all) do
        local q, fine = where(name, function(q)
          eq(#q:jobs(), q:size()); eq(q:in_flight(), 0); eq(#q:failed(), 0); eq(q:next_due(), 0); H.conserved(q)
        end)
        q:push(noop); q:run(); fine()
      end
    end)

    it("may run another queue", function()
      for _, name in ipairs(all) do
        local l, note = H.log()
        local other = queue.new{ concurrency = width }; other:push(note("other"), { delay_ms = 2 })
        local q, fine = where(name, function() eq(other:run(), 1); l[#l + 1] = "callback" end)
        q:push(note("next")); q:run(); fine(); list(l, "other callback next")
      end
    end)

    it("blocks the thread where it waits", function()
      for _, name in ipairs(all) do
        local l, note = H.log()
        local q, fine = where(name, function() queue.sleep(10); l[#l + 1] = "callback" end); q:push(note("next"))
        local t = H.timed(function() q:run() end); fine(); list(l, "callback next")
        H.between(t, 10, H.patience(1000))
      end
    end)

    it("that throws Ctrl-C ends run and poll; the job is counted, the rest stays, a later run goes on", function()
      for _, name in ipairs(all) do
        for _, method in ipairs{ "run", "poll" } do
          for _, text in ipairs{ "interrupted!", "x.lua:3: interrupted!" } do
            local n = 0
            local q = with{ [name] = function() n = n + 1; if n == 1 then error(text, 0) end end }
            local job = ({ on_success = noop, on_error = fail, on_retry = flaky(1) })[name]
            q:push(job, { retries = name == "on_retry" and 1 or 0, priority = 1 }); q:push(noop)
            local done, err = pcall(q[method], q); eq(done, false, name); eq(err, text)
            local m = H.conserved(q); eq(m.in_flight, 0); eq(m.processed, 1)
            eq(m.pending, name == "on_retry" and 2 or 1)
            eq(m.succeeded, name == "on_success" and 1 or 0); eq(m.failed, name == "on_error" and 1 or 0)
            eq(q:run(), m.pending); eq(H.conserved(q).pending, 0)
          end
        end
      end
    end)

    it("that raises is told on standard error, by its name, and changes nothing else", function()
      local r = H.run("bad_callbacks.lua", width)
      eq(r.code, 0, r.err); eq(r.out, "ran 9, succeeded 3, failed 3, retried 3, kept 3\n")
      local n = {}
      for line in r.err:gmatch("[^\n]+") do
        local name, text = line:match("^queue: (on_%a+) handler failed: (.*)$")
        if name then
          n[name] = (n[name] or 0) + 1; ok(text ~= "")
          if text:find("broke") then has(text, name .. " broke"); has(text, "bad_callbacks.lua:") end
        end
      end
      for _, name in ipairs(all) do eq(n[name], 3, name .. "\n" .. r.err); has(r.err, name .. " broke") end
      has(r.err, ": object"); ok(not r.err:find("boom", 1, true), r.err)
    end)

    it("may be anything that can be called", function()
      local l = {}
      local function callable(word)
        return setmetatable({}, { __call = function(_, _, x) l[#l + 1] = word .. type(x) end })
      end
      local q = with{ on_success = callable("success "), on_retry = callable("retry "), on_error = callable("error ") }
      q:push(flaky(1), { retries = 1, priority = 1 }); q:push(fail); q:run()
      list(l, "retry table success number error table")
    end)

    it("absent is not missed", function()
      local q = with{}; q:push(flaky(1), { retries = 1 }); q:push(fail); q:push(function() return 1, 2 end)
      eq(q:run(), 4)
      H.conserved(q)
    end)

    it("gets a table of its own: what is written into it changes nothing", function()
      local q, seen = nil, {}
      local function spoil(info)
        seen[#seen + 1] = info.attempts; info.id = "spoilt"; info.attempts = 99; info.retries = 99; info.priority = 99
        info.payload = nil
      end
      q = with{ on_success = spoil, on_retry = function(_, info) ok(info.payload); spoil(info) end }
      q:push(flaky(2), { id = "x", retries = 2, payload = {} }); eq(q:run(), 3); list(seen, "1 2 3")
      eq(H.conserved(q).succeeded, 1)
    end)

    it("tells of events in the order in which they come to pass", function()
      local q, seen = watched{ keep_failed = 1 }
      q:push(flaky(1), { id = "a", retries = 1 }); q:push(noop, { id = "b" }); q:push(fail, { id = "c" })
      q:push(fail, { id = "d", retries = 1 }); q:run()
      list(told(seen), "retry a success b error c retry d success a error d")
    end)
  end)
end

describe("at concurrency 1 a callback", function()
  it("may run and poll its own queue", function()
    for _, name in ipairs(all) do
      for _, method in ipairs{ "run", "poll" } do
        local q, l, n = nil, {}, 0
        q = queue.new{ [name] = function()
          n = n + 1
          if n == 1 then G.add(l, "in"); G.add(l, q[method](q)); G.add(l, "out") end
        end }
        local job = ({ on_success = noop, on_error = fail, on_retry = flaky(1) })[name]
        q:push(job, { retries = name == "on_retry" and 1 or 0, priority = 1 })
        for _, word in ipairs{ "a", "b" } do q:push(function() l[#l + 1] = word end) end
        -- The retry is of the highest priority, and so the first that the inner one runs.
        eq(q:run(), 1); list(l, "in a b " .. (name == "on_retry" and 3 or 2) .. " out"); H.conserved(q)
      end
    end
  end)

  it("comes for the inner job before it comes for the outer one", function()
    local q, seen = J.watched()
    q:push(function() q:run(); return "outer" end, { id = "o" }); q:push(function() return "inner" end, { id = "i" })
    eq(q:run(), 1); list(told(seen), "success i success o"); H.results(seen[1].results, "inner")
  end)
end)

describe("above concurrency 1 a callback", function()
  it("that runs or polls its own queue gets an error", function()
    for _, method in ipairs{ "run", "poll" } do
      local q, l = nil, {}
      q = queue.new{ concurrency = 2, on_success = function()
        l[#l + 1] = select(2, pcall(function() q[method](q) end))
      end }
      q:push(noop); eq(q:run(), 1); has(l[1], "queue is already running"); H.conserved(q)
    end
  end)

  it("comes in the order in which jobs end, while others are parked", function()
    local q, seen = J.watched{ concurrency = 3 }; local gates = {}
    for i = 1, 3 do
      gates[i] = queue.channel(1)
      q:push(function() local v = gates[i]:receive(); return i, v, nil end, { id = "j" .. i })
    end
    q:poll(); for _, i in ipairs{ 2, 3, 1 } do gates[i]:send("v" .. i); q:poll() end
    list(told(seen), "success j2 success j3 success j1"); H.results(seen[1].results, 2, "v2", nil); H.conserved(q)
  end)

  it("frees the slot of its job first", function()
    local q, n
    q = queue.new{ concurrency = 2, on_success = function() n = n or q:in_flight() end }
    q:push(noop); q:push(function() queue.sleep(1) end); q:run(); H.between(n, 0, 1)
  end)

  it("that throws Ctrl-C leaves the others parked", function()
    local q, ch, n = nil, queue.channel(), 0
    q = queue.new{ concurrency = 3, on_success = function() n = n + 1; if n == 1 then error("interrupted!", 0) end end }
    q:push(function() ch:receive() end); q:push(noop); local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(q:in_flight(), 1); ok(ch:try_send(1)); eq(q:run(), 1); eq(n, 2)
    H.conserved(q)
  end)
end)

describe("is let go once it was told:", function()
  local q = queue.new{ on_success = noop, on_retry = noop, on_error = noop }
  collected("what a job returned", function(m) q:push(function() return m, { m } end); q:run() end)
  collected("what a job threw before it went well", function(m)
    local n = 0
    q:push(function() n = n + 1; if n == 1 then error(m) end return m end, { retries = 1, payload = m }); q:run()
  end)
  collected("what a job returned at a width above 1", function(m)
    local p = queue.new{ concurrency = 3, on_success = noop }; m.p = p
    p:push(function() queue.sleep(0); return m end); p:run()
  end)
  collected("a queue that its callbacks capture", function(m)
    local p
    p = queue.new{ on_success = function() return p, m end, on_retry = function() return p, m end }
  end)
end)

describe("nothing is lost", function()
  it("whatever callbacks do, over random programs", function()
    for seed = 1, H.count(60) do
      math.randomseed(seed)
      local r, q = math.random, nil
      local lost, depth = { refused = 0, cleared = 0 }, 0
      local made = 0
      local function push()
        made = made + 1
        if made > 200 then return end
        local a, fails = 0, r(0, 2)
        local id = q:push(function() a = a + 1; if a <= fails then error("x") end end, { id = "id " .. r(5),
          retries = r(0, 2), priority = r(3), unique = r(4) == 1, timeout_ms = r(6) == 1 and 1e-3 or nil })
        if not id then lost.refused = lost.refused + 1 end
      end
      local function meddle()
        local x = r(9)
        if x <= 3 then push() elseif x == 4 then q:cancel("id " .. r(5))
        elseif x == 5 then q:set_priority("id " .. r(5), r(3))
        elseif x == 6 and r(4) == 1 then lost.cleared = lost.cleared + q:clear()
        elseif x == 7 and depth < 5 then depth = depth + 1; q:poll(r(0, 3)); depth = depth - 1
        elseif x == 8 then
          if #q:failed() > 0 then
            local id, why = q:retry(q:failed()[1].id)
            if not id and why ~= "no such job" then lost.refused = lost.refused + 1 end
          end
        end
        H.conserved(q, lost)
      end
      q = queue.new{ keep_failed = r(0, 3), capacity = r(5, 40),
        on_success = meddle, on_retry = meddle, on_error = meddle }
      for _ = 1, 50 do if r(3) > 1 then push() else q:poll(r(0, 4)) end H.conserved(q, lost) end
      q:run(); local m = H.conserved(q, lost); eq(m.pending, 0); eq(m.in_flight, 0)
    end
  end)
end)

describe("misuse raises a string at the caller's line:", function()
  for _, name in ipairs{ "on_success", "on_retry" } do
    local function option(got) return J.option(name, "new", "function expected, got " .. got) end
    it("new, " .. name .. " of another type", function()
      H.raises(option("number"), function() queue.new{ [name] = 5 } end)
      H.raises(option("string"), function() queue.new{ [name] = "x" } end)
      H.raises(option("table"), function() queue.new{ [name] = {} } end)
      H.raises(option("boolean"), function() queue.new{ [name] = false } end)
      H.raises(option("channel"), function() queue.new{ [name] = queue.channel() } end)
    end)
    it("push, " .. name .. " is an option of new", function()
      H.raises(name .. ".*'push'", function() queue.new():push(noop, { [name] = noop }) end)
    end)
  end
  it("a typo", function() H.raises("on_succes.*'new'", function() queue.new{ on_succes = noop } end) end)
end)
