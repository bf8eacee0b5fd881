--- Garbage: cycles are collected, what is needed is kept, finalizers may use the very object at work, memory comes back.
local H = require("spec.helper")
local queue, eq, ok, noop = H.queue, H.eq, H.ok, H.noop

local function collected(title, make)
  it(title, function() H.collected(make) end)
end

describe("is collected:", function()
  collected("a queue that its own pending job captures", function(m)
    local q = queue.new(); q:push(function() return q, m end)
  end)
  collected("a queue that its own delayed job captures", function(m)
    local q = queue.new(); q:push(function() return q, m end, { delay_ms = 1e9 })
  end)
  collected("a queue that its own parked retry captures", function(m)
    local q = queue.new(); q:push(function() return error(q and m) end, { retries = 1, backoff_ms = 1e9 }); q:poll()
  end)
  collected("a queue that its on_error captures", function(m)
    local q
    q = queue.new{ on_error = function() return q, m end }
  end)
  collected("a queue that its job's payload, args and backoff hold", function(m)
    local q = queue.new(); m.q = q
    q:push(noop, { payload = m }); q:push(noop, { args = { m } })
    q:push(noop, { args = { q, m, n = 5 }, backoff_ms = function() return q, m end })
  end)
  collected("two queues that hold each other", function(m)
    local a, b = queue.new(), queue.new()
    a:push(function() return b end); b:push(function() return a, m end)
  end)
  collected("a channel that holds itself", function(m)
    local ch = queue.channel(3); ch:send(ch); ch:send(m); m.ch = ch; ch:send({ ch })
  end)
  collected("a channel that holds its own iterator", function(m)
    local ch = queue.channel(2); ch:send(ch:iter()); ch:send(m)
  end)
  collected("channels and queues in a ring", function(m)
    local a, b, q = queue.channel(1), queue.channel(1), queue.new()
    a:send(b); b:send(q); q:push(noop, { payload = { a, m } })
  end)
  collected("a stopped queue with what is pending", function(m)
    local q = queue.new(); q:push(noop, { payload = { q, m } }); q:stop()
  end)
  collected("a closed channel with what is buffered", function(m)
    local ch = queue.channel(2); ch:send({ ch, m }); ch:close()
  end)
  collected("a timer whose value holds it", function(m)
    m.timer = queue.after(1e9, m)
  end)
  collected("a timer that has fired and was never read", function(m)
    m.timer = queue.after(0, m); queue.sleep(0.2)
  end)
  collected("a ticker and its loop", function(m)
    local t = queue.tick(1e9); m.t = t; m.iter = t:iter()
  end)
  collected("what an error holds", function(m)
    local q = queue.new{ on_error = noop }; m.q = q; q:push(function() error(m) end, { payload = m }); q:run()
  end)
end)

describe("is let go, though the object lives on:", function()
  local q, ch, kept = queue.new(), queue.channel(2), {}

  collected("a job that has succeeded", function(m)
    q:push(function() return m end, { payload = m, args = { m } }); q:run()
  end)
  collected("a job that has failed, with its error", function(m)
    q:push(function() error(m) end, { payload = m, retries = 1 }); q:run()
  end)
  collected("a job that gave up in its backoff", function(m)
    q:push(function() error(m) end, { retries = 1, backoff_ms = function() return m and nil end }); q:run()
  end)
  collected("a job that was shed", function(m)
    q:push(function() return m end, { timeout_ms = 1e-3, payload = m }); queue.sleep(0.1); q:run()
  end)
  collected("a job that was cleared", function(m)
    q:push(function() return m end); q:push(noop, { delay_ms = 1e9, args = { m } }); q:clear()
  end)
  collected("a job that a full or stopped queue refused", function(m)
    local full = queue.new{ capacity = 1 }; full:push(noop); full:push(function() return m end); full:stop()
    full:push(function() return m end, { payload = m }); kept[#kept + 1] = full
  end)
  collected("what a bad push was given", function(m)
    pcall(q.push, q, function() return m end, { payload = m, args = { m }, typo = m })
    pcall(q.push, q, noop, { payload = m, id = 5 })
  end)
  collected("a value that was received", function(m)
    ch:send(m); ch:receive(); ch:try_send(m); ch:try_receive()
  end)
  collected("a value whose send timed out, was refused or raised", function(m)
    local full, none = queue.channel(1), queue.channel(); full:send(1)
    full:send(m, 0); full:send(m, 0.1); full:try_send(m); none:send(m, 0.1); none:try_send(m); pcall(none.send, none, m)
    full:close(); pcall(full.send, full, m); kept[#kept + 1] = full; kept[#kept + 1] = none
  end)
  collected("the value of a timer that was stopped or received", function(m)
    local a, b, c = queue.after(1e9, m), queue.after(0, m), queue.after(0, m)
    a:stop(); b:receive(); queue.sleep(0.2); c:stop()
    for _, t in ipairs{ a, b, c } do kept[#kept + 1] = t end
  end)
end)

describe("is kept while it is needed:", function()
  it("what waits in a queue and a channel, over many collections", function()
    local q, ch, sum = queue.new(), queue.channel(1000), 0
    for i = 1, 1000 do
      q:push(function(x) sum = sum + x[1] end, { args = { { i } }, priority = i % 5, delay_ms = i % 3 })
      ch:send({ i })
      if i % 100 == 0 then collectgarbage() end
    end
    H.collect()
    eq(q:run(), 1000); eq(sum, 500500)
    for i = 1, 1000 do eq(ch:receive()[1], i) end
  end)

  it("a queue that only its own run holds", function()
    local l = {}
    local function start()
      local q = queue.new{ on_error = function() l[#l + 1] = "told" end }
      q:push(function() H.collect(); l[#l + 1] = "one" end)
      q:push(function() error("x") end)
      q:push(function() l[#l + 1] = "two" end, { delay_ms = 2 })
      return q
    end
    eq(start():run(), 3); H.list(l, "one told two")
  end)

  it("a job that runs, its payload and args, though the queue is cleared", function()
    local seen
    local q = queue.new{ on_error = function(_, info) H.collect(); seen = info end }
    q:push(function(a) q:clear(); H.collect(); error(a) end, { args = { { "arg" } }, payload = { "payload" } })
    q:run(); eq(seen.error[1], "arg"); eq(seen.payload[1], "payload")
  end)

  it("a channel that only a wait on it holds", function()
    eq((queue.after(5, "x"):receive()), "x"); H.results(H.pack(queue.channel(1):receive(5)), nil, false, "timeout")
  end)

  it("a hundred thousand jobs, and a hundred thousand values", function()
    local q, ch, n, many = queue.new(), queue.channel(100000), 0, H.count(100000)
    for i = 1, many do q:push(function() n = n + 1 end); ok(ch:try_send({ i })) end
    eq(q:size(), many); eq(ch:len(), many); eq(q:run(), many); eq(n, many)
    for i = 1, many do if ch:receive()[1] ~= i then error("value " .. i) end end
  end)
end)

describe("a finalizer", function()
  --- Does `step` n times, each with garbage whose finalizer calls `fn`; the collector gets its chances.
  local function storm(n, fn, step)
    for i = 1, n do
      H.finalizer(fn)
      step(i)
      if i % 200 == 0 then collectgarbage() elseif i % 3 == 0 then collectgarbage("step") end
    end
    H.collect()
  end
  local many = H.count(10000)

  it("that pushes to the queue at work loses no job and doubles none", function()
    local q, pushed, ran = queue.new(), 0, 0
    local function job() ran = ran + 1 end
    local function push() if q:push(job, { args = { {} }, id = "x" .. pushed }) then pushed = pushed + 1 end end
    storm(many, push, function(i) push(); if i % 7 == 0 then q:poll(10) end end)
    q:run(); storm(10, noop, noop); q:run()
    eq(ran, pushed); ok(pushed > many); eq(H.conserved(q).enqueued, pushed)
  end)

  it("that pushes and polls while jobs run", function()
    local q, pushed, ran = queue.new(), 0, 0
    local function job() ran = ran + 1; H.finalizer(function() pushed = pushed + 1; q:push(noop); q:poll(2) end) end
    for _ = 1, many do pushed = pushed + 1; q:push(job, { args = { {} } }) end
    while q:size() > 0 do q:run(); H.collect() end
    eq(ran, many); eq(H.conserved(q).succeeded, pushed)
  end)

  it("that clears the queue at work drops each job once", function()
    local q, pushed, ran, cleared = queue.new(), 0, 0, 0
    local function job() ran = ran + 1 end
    storm(many, function() cleared = cleared + q:clear() end, function(i)
      ok(q:push(job, { payload = {}, delay_ms = i % 2 })); pushed = pushed + 1
      if i % 11 == 0 then q:poll(5) end
    end)
    q:run(); cleared = cleared + q:clear()
    eq(ran + cleared, pushed); ok(cleared > 0); H.conserved(q, { cleared = cleared })
  end)

  it("that fills a bounded queue never goes over the bound", function()
    local q, accepted, refused = queue.new{ capacity = 20 }, 0, 0
    local function push() if q:push(noop, { args = { {} } }) then accepted = accepted + 1 else refused = refused + 1 end end
    storm(many, push, function(i) push(); H.between(q:size(), 0, 20); if i % 60 == 0 then q:poll() end end)
    eq(H.conserved(q, { refused = refused }).enqueued, accepted); ok(accepted > 0 and refused > 0)
  end)

  it("that sends and receives on the channel at work keeps every value", function()
    local ch, sent, got = queue.channel(50), 0, 0
    local function send() if ch:try_send({}) then sent = sent + 1 end end
    local function receive() local v = ch:try_receive(); if v then eq(type(v), "table"); got = got + 1 end end
    local turn = 0
    storm(many, function() turn = turn + 1; if turn % 3 == 0 then receive() else send() end end, function(i)
      if i % 2 == 0 then send() else receive() end
    end)
    while ch:len() > 0 do receive() end
    eq(got, sent); ok(sent > 50)
  end)

  it("that closes the channel at work", function()
    local closed = 0
    for i = 1, H.count(300) do
      local ch, sent = queue.channel(1e6), 0
      H.finalizer(function() ch:close() end)
      for j = 1, 50 do
        if j == i % 50 then collectgarbage() end
        if ch:try_send({}) then sent = sent + 1 end
      end
      eq(ch:len(), sent)
      if ch:is_closed() then closed = closed + 1; ok(sent < 50) end
    end
    ok(closed > 10)
  end)

  it("that makes and drops objects of the module", function()
    storm(H.count(3000), function()
      local q = queue.new(); q:push(function() return q end)
      local ch = queue.channel(1); ch:send(ch)
    end, function() queue.new():push(noop); queue.channel(2):send({}) end)
  end)

  it("that stops and reads timers while others are made", function()
    for i = 1, H.count(300) do
      local t = queue.tick(0.5)
      H.finalizer(function() t:try_receive(); t:stop() end)
      queue.after(i % 2 == 0 and 0.1 or 1e6, {})
    end
    H.collect()
    local before = H.quiet_threads()
    ok(not before or before < 100, "threads are left")
  end)
end)

describe("memory", function()
  --- Runs `work` some times to warm up and some times more: resident memory and Lua's own must not have grown.
  local function flat(name, kib, work)
    it(name, function()
      for _ = 1, 3 do work() end
      H.collect()
      local lua, resident = collectgarbage("count"), H.resident()
      for _ = 1, 6 do work() end
      H.collect()
      H.between(collectgarbage("count") - lua, -1e9, 500, "KiB of Lua's own")
      if resident then H.between(H.resident() - resident, -1e9, kib, "KiB resident") end
    end)
  end
  local n = H.count(10000)

  flat("stays flat over jobs", 6000, function()
    local q = queue.new()
    for i = 1, n do q:push(noop, { priority = i % 9, args = { i } }) end
    q:run()
  end)
  flat("stays flat over one queue's life", 6000, (function()
    local q = queue.new()
    return function()
      for i = 1, n do q:push(noop, { id = "some id " .. i, delay_ms = i % 2, payload = {} }); if i % 10 == 0 then q:poll() end end
      q:run()
    end
  end)())
  flat("stays flat over failures and retries", 6000, (function()
    local q = queue.new{ on_error = noop }
    return function() for _ = 1, n / 100 do q:push(function() error({}) end, { retries = 2 }) end q:run() end
  end)())
  flat("stays flat over channels and values", 6000, function()
    local ch = queue.channel(n)
    for i = 1, n do ch:send({ i }) end
    for _ = 1, n / 2 do ch:receive() end
    for i = 1, n do queue.channel(4):send({}); if i % 1000 == 0 then H.collect() end end
  end)
  flat("stays flat over queues that their own jobs capture", 6000, function()
    for i = 1, n do
      local q = queue.new(); q:push(function() return q end, { delay_ms = 1e6 })
      if i % 1000 == 0 then H.collect() end
    end
  end)
  flat("stays flat over dropped timers", 10000, function()
    for i = 1, H.count(500) do queue.after(1e6, { i }); queue.tick(1e6); if i % 100 == 0 then H.collect() end end
  end)
  flat("stays flat over waits that time out", 6000, (function()
    local ch = queue.channel()
    return function() for _ = 1, n / 10 do ch:receive(1e-3); ch:send({}, 1e-3); pcall(ch.receive, ch) end end
  end)())
  flat("stays flat over misuse", 6000, (function()
    local q = queue.new()
    return function() for _ = 1, n do pcall(q.push, q, noop, { args = {}, payload = {}, typo = 1 }) end end
  end)())

  it("of a burst of jobs comes back to Lua, though the queue lives", function()
    local q = queue.new()
    q:push(noop); q:run(); H.collect()
    local before = collectgarbage("count")
    for _ = 1, n do q:push(function() return n end, { args = { 1 } }) end
    local full = collectgarbage("count"); q:run(); H.collect()
    for _ = 1, 100 do q:push(noop); q:run() end
    H.collect()
    H.between(collectgarbage("count") - before, -1e9, math.max(64, (full - before) / 10), "KiB after a burst of " .. full - before)
  end)

  it("of a burst of values comes back to Lua, though the channel lives", function()
    local ch = queue.channel(n)
    H.collect()
    local before = collectgarbage("count")
    for i = 1, n do ch:send({ i }) end
    local full = collectgarbage("count")
    for _ = 1, n do ch:receive() end
    for i = 1, 100 do ch:send({ i }); ch:receive() end
    H.collect()
    H.between(collectgarbage("count") - before, -1e9, math.max(64, (full - before) / 10), "KiB after a burst of " .. full - before)
  end)

  it("of a cleared burst comes back to Lua", function()
    local q = queue.new(); H.collect()
    local before = collectgarbage("count")
    for _ = 1, n do q:push(function() return n end, { args = { 1 } }) end
    local full = collectgarbage("count")
    eq(q:clear(), n); H.collect()
    H.between(collectgarbage("count") - before, -1e9, math.max(64, (full - before) / 10), "KiB after a burst of " .. full - before)
  end)
end)
