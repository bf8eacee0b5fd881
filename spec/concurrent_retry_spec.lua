--- Jobs side by side that raise: retries, deadlines, on_error, and the error that ends a run.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, has, noop = H.queue, H.eq, H.ok, H.list, H.has, H.noop
local crew, add = G.crew, G.add

describe("retries, deadlines and on_error", function()
  it("a job that waited and raised is tried again, at the back of its priority, on_error hears the last", function()
    local q, seen = crew(2)
    local l = {}
    q:push(function() queue.sleep(1); l[#l + 1] = "x"; error("no") end, { retries = 2, id = "x" })
    for i = 1, 3 do q:push(function() l[#l + 1] = i; queue.sleep(3) end) end
    eq(q:run(), 6); eq(#seen, 1); eq(seen[1].info.attempts, 3); eq(seen[1].info.retries, 2); has(seen[1].msg, ": no")
    eq(table.concat(l, " "):match("^1 x"), "1 x"); local m = H.conserved(q); eq(m.retried, 2); eq(m.succeeded, 3)
  end)

  it("a retry waits out its backoff while others go on, and the function hears attempts and error", function()
    local q, heard, l = crew(), {}, {}
    local a = 0
    q:push(function() a = a + 1; queue.sleep(1); if a < 3 then error({ a }) end l[#l + 1] = "done" end, {
      retries = 5, backoff_ms = function(n, err) heard[#heard + 1] = n .. ":" .. err[1]; return 10 end })
    q:push(function() queue.sleep(5); l[#l + 1] = "other" end)
    H.between(H.timed(function() eq(G.run(q), 4) end), 20, H.patience(2000))
    list(heard, "1:1 2:2"); list(l, "other done")
  end)

  it("backoff_ms that raises or is no duration fails the job", function()
    for _, fn in ipairs{ function() error("bad") end, function() return "x" end, function() return 0 / 0 end } do
      local q, seen = crew()
      q:push(function() queue.sleep(0); error("mine", 0) end, { retries = 3, backoff_ms = fn })
      eq(q:run(), 1); has(seen[1].msg, "backoff_ms failed: "); eq(seen[1].info.error, "mine")
    end
  end)

  it("backoff_ms that says nil gives up", function()
    local q, seen = crew()
    q:push(function() queue.sleep(0); error("mine", 0) end, { retries = 3, backoff_ms = function() return nil end })
    eq(q:run(), 1); eq(seen[1].msg, "mine"); eq(seen[1].info.attempts, 1)
  end)

  it("whatever was thrown is in info.error, and msg is a string", function()
    local object = setmetatable({}, { __tostring = function() return "an object" end })
    for _, thrown in ipairs{ object, {}, 42, false, "text", print } do
      local q, seen = crew(2)
      q:push(function() queue.sleep(0); error(thrown, 0) end); eq(q:run(), 1)
      eq(seen[1].info.error, thrown); eq(type(seen[1].msg), "string")
      if thrown == object then eq(seen[1].msg, "an object") end
    end
    local q, seen = crew(2); q:push(function() queue.sleep(0); error(nil) end); eq(q:run(), 1)
    eq(seen[1].info.error, nil); eq(type(seen[1].msg), "string")
  end)

  it("the traceback is the job's own, also after a wait, also deep", function()
    local q, seen = crew()
    local function deepest() queue.sleep(1); error("deep") end
    local function deeper() deepest(); noop() end
    q:push(function() deeper(); noop() end); q:push(function() error("at once") end); q:run()
    for _, s in ipairs(seen) do
      local trace = s.info.traceback
      eq(type(trace), "string"); has(trace, "concurrent_retry_spec.lua:"); ok(not trace:find("front.lua"), trace)
      ok(not trace:find("busted"), "the traceback is that of the pump: " .. trace)
    end
    has(seen[2].info.traceback, "deepest"); has(seen[2].info.traceback, "deeper"); has(seen[2].msg, ": deep")
  end)

  it("a job that fails leaves the next untouched, and its slot free", function()
    local q, seen = crew(2)
    local n = 0
    for i = 1, 50 do q:push(function() queue.sleep(0); n = n + 1; if i % 2 == 0 then error("x") end end) end
    eq(q:run(), 50); eq(n, 50); eq(#seen, 25); eq(q:in_flight(), 0); H.conserved(q)
  end)

  it("a start deadline is looked at when a slot is free, and cuts no wait short", function()
    local q, seen = crew(2); local gate, limit = queue.channel(), H.patience(50)
    for _ = 1, 2 do q:push(function() gate:receive() end, { timeout_ms = limit }) end
    q:push(noop, { timeout_ms = limit, id = "late" }); q:push(noop, { timeout_ms = 1e6, id = "in time" })
    q:poll(); queue.sleep(limit + 5); q:poll()
    eq(q:size(), 2, "it is pending until its turn has come"); eq(q:metrics().expired, 0); eq(#seen, 0)
    gate:close(); eq(q:run(), 3); eq(#seen, 1); eq(seen[1].id, "late"); eq(seen[1].msg, 'job "late" expired before it ran')
    eq(seen[1].info.expired, true); eq(seen[1].info.attempts, 0); eq(H.conserved(q).expired, 1)
  end)

  it("on_error and backoff_ms block the thread where they wait", function()
    local l = {}
    local q = queue.new{ concurrency = 3, on_error = function() queue.sleep(40); l[#l + 1] = "on_error" end }
    q:push(function() queue.sleep(25); l[#l + 1] = "sleeper" end)
    q:push(function() queue.sleep(0); error("x") end)
    eq(q:run(), 2); list(l, "on_error sleeper")
    l = {}
    q:push(function() queue.sleep(25); l[#l + 1] = "sleeper" end)
    local function backoff() queue.sleep(40); l[#l + 1] = "backoff"; return false end
    q:push(function() queue.sleep(0); error("x") end, { retries = 1, backoff_ms = backoff })
    eq(q:run(), 2); list(l, "backoff on_error sleeper")
  end)

  it("a wait without end in a callback raises there, whoever might have sent", function()
    local ch, done, err = queue.channel(), nil, nil
    local q = queue.new{ concurrency = 3, on_error = function() done, err = pcall(ch.receive, ch) end }
    q:push(function() queue.sleep(2); ch:try_send(1) end); q:push(function() error("x") end)
    eq(q:run(), 2); eq(done, false); has(err, "deadlock: receive on channel(0/0) can never complete")
  end)

  it("on_error may push, stop and clear while others are parked", function()
    -- Each step lets the next one go on, however long it took.
    local pushed, cleared, stopped, l = queue.channel(), queue.channel(), queue.channel(), {}
    local q
    q = queue.new{ concurrency = 5, on_error = function(_, info)
      if info.id == "pusher" then q:push(function() l[#l + 1] = "pushed"; pushed:close() end)
      elseif info.id == "clearer" then add(l, "cleared " .. q:clear()); cleared:close()
      else q:stop(); stopped:close() end
    end }
    q:push(function() stopped:receive(); l[#l + 1] = "parked" end)
    q:push(function() error("x") end, { id = "pusher" }); q:push(function() pushed:receive(); error("x") end, { id = "clearer" })
    q:push(function() cleared:receive(); error("x") end, { id = "stopper" })
    q:push(noop, { delay_ms = 1e6 })
    q:run(); list(l, "pushed cleared 1 parked"); eq(q:is_stopped(), true); H.conserved(q, { cleared = 1 })
  end)
end)

describe("interrupted! among concurrent jobs", function()
  it("thrown by a job ends the run; the others stay parked, and a later run goes on", function()
    local q, seen = crew(); local l, ch = {}, queue.channel()
    q:push(function() add(l, ch:receive()) end); q:push(function() queue.sleep(100); l[#l + 1] = "slept" end)
    q:push(function() queue.sleep(1); error("interrupted!", 0) end, { retries = 3, id = "i" }); q:push(noop, { delay_ms = 100 })
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(#seen, 1); eq(seen[1].id, "i"); eq(seen[1].info.attempts, 1)
    local m = H.conserved(q); eq(m.failed, 1); eq(m.in_flight, 2); eq(m.pending, 1); eq(m.retried, 0)
    ch:try_send("v"); eq(q:run(), 3); table.sort(l); list(l, "slept v"); H.conserved(q)
  end)

  it("thrown by on_error or backoff_ms ends the run too", function()
    for _, where in ipairs{ "on_error", "backoff_ms" } do
      local function stop() error("x.lua:3: interrupted!", 0) end
      local q = queue.new{ concurrency = 3, on_error = where == "on_error" and stop or noop }
      q:push(function() queue.sleep(3) end)
      q:push(function() error("x") end, { retries = where == "backoff_ms" and 1 or 0, backoff_ms = stop })
      local done, err = pcall(q.run, q); eq(done, false); eq(err, "x.lua:3: interrupted!")
      local m = H.conserved(q); eq(m.failed, 1); eq(m.in_flight, 1); eq(q:run(), 1); eq(H.conserved(q).succeeded, 1)
    end
  end)

  it("as a part of another text is an error like any other", function()
    local q, seen = crew()
    q:push(function() queue.sleep(0); error("upload interrupted!", 0) end); q:push(function() queue.sleep(1) end)
    eq(q:run(), 2); eq(#seen, 1)
  end)
end)
