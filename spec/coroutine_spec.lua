--- run and poll in a coroutine: a job may yield to whoever resumed it.
local H = require("spec.helper")
local queue, eq, ok, list, has = H.queue, H.eq, H.ok, H.list, H.has
local yield, wrap = coroutine.yield, coroutine.wrap

--- Stock 5.1 cannot yield across the pump.
local function can(name, fn)
  it(name, function()
    if H.lua51 then return pending("stock 5.1 has no yield across pcall") end
    fn()
  end)
end

describe("a run in a coroutine", function()
  can("lets a job yield values outward, and brings back what comes in", function()
    local q, got = queue.new(), nil
    q:push(function() got = H.pack(yield("out", nil, 3)) end)
    local co = coroutine.create(function() return "ran", q:run() end)
    H.results(H.pack(coroutine.resume(co)), true, "out", nil, 3)
    eq(q:in_flight(), 1); eq(q:size(), 0); H.conserved(q)
    H.results(H.pack(coroutine.resume(co, "in", nil)), true, "ran", 1)
    H.results(got, "in", nil); eq(q:in_flight(), 0); H.conserved(q)
  end)

  can("passes every yield on, many in one job and many jobs", function()
    local q, l = queue.new(), {}
    for j = 1, 3 do q:push(function() for i = 1, 3 do yield(j .. "." .. i) end end) end
    local next_value = wrap(function() eq(q:run(), 3) end)
    while true do
      local v = next_value()
      if v == nil then break end
      l[#l + 1] = v
    end
    list(l, "1.1 1.2 1.3 2.1 2.2 2.3 3.1 3.2 3.3")
  end)

  can("passes a bare yield on", function()
    local q, done = queue.new(), nil
    q:push(function() yield(); done = true end)
    local co = coroutine.create(function() return q:run() end)
    H.results(H.pack(coroutine.resume(co)), true); eq(done, nil)
    H.results(H.pack(coroutine.resume(co)), true, 1); eq(done, true)
  end)

  can("passes a yield on from under pcall, metamethods and iterators of a job", function()
    local q, l = queue.new(), {}
    local mt = { __index = function(_, k) return yield(k) end }
    q:push(function()
      l[1] = select(2, pcall(function() return yield("pcall") end))
      l[2] = setmetatable({}, mt).index
      for v in function(_, last) if not last then return yield("iterator") end end do l[3] = v end
    end)
    local step = wrap(function() q:run() end)
    eq(step(), "pcall"); eq(step("a"), "index"); eq(step("b"), "iterator"); step("c")
    list(l, "a b c"); eq(q:metrics().failed, 0)
  end)

  can("retries a job that raises after a yield", function()
    local q, a = queue.new(), 0
    q:push(function() a = a + 1; yield(a); if a < 2 then error("x") end end, { retries = 1 })
    local co = wrap(function() return "done", q:run() end)
    eq(co(), 1); eq(co(), 2)
    H.results(H.pack(co()), "done", 2); eq(q:metrics().retried, 1); eq(q:metrics().succeeded, 1)
  end)

  can("reports a job that raises after a yield with its traceback", function()
    local seen
    local q = queue.new{ on_error = function(msg, info) seen = { msg, info } end }
    q:push(function() yield(); error("late") end)
    local co = wrap(function() q:run() end)
    co(); co()
    has(seen[1], "coroutine_spec.lua"); has(seen[1], ": late"); has(seen[2].traceback, "coroutine_spec.lua")
  end)

  can("counts the time of a yield as the job's", function()
    local q = queue.new(); q:push(function() yield() end)
    local co = wrap(function() q:run() end)
    co(); queue.sleep(20); co()
    H.between(q:metrics().max_exec_ms, 20, H.patience(1000))
  end)

  can("leaves the rest to a second coroutine that runs meanwhile", function()
    local q, l = queue.new(), {}
    q:push(function() yield("parked"); l[#l + 1] = "first" end)
    q:push(function() yield("parked too"); l[#l + 1] = "second" end)
    q:push(function() l[#l + 1] = "third" end)
    local a = wrap(function() return "a", q:run() end)
    local b = wrap(function() return "b", q:run() end)
    eq(a(), "parked"); eq(q:size(), 2)
    eq(b(), "parked too"); eq(q:in_flight(), 2); eq(q:size(), 1)
    H.results(H.pack(a()), "a", 2); list(l, "first third")
    H.results(H.pack(b()), "b", 1); list(l, "first third second")
    eq(H.conserved(q).succeeded, 3)
  end)

  can("does not wait for a job that another pump drives", function()
    local q, l = queue.new(), {}
    q:push(function() yield(); l[#l + 1] = "parked" end)
    local co = wrap(function() return q:run() end)
    co()
    eq(q:run(), 0); eq(q:poll(), 0)
    q:push(function() l[#l + 1] = "rest" end); eq(q:run(), 1)
    eq(co(), 1); list(l, "rest parked")
  end)

  can("waits out a delay, between yields too", function()
    local q, l = queue.new(), {}
    q:push(function() yield(1); l[#l + 1] = "late" end, { delay_ms = 10 })
    local co = wrap(function() return "done", q:run() end)
    local t = H.timed(function() return co() end); H.between(t, 10, H.patience(1000))
    H.results(H.pack(co()), "done", 1); list(l, "late")
  end)

  can("works for poll as well", function()
    local q = queue.new(); q:push(function() yield("out") end); q:push(H.noop)
    local co = wrap(function() return "done", q:poll(1) end)
    eq(co(), "out"); H.results(H.pack(co()), "done", 1); eq(q:size(), 1)
  end)

  can("passes a yield through a run inside a job", function()
    local a, b = queue.new(), queue.new()
    b:push(function() eq(yield("deep"), "answer") end)
    a:push(function() eq(b:run(), 1) end)
    local co = wrap(function() return "done", a:run() end)
    eq(co(), "deep"); H.results(H.pack(co("answer")), "done", 1)
    eq(a:metrics().failed, 0); eq(b:metrics().failed, 0)
  end)

  can("that is stopped meanwhile returns once its job is done", function()
    local q = queue.new(); q:push(function() yield(); error("x") end, { retries = 3 }); q:push(H.noop)
    local co = wrap(function() return "done", q:run() end)
    co(); q:stop(); eq(q:in_flight(), 1)
    H.results(H.pack(co()), "done", 1)
    local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 0); eq(m.pending, 1)
  end)

  can("that is cleared meanwhile loses what was pending, not its job", function()
    local q, done = queue.new(), nil
    q:push(function() yield(); done = true end); q:push(H.noop)
    local co = wrap(function() return "done", q:run() end)
    co(); eq(q:clear(), 1)
    H.results(H.pack(co()), "done", 1); eq(done, true); H.conserved(q, { cleared = 1 })
  end)

  can("that nobody resumes again is garbage, its job has failed for the next run, and the queue goes on", function()
    local told
    local q = queue.new{ on_error = function(m) told = m end }; local weak = setmetatable({}, { __mode = "v" })
    -- On stacks of their own: LuaJIT takes what lies in an unused slot of this one for used.
    wrap(function()
      local marker = {}
      weak[1] = marker
      q:push(function() yield(marker) end); q:push(H.noop)
      local co = coroutine.create(function() q:run() end)
      coroutine.resume(co); weak[2] = co
    end)()
    H.collect()
    eq(weak[2], nil); eq(told, nil); eq(q:next_due(), 0); eq(wrap(function() return q:run() end)(), 1)
    has(told, "the run that had the job was left"); eq(H.conserved(q).in_flight, 0)
    ok(q:push(H.noop)); eq(q:run(), 1)
    H.collect(); eq(weak[1], nil); H.conserved(q)
  end)

  can("that nobody resumes again leaves its jobs to be tried again, where they have retries", function()
    local left, ran = {}, {}
    local q = queue.new{ on_retry = function(m) left[#left + 1] = m end }
    q:push(function() ran[#ran + 1] = "outer"; if #ran == 1 then q:run() end end, { retries = 1 })
    q:push(function() ran[#ran + 1] = "inner"; if #ran == 2 then yield() end end, { retries = 1 })
    local co = coroutine.create(function() q:run() end)
    coroutine.resume(co); list(ran, "outer inner"); eq(q:in_flight(), 2)
    co = nil; eq(co, nil); H.collect()
    eq(q:run(), 2); eq(#ran, 4); eq(#left, 2); has(left[1], "the run that had the job was left")
    eq(H.conserved(q).in_flight, 0)
  end)

  it("runs its jobs in the coroutine that called it", function()
    local q, inside = queue.new(), nil
    q:push(function() inside = coroutine.running() end)
    local co = coroutine.create(function() q:run() end)
    coroutine.resume(co); eq(inside, co)
  end)

  it("in no coroutine fails the job that yields, with the interpreter's own error", function()
    local q, msg, ran
    q = queue.new{ on_error = function(m) msg = m end }
    q:push(function() yield() end); q:push(function() ran = true end)
    -- The suite itself may be a coroutine; a C function that cannot be yielded across stands for the main one.
    local n
    table.sort({ 2, 1 }, function(a, b) n = (n or 0) + q:run(); return a < b end)
    eq(n, 2); eq(ran, true); has(msg, "yield"); eq(q:metrics().failed, 1)
  end)

  it("on stock 5.1 fails the job that yields, and the queue goes on", function()
    if not H.lua51 then return pending("about stock 5.1") end
    local q, msg, ran
    q = queue.new{ on_error = function(m) msg = m end }
    q:push(function() yield() end); q:push(function() ran = true end)
    eq(wrap(function() return q:run() end)(), 2); eq(ran, true); has(msg, "attempt to yield across")
  end)
end)

describe("channels in a coroutine", function()
  it("wait as they do outside: the thread is blocked", function()
    local ch = queue.channel(1)
    local co = coroutine.create(function() return ch:receive(20) end)
    local t = H.timed(function() H.results(H.pack(coroutine.resume(co)), true, nil, false, "timeout") end)
    H.between(t, 20, H.patience(1000)); eq(coroutine.status(co), "dead")
  end)

  it("raise a wait without end there", function()
    local done, err = coroutine.resume(coroutine.create(function() queue.channel(1):receive() end))
    eq(done, false); has(err, "deadlock: receive on channel(0/1) can never complete")
  end)

  it("outlive the coroutine that made them", function()
    local ch, t = wrap(function() return queue.channel(1), queue.after(5, "late") end)()
    H.collect()
    ch:send(1); eq((ch:receive()), 1); eq((t:receive(H.patience(2000))), "late")
  end)

  it("carry coroutines", function()
    local ch, co = queue.channel(1), coroutine.create(function() return "ran" end)
    ch:send(co)
    eq(select(2, coroutine.resume((ch:receive()))), "ran")
  end)
end)
