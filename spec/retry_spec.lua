--- Jobs that raise: attempts, backoff, what on_error is told, and what else stays untouched.
local H = require("spec.helper")
local queue, eq, ok, list, has = H.queue, H.eq, H.ok, H.list, H.has
local function fail() error("boom") end

--- A queue that keeps what on_error is told.
local function watched()
  local seen = {}
  return queue.new{ on_error = function(msg, info) seen[#seen + 1] = { msg = msg, info = info } end }, seen
end

describe("retries", function()
  it("n means at most n + 1 attempts", function()
    for _, n in ipairs{ 0, 1, 3 } do
      local q, seen = watched(); local a = 0
      q:push(function() a = a + 1; fail() end, { retries = n })
      eq(q:run(), n + 1); eq(a, n + 1); eq(#seen, 1); eq(seen[1].info.attempts, n + 1); eq(seen[1].info.retries, n)
      local m = H.conserved(q)
      eq(m.retried, n); eq(m.failed, 1); eq(m.succeeded, 0); eq(m.processed, n + 1); eq(m.enqueued, 1)
    end
  end)

  it("none: the first failure reports one attempt", function()
    local q, seen = watched(); q:push(fail); q:run(); eq(seen[1].info.attempts, 1); eq(seen[1].info.retries, 0)
  end)

  it("that succeed in the end are no failure", function()
    local q, seen = watched(); local a = 0
    q:push(function() a = a + 1; if a < 3 then fail() end end, { retries = 5 })
    eq(q:run(), 3); eq(#seen, 0)
    local m = H.conserved(q); eq(m.succeeded, 1); eq(m.retried, 2); eq(m.failed, 0)
  end)

  it("go to the back of their priority, ahead of lower ones", function()
    local q = queue.new(); local l, note = H.log(); local a = 0
    q:push(function() l[#l + 1] = "r"; a = a + 1; if a < 3 then fail() end end, { retries = 2, priority = 1 })
    q:push(note("peer"), { priority = 1 }); q:push(note("low"))
    q:run(); list(l, "r peer r r low")
  end)

  it("come after a job of the same priority that was pushed meanwhile", function()
    local q = queue.new(); local l, note = H.log(); local a = 0
    q:push(function() l[#l + 1] = "r"; a = a + 1; if a < 2 then q:push(note("new")); fail() end end, { retries = 1 })
    q:run(); list(l, "r new r")
  end)

  it("take integral floats, and a great number", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; if a < 1000 then fail() end end, { retries = 2 ^ 53 })
    eq(q:run(), 1000); eq(q:metrics().succeeded, 1)
  end)

  it("dropped by clear are neither failed nor lost", function()
    local q, seen = watched(); q:push(fail, { retries = 3 })
    q:poll(1); eq(q:size(), 1); eq(q:clear(), 1); eq(q:run(), 0); eq(#seen, 0); H.conserved(q, { cleared = 1 })
  end)
end)

describe("backoff_ms", function()
  it("parks each retry at least that long", function()
    local q, at = queue.new(), {}
    q:push(function() at[#at + 1] = queue.now(); fail() end, { retries = 2, backoff_ms = 15 })
    eq(q:run(), 3)
    H.between(at[2] - at[1], 15, H.patience(1000)); H.between(at[3] - at[2], 15, H.patience(1000))
  end)

  it("leaves a parked retry pending for poll", function()
    local q = queue.new(); q:push(fail, { retries = 1, backoff_ms = 5000 })
    eq(q:poll(), 1); eq(q:poll(), 0); eq(q:size(), 1); H.between(q:next_due(), 5000 - H.patience(2000), 5000)
  end)

  it("of nothing or less is no pause", function()
    for _, ms in ipairs{ 0, -5, -math.huge } do
      local q = queue.new(); q:push(fail, { retries = 2, backoff_ms = ms }); eq(q:poll(3), 3)
    end
  end)

  it("may be of any size", function()
    for _, ms in ipairs{ 2 ^ 31, 2 ^ 53, 1e300, math.huge } do
      local q = queue.new(); q:push(fail, { retries = 1, backoff_ms = ms })
      eq(q:poll(), 1); eq(q:poll(), 0); eq(q:size(), 1)
    end
  end)

  it("as a function is asked with attempts and error before each retry", function()
    local q, asked = queue.new(), {}
    local thrown = { code = 7 }
    q:push(function() error(thrown) end, { retries = 3, backoff_ms = function(...) asked[#asked + 1] = H.pack(...); return 1 end })
    eq(q:run(), 4); eq(#asked, 3)
    for i = 1, 3 do H.results(asked[i], i, thrown) end
  end)

  it("as a function gives up with nil, false or nothing", function()
    for _, answer in ipairs{ function() return nil end, function() return false end, function() end } do
      local q, seen = watched(); local a = 0
      q:push(function() a = a + 1; fail() end, { retries = 9, backoff_ms = function(n) if n < 3 then return 0 end return answer() end })
      eq(q:run(), 3); eq(a, 3); eq(#seen, 1); eq(seen[1].info.attempts, 3); has(seen[1].msg, "boom")
      local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 2)
    end
  end)

  it("as anything that can be called works too", function()
    local q, n = queue.new(), 0
    q:push(fail, { retries = 1, backoff_ms = setmetatable({}, { __call = function(_, a) n = a; return 1 end }) })
    eq(q:run(), 2); eq(n, 1)
  end)

  it("as a function that answers with less than nothing is no pause", function()
    local q = queue.new(); q:push(fail, { retries = 1, backoff_ms = function() return -1 end }); eq(q:poll(2), 2)
  end)

  it("as a function that answers math.huge parks for ever", function()
    local q = queue.new(); q:push(fail, { retries = 1, backoff_ms = function() return math.huge end })
    eq(q:poll(), 1); eq(q:next_due(), math.huge); H.raises("deadlock: run", function() q:run() end); eq(q:size(), 1)
  end)

  it("that answers with no duration fails the job, says so, and the queue goes on", function()
    for _, bad in ipairs{ "soon", 0 / 0, {}, true, H.noop } do
      local q, seen = watched(); local ran
      q:push(fail, { retries = 5, backoff_ms = function() return bad end, id = "b" })
      q:push(function() ran = true end)
      eq(q:run(), 2); eq(ran, true); eq(#seen, 1)
      has(seen[1].msg, "backoff_ms failed: "); has(seen[1].info.error, "boom"); eq(seen[1].info.attempts, 1)
      local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 0); eq(m.succeeded, 1)
    end
  end)

  it("that raises fails the job, says so, and info.error stays the job's", function()
    for _, thrown in ipairs{ "in backoff", 42, { 1 } } do
      local q, seen = watched(); local ran
      local cause = {}
      q:push(function() error(cause) end, { retries = 5, backoff_ms = function() error(thrown) end })
      q:push(function() ran = true end)
      eq(q:run(), 2); eq(ran, true); eq(#seen, 1); eq(seen[1].info.error, cause)
      has(seen[1].msg, "backoff_ms failed: ")
      if thrown == "in backoff" then has(seen[1].msg, thrown) end
      H.conserved(q)
    end
  end)

  it("is not asked for a job that has no attempt left, or whose queue is stopped", function()
    local q, n = queue.new(), 0
    local function ask() n = n + 1; return 0 end
    q:push(fail, { retries = 0, backoff_ms = ask }); q:run(); eq(n, 0)
    q:push(fail, { retries = 1, backoff_ms = ask }); q:run(); eq(n, 1)
    q:push(function() q:stop(); fail() end, { retries = 5, backoff_ms = ask }); eq(q:run(), 1); eq(n, 1)
  end)

  it("that stops, clears or pushes is as good as any", function()
    local q, l = queue.new(), {}
    q:push(fail, { retries = 1, backoff_ms = function() q:push(function() l[#l + 1] = "pushed" end); return 0 end })
    eq(q:run(), 3); list(l, "pushed")
    q:push(fail, { retries = 1, backoff_ms = function() q:push(H.noop); eq(q:clear(), 1); return 0 end })
    eq(q:run(), 2); H.conserved(q, { cleared = 1 })
    q:push(fail, { retries = 1, backoff_ms = function() q:stop(); return 0 end }); q:run()
    ok(q:is_stopped()); H.conserved(q, { cleared = 1 })
  end)
end)

describe("on_error", function()
  it("gets the message as it was thrown, and the facts", function()
    local q, seen = watched(); local payload = { 1 }
    q:push(function() error("disk full") end, { id = "w", retries = 2, priority = 7, payload = payload })
    q:run()
    local msg, info = seen[1].msg, seen[1].info
    ok(msg:find("retry_spec%.lua:%d+: disk full$"), msg); eq(info.error, msg)
    eq(info.id, "w"); eq(info.attempts, 3); eq(info.retries, 2); eq(info.priority, 7); eq(info.expired, false)
    eq(info.payload, payload); has(info.traceback, "retry_spec.lua"); has(info.traceback, "stack traceback")
  end)

  it("gets any payload, false and none included", function()
    local q, seen = watched()
    q:push(fail, { payload = false }); q:push(fail); q:push(fail, { payload = q })
    q:run(); eq(seen[1].info.payload, false); eq(seen[2].info.payload, nil); eq(seen[3].info.payload, q)
  end)

  it("gets a string for whatever was thrown, and the thing itself", function()
    local named = setmetatable({}, { __tostring = function() return "E7" end })
    for _, case in ipairs{ { "text" }, { 42 }, { {} }, { named, "E7" }, { true }, { H.noop }, { io.stdout }, { false } } do
      local thrown = case[1]
      local q, seen = watched()
      q:push(function() error(thrown, 0) end); eq(q:run(), 1)
      eq(#seen, 1); eq(type(seen[1].msg), "string"); eq(seen[1].info.error, thrown)
      eq(seen[1].msg, case[2] or tostring(thrown)); eq(type(seen[1].info.traceback), "string")
    end
  end)

  it("gets a string for nil", function()
    local q, seen = watched()
    q:push(function() error(nil) end); q:push(function() error() end); eq(q:run(), 2)
    eq(#seen, 2); eq(type(seen[1].msg), "string"); eq(type(seen[2].msg), "string")
    if _VERSION ~= "Lua 5.5" then eq(seen[1].info.error, nil) end -- which makes a text of it
  end)

  it("gets a string where the error's __tostring raises or answers with no string", function()
    for _, bad in ipairs{ function() error("in tostring") end, function() return {} end, function() end,
      function() error({}) end, function() error(nil) end, 5 } do
      local q, seen = watched(); local ran
      local thrown = setmetatable({}, { __tostring = bad })
      q:push(function() error(thrown) end); q:push(function() ran = true end)
      eq(q:run(), 2); eq(ran, true); eq(#seen, 1); eq(type(seen[1].msg), "string"); eq(seen[1].info.error, thrown)
      H.conserved(q)
    end
  end)

  it("gets the interpreter's own errors", function()
    local q, seen = watched()
    q:push(function() local x = nil; return x.y end); q:push(function() return 1 + {} end)
    q:push(string.rep)
    eq(q:run(), 3)
    has(seen[1].msg, "attempt to index"); has(seen[2].msg, "attempt to perform arithmetic")
    has(seen[3].msg, "bad argument #1")
  end)

  it("comes once the job is counted", function()
    local q, m
    q = queue.new{ on_error = function() m = H.conserved(q) end }
    q:push(fail); q:run(); eq(m.failed, 1); eq(m.in_flight, 0); eq(m.processed, 1)
    q:push(H.noop, { timeout_ms = 1e-3 }); queue.sleep(1); q:run(); eq(m.expired, 1); eq(m.pending, 0)
  end)

  it("comes on the last failure only", function()
    local q, seen = watched(); q:push(fail, { retries = 4 }); q:run(); eq(#seen, 1); eq(seen[1].info.attempts, 5)
  end)

  it("may push, clear and stop", function()
    local q, l = nil, {}
    q = queue.new{ on_error = function(_, info)
      l[#l + 1] = info.id
      if info.id == "push" then q:push(function() l[#l + 1] = "pushed" end, { priority = 9 }) end
      if info.id == "clear" then eq(q:clear(), 1); q:push(fail, { id = "stop" }); q:push(H.noop) end
      if info.id == "stop" then q:stop() end
    end }
    q:push(fail, { id = "push" }); q:push(fail, { id = "clear" }); q:push(H.noop)
    eq(q:run(), 4); list(l, "push pushed clear stop"); eq(q:size(), 1); H.conserved(q, { cleared = 1 })
  end)

  it("may run and poll its own queue", function()
    local q, l = nil, {}
    q = queue.new{ on_error = function() l[#l + 1] = "error"; eq(q:run(), 2); l[#l + 1] = "back" end }
    q:push(fail)
    for _, word in ipairs{ "a", "b" } do q:push(function() l[#l + 1] = word end) end
    eq(q:run(), 1); list(l, "error a b back")
  end)

  it("may wait", function()
    local q = queue.new{ on_error = function() queue.sleep(10) end }
    q:push(fail); local t = H.timed(function() return q:run() end); H.between(t, 10, H.patience(1000))
  end)

  it("that raises is told on standard error, once, and changes nothing else", function()
    local r = H.run("bad_callback.lua")
    eq(r.code, 0); eq(r.out, "ran 3, failed 2, expired 1, next ran\n")
    local n = 0
    for line in r.err:gmatch("[^\n]+") do
      if line:find("queue: on_error handler failed: ", 1, true) == 1 then n = n + 1 end
    end
    eq(n, 3, r.err); has(r.err, "handler broke"); ok(not r.err:find("boom", 1, true), r.err)
  end)

  it("absent: a failure says nothing", function()
    local r = H.run("silent_failure.lua")
    eq(r.out, "failed 2\n"); eq(r.err, ""); eq(r.code, 0)
  end)
end)

describe("a job that raises", function()
  it("leaves the next ones alone", function()
    local q = queue.new(); local l, note = H.log()
    q:push(note("a")); q:push(fail); q:push(note("b")); q:push(error); q:push(note("c"))
    eq(q:run(), 5); list(l, "a b c")
  end)

  it("by running out of stack has failed, with a string", function()
    local q, seen = watched(); local ran
    local function deep() return 1 + deep() end
    q:push(deep); q:push(function() ran = true end)
    eq(q:run(), 2); eq(ran, true); eq(#seen, 1); eq(type(seen[1].msg), "string"); H.conserved(q)
  end)

  it("inside a run inside a job does not touch the outer job", function()
    local q, seen = watched(); local back
    q:push(function() q:run(); back = true end, { priority = 1 }); q:push(fail)
    eq(q:run(), 1); eq(back, true); eq(#seen, 1); local m = H.conserved(q); eq(m.failed, 1); eq(m.succeeded, 1)
  end)
end)
