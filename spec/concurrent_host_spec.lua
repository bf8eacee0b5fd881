--- Jobs side by side and who runs them: runs within runs, yields outward, waits that block the thread, strangers.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, has, noop = H.queue, H.eq, H.ok, H.list, H.has, H.noop
local yield, wrap = coroutine.yield, coroutine.wrap
local crew, add = G.crew, G.add
local not51, since54 = G.its(function() return it, pending end)

describe("a run inside a job", function()
  it("at concurrency 1 drains the rest of its own queue, and does not wait for its own job", function()
    local q, l = queue.new{ concurrency = 1 }, {}
    local inner
    q:push(function() l[#l + 1] = "a"; inner = q:run(); l[#l + 1] = "z" end)
    for i = 1, 3 do q:push(function() l[#l + 1] = i end) end
    eq(q:run(), 1); eq(inner, 3); list(l, "a 1 2 3 z")
    q:push(function() l = {}; inner = q:poll(1) end); q:push(noop); q:push(noop)
    eq(q:run(), 2); eq(inner, 1); H.conserved(q)
  end)

  --- Above 1, each way in raises where another is inside.
  local function refused(title, enter)
    it("above 1 of its own queue raises: " .. title, function()
      local q, seen = crew(2)
      q:push(function() enter(q) end); q:push(noop)
      eq(q:run(), 2); eq(#seen, 1); has(seen[1].msg, "queue is already running"); eq(H.conserved(q).succeeded, 1)
      G.at(enter, seen[1].msg, "queue is already running")
      q:push(noop); eq(q:run(), 1)
    end)
  end
  refused("run", function(q) q:run() end)
  refused("poll", function(q) q:poll() end)
  refused("poll of one", function(q) q:poll(1) end)

  it("above 1 from a callback, or from under a poll, raises too", function()
    local said = {}
    local q ---@type queue.Queue
    q = queue.new{ concurrency = 2, on_error = function() said[#said + 1] = select(2, pcall(q.run, q)) end }
    q:push(function() error("x") end); q:run(); q:push(function() error("x") end); q:poll()
    eq(#said, 2); has(said[1], "queue is already running"); has(said[2], "queue is already running")
  end)

  not51("of another queue waits as that job, three deep", function()
    local a, b, c, l = crew(), crew(), crew(), {}
    local first, second = queue.channel(), queue.channel()
    c:push(function() queue.sleep(4); second:receive(); l[#l + 1] = "c" end)
    b:push(function() eq(c:run(), 1); l[#l + 1] = "b" end)
    b:push(function() queue.sleep(2); first:receive(); l[#l + 1] = "b2"; second:close() end)
    a:push(function() eq(b:run(), 2); l[#l + 1] = "a" end); a:push(function() queue.sleep(1); l[#l + 1] = "a2"; first:close() end)
    eq(G.run(a), 2); G.fine(b); G.fine(c); list(l, "a2 b2 c b a")
  end)

  not51("gets its values from jobs of the outer one", function()
    for _, n in ipairs{ 1, 4 } do
      local outer, inner, ch, got = crew(), crew(n), queue.channel(), {}
      for _ = 1, 3 do inner:push(function() add(got, ch:receive()) end) end
      outer:push(function() eq(inner:run(), 3) end)
      outer:push(function() for i = 1, 3 do ch:send(i) end end)
      G.run(outer); G.fine(inner); list(got, "1 2 3", "concurrency " .. n)
    end
  end)

  not51("goes on when an outer job pushes to it", function()
    local outer, inner, ch, l = crew(), crew(2), queue.channel(), {}
    inner:push(function() ch:receive(); l[#l + 1] = "first" end)
    outer:push(function() eq(inner:run(), 2) end)
    outer:push(function() queue.sleep(1); inner:push(function() l[#l + 1] = "pushed"; ch:close() end) end)
    G.run(outer); G.fine(inner); list(l, "pushed first")
  end)

  it("at concurrency 1 goes on when an outer job pushes while it waits out a delay", function()
    local outer, inner, l = crew(), queue.new(), {}
    inner:push(function() l[#l + 1] = "delayed" end, { delay_ms = 100 })
    outer:push(function() eq(inner:run(), 2) end)
    outer:push(function() queue.sleep(1); inner:push(function() l[#l + 1] = "pushed" end) end)
    G.run(outer); list(l, "pushed delayed")
  end)

  not51("of one queue in two jobs: at 1 they share the work, above 1 the second is refused", function()
    local outer, inner, ends, n = crew(), queue.new(), {}, 0
    for _ = 1, 6 do inner:push(function() queue.sleep(1); n = n + 1 end) end
    for i = 1, 2 do outer:push(function() ends[i] = inner:run() end) end
    G.run(outer); eq(n, 6); eq(ends[1] + ends[2], 6); ok(ends[1] > 0 and ends[2] > 0); H.conserved(inner)

    local two, seen = crew()
    local shared = crew(2); shared:push(function() queue.sleep(1) end)
    for _ = 1, 2 do two:push(function() shared:run() end) end
    eq(two:run(), 2); eq(#seen, 1); has(seen[1].msg, "queue is already running"); G.fine(shared)
  end)

  it("may be a poll, which takes one turn and parks nobody", function()
    local outer, inner, l = crew(), crew(), {}
    inner:push(function() queue.sleep(2); l[#l + 1] = "inner" end)
    outer:push(function() eq(inner:poll(), 0); l[#l + 1] = "polled"; queue.sleep(4); eq(inner:poll(), 1) end)
    outer:push(function() l[#l + 1] = "other" end)
    G.run(outer); G.fine(inner); list(l, "polled other inner")
  end)

  not51("is ended by a stop from outside it", function()
    local outer, inner = crew(), crew()
    inner:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(inner:run(), 0) end)
    outer:push(function() queue.sleep(1); inner:stop() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000)); eq(inner:size(), 1)
    local plain = queue.new(); plain:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(plain:run(), 0) end)
    outer:push(function() queue.sleep(1); plain:stop() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000))
  end)

  it("is ended by a clear from outside it", function()
    local outer, inner = crew(), crew(1)
    inner:push(noop, { delay_ms = 1e6 })
    outer:push(function() eq(inner:run(), 0) end)
    outer:push(function() queue.sleep(1); inner:clear() end)
    H.between(H.timed(function() G.run(outer) end), 0, H.patience(2000))
  end)
end)

describe("a yield with values", function()
  not51("goes to who resumed the run, and what comes back goes to the job; the queue waits", function()
    local q, l = crew(2), {}
    q:push(function() l[#l + 1] = "a"; local back = H.pack(yield("out", nil, 3)); H.results(back, "in", nil); l[#l + 1] = "a2" end)
    q:push(function() l[#l + 1] = "b" end)
    local co = coroutine.create(function() return "ran", q:run() end)
    H.results(H.pack(coroutine.resume(co)), true, "out", nil, 3); list(l, "a"); eq(q:in_flight(), 1); eq(q:size(), 1); H.conserved(q)
    H.results(H.pack(coroutine.resume(co, "in", nil)), true, "ran", 2); list(l, "a a2 b"); G.fine(q)
  end)

  not51("may be one nil or false", function()
    local q = crew(2)
    q:push(function() H.results(H.pack(yield(nil)), 1); H.results(H.pack(yield(false))) end)
    local co = coroutine.create(function() return q:run() end)
    H.results(H.pack(coroutine.resume(co)), true, nil); H.results(H.pack(coroutine.resume(co, 1)), true, false)
    H.results(H.pack(coroutine.resume(co)), true, 1); G.fine(q)
  end)

  not51("of many jobs and many times, mixed with waits", function()
    local q, sum = crew(5), 0
    for i = 1, 20 do
      q:push(function() for j = 1, 5 do queue.sleep(0); eq(yield(i * j), -i * j); sum = sum + 1; queue.sleep(j % 2 / 10) end end)
    end
    local co, back, n = coroutine.create(function() return "done", q:run() end), nil, 0
    while true do
      local r = H.pack(coroutine.resume(co, back)); eq(r[1], true, tostring(r[2]))
      if r[2] == "done" then eq(r[3], 20); break end
      back, n = -r[2], n + 1
    end
    eq(n, 100); eq(sum, 100); G.fine(q)
  end)

  not51("under poll too", function()
    local q = crew(2); q:push(function() eq(yield("out"), "in") end)
    local co = coroutine.create(function() return "polled", q:poll() end)
    H.results(H.pack(coroutine.resume(co)), true, "out"); H.results(H.pack(coroutine.resume(co, "in")), true, "polled", 1); G.fine(q)
  end)

  not51("goes through the runs of other queues, to the outermost", function()
    for _, n in ipairs{ 1, 3 } do
      local outer, inner = crew(2), crew(n)
      inner:push(function() eq(yield("deep"), "answer") end)
      outer:push(function() eq(inner:run(), 1) end); outer:push(function() queue.sleep(1) end)
      local co = coroutine.create(function() return "done", outer:run() end)
      H.results(H.pack(coroutine.resume(co)), true, "deep"); H.results(H.pack(coroutine.resume(co, "answer")), true, "done", 2)
      G.fine(inner); G.fine(outer)
    end
  end)

  not51("keeps the queue running: another run or poll is refused meanwhile", function()
    local q = crew(2); q:push(function() yield("out") end); q:push(noop)
    local co = coroutine.create(function() return q:run() end); coroutine.resume(co)
    local run = function() q:run() end
    local poll = function() q:poll() end
    H.raises("queue is already running", run); H.raises("queue is already running", poll)
    H.results(H.pack(coroutine.resume(co)), true, 2); G.fine(q)
  end)

  not51("of a run that nobody resumes again does no harm: what is pending stays, and the queue is collected", function()
    local q = crew(2)
    do
      q:push(function() yield("out") end); q:push(noop)
      local co = coroutine.create(function() q:run() end); coroutine.resume(co)
    end
    H.collect(); H.collect()
    H.conserved(q); eq(q:size(), 1)
    local weak = setmetatable({ q }, { __mode = "v" })
    q = nil; H.collect(); H.collect(); eq(weak[1], nil)
  end)

  it("where run is in no coroutine fails that job, with the interpreter's own error", function()
    local q, seen = crew(2)
    local ran
    q:push(function() yield("out") end, { id = "bad", retries = 0 }); q:push(function() queue.sleep(1); ran = true end)
    eq(G.unyieldable(function() return q:run() end), 2)
    eq(#seen, 1); eq(seen[1].id, "bad"); has(seen[1].msg, "yield"); eq(ran, true); H.conserved(q)
    q:push(noop); eq(q:run(), 1)
  end)

  it("where run is in no coroutine is an attempt like any other: it is retried", function()
    local q, seen = crew(2)
    q:push(function() yield("out") end, { retries = 2 }); eq(G.unyieldable(function() return q:run() end), 3)
    eq(seen[1].info.attempts, 3)
  end)

  not51("that comes back as an error of the host's does not come back at all", function()
    local q = crew(2); local held = {}
    q:push(function() held[1] = true; yield("out"); held[2] = true end)
    local co = coroutine.create(function() q:run() end); coroutine.resume(co)
    if coroutine.close then coroutine.close(co); eq(held[2], nil) end
  end)
end)

describe("a wait that blocks the thread", function()
  --- `blocking` waits 10 ms where it cannot park its job, so that the other job stands still.
  local function blocks(title, blocking)
    it("in a job: " .. title, function()
      local q, seen = crew(); local l = {}
      q:push(function() blocking(function() queue.sleep(10) end); l[#l + 1] = "blocked" end)
      q:push(function() l[#l + 1] = "other" end)
      eq(q:run(), 2)
      if #seen > 0 and H.lua51 then has(seen[1].msg, "attempt to yield"); return pending("stock 5.1 raises its own error there") end
      G.fine(q); list(l, "blocked other")
      if H.lua51 then return end
      local told
      q:push(function() blocking(function() told = select(2, pcall(queue.select, {})) end) end); q:push(function() queue.sleep(5) end)
      G.run(q); has(told, "deadlock: select")
    end)
  end
  blocks("in a coroutine of the job's own making", function(wait) wrap(wait)() end)
  blocks("in a coroutine in a coroutine", function(wait) wrap(function() wrap(wait)() end)() end)
  blocks("in a table.sort callback", function(wait)
    local once; table.sort({ 2, 1 }, function(a, b) if not once then once = true; wait() end return a < b end)
  end)
  blocks("in a gsub callback", function(wait) string.gsub("x", ".", function() wait() end) end)
  blocks("in a gsub callback in a coroutine", function(wait) wrap(function() string.gsub("x", ".", function() wait() end) end)() end)

  it("raises where it is endless, though a job could have fed it", function()
    local q, ch, done, err = crew(), queue.channel(), nil, nil
    q:push(function() local co = coroutine.create(function() ch:receive() end); done, err = coroutine.resume(co) end)
    q:push(function() queue.sleep(1); ch:try_send(1) end); G.run(q)
    eq(done, false); has(err, "deadlock: receive on channel(0/0) can never complete")
  end)

  it("is fed by a timer all the same, and leaves its job able to park again", function()
    local q, t, l = crew(), queue.after(3, "t"), {}
    q:push(function() add(l, wrap(function() return (t:receive()) end)()); queue.sleep(2); l[#l + 1] = "parked" end)
    q:push(function() l[#l + 1] = "other" end)
    G.run(q); list(l, "t other parked")
  end)

  it("a yield in a coroutine of the job's own making is that coroutine's", function()
    local q, l = crew(), {}
    q:push(function() local co = wrap(function() yield(1); yield(2) end); l[#l + 1] = co(); l[#l + 1] = co() end)
    q:push(function() l[#l + 1] = "other" end); G.run(q); list(l, "1 2 other")
  end)

  it("on stock 5.1, of a concurrent job under pcall raises the interpreter's own error", function()
    if not H.lua51 then return pending("about stock 5.1") end
    local q, seen = crew(); local err
    q:push(function() err = select(2, pcall(queue.sleep, 5)) end); q:push(function() queue.sleep(1) end)
    eq(q:run(), 2); eq(#seen, 0); has(err, "attempt to yield across")
    q:push(function() queue.sleep(1) end); eq(q:run(), 1); G.fine(q)
  end)

  not51("parks, not blocks, under pcall, an iterator, a metamethod", function()
    local q, l = crew(), {}
    local mt = { __index = function(_, k) queue.sleep(1); return k end }
    q:push(function()
      pcall(queue.sleep, 1); l[#l + 1] = setmetatable({}, mt).index
      for v in function(_, last) queue.sleep(1); if not last then return "iterator" end end do l[#l + 1] = v end
    end)
    q:push(function() l[#l + 1] = "other" end); G.run(q); list(l, "other index iterator")
  end)
end)

describe("a stranger who resumes a job's coroutine", function()
  --- `wait` is entered by a job; strangers poke; then `help` ends it, and the job must get what is its own.
  local function poked(title, wait, help)
    not51("does not end its " .. title, function()
      local q, done = crew(), nil
      local co ---@type thread
      q:push(function() co = coroutine.running(); wait(); done = true end); q:poll()
      for _ = 1, 3 do coroutine.resume(co, "junk", 2); eq(done, nil) end
      q:push(function() coroutine.resume(co, "junk") end); q:poll(); eq(done, nil)
      q:push(function() help() end)
      -- A run would hang where one has ended the wait.
      ok(H.wait_for(1000, function() q:poll(); return q:in_flight() == 0 end), "its wait does not end"); G.fine(q); eq(done, true)
    end)
  end
  local ch, full
  -- The strangers must come and go before it is over.
  local while_poked = H.patience(60)
  poked("receive", function() ch = queue.channel(); H.results(H.pack(ch:receive()), "mine", true) end, function() ch:send("mine") end)
  poked("send", function() full = queue.channel(); eq(full:send("mine"), true) end, function() eq((full:receive()), "mine") end)
  poked("select", function() ch = queue.channel(); H.results(H.pack(queue.select{ false, ch }), 2, "mine", true) end,
    function() ch:send("mine") end)
  poked("sleep", function() local s = queue.now(); queue.sleep(while_poked); H.between(queue.now() - s, while_poked, 1e6) end, noop)
  poked("receive with a time", function() H.results(H.pack(queue.channel():receive(while_poked)), nil, false, "timeout") end, noop)
  poked("run of another queue", function()
    local p = crew(); p:push(function() queue.sleep(while_poked) end); eq(G.run(p), 1)
  end, noop)
  poked("iter", function() ch = queue.channel(); local n = 0; for v in ch:iter() do n = n + v end eq(n, 3) end,
    function() ch:send(1); ch:send(2); ch:close() end)

  it("at a bare yield, or to its end, does no harm to the queue", function()
    local q, n = crew(2), 0
    local co ---@type thread
    q:push(function() co = coroutine.running(); queue.sleep(0); n = n + 1 end); q:poll()
    for _ = 1, 5 do coroutine.resume(co) end
    for _ = 1, 5 do q:push(function() queue.sleep(0); n = n + 1 end) end
    q:run(); ok(n >= 5); eq(q:in_flight(), 0); H.conserved(q)
    for _ = 1, 5 do coroutine.resume(co, noop) end
    q:push(noop); q:run(); H.conserved(q)
  end)

  --- `wait` is entered by a job whose queue is then collected.
  local function bereft(title, wait)
    not51("whose queue has gone is told so by " .. title, function()
      local co, went_on ---@type thread, boolean?
      -- On a stack of its own, of which no slot can hold on to the queue.
      wrap(function()
        local q = crew(2)
        q:push(function() co = coroutine.running(); wait(); went_on = true end); q:poll()
      end)()
      H.collect()
      local done, err = coroutine.resume(co)
      eq(done, false); has(err, "the queue of this job has gone"); eq(went_on, nil); eq(coroutine.status(co), "dead")
    end)
  end
  bereft("receive", function() queue.channel():receive() end)
  bereft("send", function() queue.channel():send(1) end)
  bereft("select", function() queue.select{ queue.channel() } end)
  bereft("sleep", function() queue.sleep(1e6) end)
  bereft("sleep(0)", function() queue.sleep(0) end)

  since54("by coroutine.close does no harm to the queue", function()
    local q = queue.new{ concurrency = 2, on_error = noop }
    local co ---@type thread
    local ch2 = queue.channel()
    q:push(function() co = coroutine.running(); ch2:receive() end); q:poll()
    coroutine.close(co); ch2:try_send(1); q:push(noop)
    q:run(); q:push(noop); eq(q:run(), 1); eq(q:in_flight(), 0); H.conserved(q)
  end)
end)
