--- The end of jobs side by side: stop, clear and what is counted, closing, collection.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, list, noop = H.queue, H.eq, H.list, H.noop
local yield = coroutine.yield
local crew = G.crew
local not51, since54, collected = G.its(function() return it, pending end)

describe("stop, clear and metrics", function()
  it("stop lets what is in flight finish and starts nothing more", function()
    local q, l = crew(2), {}
    q:push(function() queue.sleep(5); l[#l + 1] = "slow"; queue.sleep(1); l[#l + 1] = "slower" end)
    q:push(function() q:stop() end); q:push(function() l[#l + 1] = "never" end)
    eq(q:run(), 2); list(l, "slow slower"); eq(q:size(), 1); eq(q:run(), 0)
    eq(select(2, q:push(noop)), "queue is stopped"); H.conserved(q, { refused = 1 })
  end)

  it("a job in flight that raises after the stop has failed and is not retried", function()
    local q, seen = crew(2)
    q:push(function() queue.sleep(3); error("x") end, { retries = 5 }); q:push(function() q:stop() end)
    eq(q:run(), 2); eq(#seen, 1); eq(seen[1].info.attempts, 1); eq(H.conserved(q).retried, 0)
  end)

  -- Stock 5.1 cannot yield out of the call that guards a backoff_ms.
  for n = 1, 2 do
    not51("a run that is left while a backoff_ms has yielded outward: its job has failed for the next one, at " .. n, function()
      local q, seen = crew(n)
      q:push(function() error("x") end, { id = "left", retries = 1, backoff_ms = function() yield("outward"); return 0 end })
      local co = coroutine.create(function() q:run() end)
      eq(select(2, coroutine.resume(co)), "outward"); eq(q:status("left"), "running")
      co = nil; eq(co, nil); H.collect()
      eq(q:next_due(), 0); q:run()
      eq(#seen, 1); eq(seen[1].info.id, "left"); eq(q:status("left"), nil); eq(H.conserved(q).failed, 1)
      q:push(noop); eq(q:run(), 1)
    end)
  end

  it("a parked retry stays after a stop, and is counted", function()
    local q = crew(2)
    q:push(function() queue.sleep(0); error("x") end, { retries = 1, backoff_ms = 1e6 })
    q:poll(); q:poll(); q:stop(); q:run()
    local m = H.conserved(q); eq(m.pending, 1); eq(m.retried, 1); eq(m.failed, 0)
  end)

  it("run returns once stopped though another thread of work waits for ever outside", function()
    local q, ch = crew(2), queue.channel(1)
    q:push(function() ch:send(1); queue.sleep(1); q:stop() end); eq(G.run(q), 1)
  end)

  it("clear drops what is pending and leaves what is parked", function()
    local q, done = crew(2), 0
    for _ = 1, 5 do q:push(function() queue.sleep(2); done = done + 1 end) end
    q:poll(); eq(q:in_flight(), 2); eq(q:clear(), 3); eq(q:in_flight(), 2); H.conserved(q, { cleared = 3 })
    eq(q:run(), 2); eq(done, 2); H.conserved(q, { cleared = 3 })
  end)

  it("in_flight is the started ones, size the pending", function()
    local q, ch = crew(3), queue.channel()
    for _ = 1, 5 do q:push(function() ch:receive() end) end
    eq(q:in_flight(), 0); q:poll(); local m = H.conserved(q)
    eq(m.in_flight, 3); eq(q:in_flight(), 3); eq(m.pending, 2); eq(#q, 2); eq(q:empty(), false)
    eq(tostring(q), "queue(pending=2)"); ch:close(); eq(q:run(), 5); H.conserved(q)
  end)

  it("the time of an attempt includes its waits, and waiting for a slot is a wait", function()
    local q = crew(2)
    for _ = 1, 3 do q:push(function() queue.sleep(15) end) end
    G.run(q)
    local m = q:metrics(); H.between(m.max_exec_ms, 15, H.patience(1000)); H.between(m.max_wait_ms, 15, H.patience(1000))
    H.between(m.avg_exec_ms, 15, H.patience(1000))
  end)

  it("nothing is lost, whatever happens", function()
    for seed = 1, H.count(60) do
      math.randomseed(seed)
      local r, ch = math.random, queue.channel(2)
      local q = queue.new{ concurrency = r(2, 5), capacity = r(10, 40), on_error = noop }
      local lost = { refused = 0, cleared = 0 }
      local function job()
        local x = r(8)
        if x == 1 then queue.sleep(r() / 2) elseif x == 2 then ch:send(1, 0.3) elseif x == 3 then ch:receive(0.3)
        elseif x == 4 then error("x") elseif x == 5 then queue.sleep(0); error("y")
        elseif x == 6 then queue.select({ ch, { ch, 1 } }, 0.2) elseif x == 7 then queue.sleep(0); queue.sleep(0)
        elseif not q:push(noop) then lost.refused = lost.refused + 1 end
        H.conserved(q, lost)
      end
      for _ = 1, 60 do
        local x = r(10)
        if x < 7 then
          local id = q:push(job, { retries = r(0, 2), delay_ms = r(0, 1), timeout_ms = r(0, 2), priority = r(3), backoff_ms = r(0, 1) })
          if not id then lost.refused = lost.refused + 1 end
        elseif x < 10 then q:poll(r(0, 3)) else lost.cleared = lost.cleared + q:clear() end
        H.conserved(q, lost)
      end
      if seed % 3 == 0 then q:stop() end
      q:run(); eq(H.conserved(q, lost).in_flight, 0)
    end
  end)
end)

describe("closing a queue with parked jobs", function()
  --- Lua 5.4's syntax, which the others cannot read.
  local function chunk(text) return assert(load(text)) end

  since54("closes their coroutines and counts them as cancelled", function()
    local q = crew(3)
    local log, ch = {}, queue.channel()
    local job = chunk[[
      local ch, log, name = ...
      local guard <close> = setmetatable({}, { __close = function(_, err) log[#log + 1] = name .. ":" .. tostring(err) end })
      ch:receive()
      log[#log + 1] = "went on"
    ]]
    for i = 1, 3 do q:push(job, { args = { ch, log, "job" .. i } }) end
    q:push(noop); q:push(noop, { delay_ms = 1e6 }); q:poll()
    chunk("local q <close> = ...")(q)
    table.sort(log); list(log, "job1:nil job2:nil job3:nil")
    local m = H.conserved(q, { cleared = 2 }); eq(m.cancelled, 3); eq(m.in_flight, 0); eq(m.pending, 0); eq(q:is_stopped(), true)
    eq(select(2, ch:try_send(1)), "full"); eq(q:run(), 0); eq(q:next_due(), nil); eq(m.failed, 0)
  end)

  since54("gives back what they had been handed, and drops what they wanted to send", function()
    local q, ch, out = crew(), queue.channel(2), queue.channel()
    q:push(function() ch:receive() end); q:push(function() out:send("never") end); q:push(function() queue.select{ { out, "nor" } } end)
    q:poll(); eq(ch:try_send("back"), true); eq(ch:len(), 0)
    chunk("local q <close> = ...")(q)
    eq(ch:len(), 1); H.results(H.pack(ch:try_receive()), "back", true); eq(select(3, out:try_receive()), "empty")
    eq(H.conserved(q).cancelled, 3)
  end)

  since54("gives back in order, to the next who waits where there is one", function()
    local a, b, ch, got = crew(), crew(), queue.channel(), nil
    a:push(function() ch:receive() end); a:poll(); b:push(function() got = ch:receive() end); b:poll()
    eq(ch:try_send("v"), true)
    chunk("local q <close> = ...")(a); eq(b:run(), 1); G.fine(b); eq(got, "v")
  end)

  since54("leaves a sender whose value was taken: that was sent", function()
    local q, ch = crew(), queue.channel()
    q:push(function() ch:send("v") end); q:poll(); eq((ch:try_receive()), "v"); chunk("local q <close> = ...")(q)
    eq(H.conserved(q).cancelled, 1); eq(select(3, ch:try_receive()), "empty")
  end)

  since54("takes an inner queue's waiting run along", function()
    local outer, inner, log = crew(), crew(), {}
    local job = chunk[[
      local log = ...
      local guard <close> = setmetatable({}, { __close = function() log[#log + 1] = "closed" end })
      ;(require("queue")).sleep(1e6)
    ]]
    package.loaded.queue = package.loaded.queue or queue
    inner:push(job, { args = { log } }); outer:push(function() inner:run() end); outer:poll()
    chunk("local q <close> = ...")(outer); eq(H.conserved(outer).cancelled, 1)
    chunk("local q <close> = ...")(inner); list(log, "closed"); H.conserved(inner)
  end)

  since54("of its own, from inside a job, is no crash", function()
    local q, ch = crew(), queue.channel()
    q:push(function() ch:receive() end); q:push(function() chunk("local q <close> = ...")(q) end); q:push(noop)
    q:run(); local m = H.conserved(q, { cleared = 1 }); eq(m.in_flight, 0); eq(m.cancelled, 1)
  end)

  since54("a failed job's own to-be-closed variables are closed, with the error", function()
    local q, seen = crew(); local log = {}
    local job = chunk[[
      local log, sleep = ...
      local guard <close> = setmetatable({}, { __close = function(_, err) log[#log + 1] = tostring(err) end })
      sleep(1); error("mine", 0)
    ]]
    q:push(job, { args = { log, queue.sleep } }); q:push(function() queue.sleep(2) end); q:run()
    list(log, "mine"); eq(seen[1].msg, "mine")
  end)
end)

describe("is collected:", function()
  collected("a queue whose parked job captures it", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.channel():receive(); return q, m end); q:poll()
  end)
  collected("a queue whose sleeping job captures it", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.sleep(1e7); return q, m end); q:poll()
  end)
  collected("a queue with jobs that wait for each other", function(m)
    local q, a, b = queue.new{ concurrency = 3 }, queue.channel(), queue.channel()
    q:push(function() a:receive(); b:send(m) end); q:push(function() b:receive(); a:send(q) end); q:poll()
  end)
  collected("a value that a parked job wants to send", function(m)
    local q = queue.new{ concurrency = 2 }; q:push(function() queue.channel():send(m) end); q:poll()
  end)
  collected("values that a parked select wants to send", function(m)
    local q = queue.new{ concurrency = 2 }
    q:push(function() queue.select{ { queue.channel(), m }, { queue.channel(), q } } end); q:poll()
  end)
  collected("a queue in whose job another is run", function(m)
    local q, p = queue.new{ concurrency = 2 }, queue.new{ concurrency = 2 }
    p:push(function() queue.sleep(1e7); return m, q, p end); q:push(function() p:run() end); q:poll()
  end)
  collected("a queue whose job was handed a value", function(m)
    local q, ch = queue.new{ concurrency = 2 }, queue.channel()
    q:push(function() ch:receive(); return q end); q:poll(); ch:try_send(m)
  end)
  collected("what a job held that is done, though its coroutine serves on", (function()
    local q = queue.new{ concurrency = 2 }
    return function(m) q:push(function() queue.sleep(0); return m end, { args = { m } }); q:run() end
  end)())
  collected("what a job yielded and what it was answered", (function()
    local q = queue.new{ concurrency = 2 }
    return function(m)
      if H.lua51 then return end
      q:push(function() yield(m) end); local co = coroutine.create(function() q:run() end)
      coroutine.resume(co); coroutine.resume(co, m)
    end
  end)())

  it("and its parked jobs wait on the channel no more", function()
    local ch, full, other = queue.channel(), queue.channel(1), queue.channel()
    full:send("kept")
    for _ = 1, 3 do
      local q = queue.new{ concurrency = 9 }
      for _ = 1, 3 do
        q:push(function() ch:receive() end); q:push(function() full:send("lost") end); q:push(function() queue.select{ other, ch } end)
      end
      q:poll()
    end
    H.collect(); H.collect()
    eq(select(2, ch:try_send(1)), "full"); eq((full:try_receive()), "kept"); eq(full:len(), 0); eq(select(2, other:try_send(1)), "full")
  end)

  it("and what its jobs wanted to send is let go with the channel's next send", function()
    local full, unsent = queue.channel(1), setmetatable({}, { __mode = "v" })
    full:send("kept")
    -- On a stack of its own, of which no slot can hold on to the queue.
    coroutine.wrap(function()
      local q = crew(2)
      q:push(function() local v = {}; unsent[1] = v; full:send(v) end); q:poll()
    end)()
    H.collect()
    eq(select(2, full:try_send({})), "full"); H.collect(); eq(unsent[1], nil)
    H.results(H.pack(full:try_receive()), "kept", true); eq(full:len(), 0)
  end)

  it("never while it is run", function()
    local n = 0
    local function go()
      local q = queue.new{ concurrency = 5 }
      for _ = 1, 20 do q:push(function() queue.sleep(0); collectgarbage(); n = n + 1; queue.sleep(0.1) end) end
      return q
    end
    eq(go():run(), 20); eq(n, 20)
  end)

  it("memory stays flat over parked jobs, queues and dead ends", function()
    local function work()
      for _ = 1, H.count(300) do
        local q, ch = queue.new{ concurrency = 10, on_error = noop }, queue.channel()
        for _ = 1, 10 do q:push(function() ch:receive(); return q end) end
        q:poll(); ch:try_send({}); q:poll()
      end
      local q = queue.new{ concurrency = 10, on_error = noop }
      for _ = 1, H.count(1000) do
        q:push(function() queue.select({ queue.channel() }, 0.01) end); q:push(function() queue.channel():receive() end)
      end
      q:run(); H.collect()
    end
    for _ = 1, 3 do work() end
    local lua, resident = collectgarbage("count"), H.resident()
    for _ = 1, 5 do work() end
    H.between(collectgarbage("count") - lua, -1e9, 500, "KiB of Lua's own")
    if resident then H.between(H.resident() - resident, -1e9, 6000, "KiB resident") end
  end)

  it("a finalizer that uses the queue at work loses no job", function()
    local q, pushed, ran = queue.new{ concurrency = 20 }, 0, 0
    local ch = queue.channel(5)
    local function job() queue.sleep(0); ran = ran + 1; ch:try_send({}) end
    for i = 1, H.count(3000) do
      H.finalizer(function() q:push(job); pushed = pushed + 1; ch:try_receive() end)
      q:push(job, { args = { {} } }); pushed = pushed + 1
      if i % 50 == 0 then pcall(q.poll, q) end
      if i % 200 == 0 then collectgarbage() end
    end
    H.collect(); q:run(); H.collect(); q:run()
    eq(ran, pushed); H.conserved(q)
  end)
end)
