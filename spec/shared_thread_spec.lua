--- Shared channels between OS threads that each run a Lua of their own.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list = H.queue, H.eq, H.ok, H.list
local crew, add = G.crew, G.add
local with = H.with(function() return it, pending end)

-- Names are never used twice: a channel that is left open lives as long as the process.
local names = 0
local function fresh() names = names + 1; return "shared_thread_spec " .. names end

--- What the threads run first: it has no upvalues. Errors go to a channel that the main thread reads.
local function boot(dumped, cpath, report, a, b, c)
  package.cpath = cpath
  local queue_there = require("queue")
  local body = (loadstring or load)(dumped) ---@type function
  local done, err = pcall(body, queue_there, a, b, c)
  if not done then queue_there.shared(report, 100):try_send(tostring(err)) end
end
local function boot_cqueues(_, dumped, code, ...) return (loadstring or load)(code)(dumped, ...) end

local hosts = {}
function hosts.luv(uv, report, fn, a, b, c)
  local thread = uv.new_thread(boot, string.dump(fn), package.cpath, report, a, b, c)
  return function() thread:join() end
end
hosts["cqueues.thread"] = function(lib, report, fn, a, b, c)
  -- Arguments of its threads are strings, numbers and booleans; nil at the end is none.
  local args = H.pack(a, b, c)
  local thread = assert(lib.start(boot_cqueues, string.dump(fn), string.dump(boot), package.cpath, report, H.unpack(args, 1, 3)))
  return function() assert(thread:join()) end
end

for host, start in pairs(hosts) do
  describe("between threads of " .. host .. ", a shared channel", function()
    --- `body(spawn, join, name)`: `spawn(fn, a, b, c)` runs fn(queue, a, b, c) in a new thread; `join()` waits for all of them.
    local function threads(title, body)
      with(host, title, function(lib)
        local report, joins = fresh(), {}
        local errors = queue.shared(report, 100)
        local function spawn(fn, a, b, c) joins[#joins + 1] = start(lib, report, fn, a, b, c) end
        local function join()
          for i = 1, #joins do joins[i]() end
          joins = {}
          local err = errors:try_receive()
          if err then error("in a thread: " .. err, 2) end
        end
        local done, err = pcall(body, spawn, join, fresh())
        if not done then
          local theirs = errors:receive(20)
          error(tostring(err) .. (theirs and "; in a thread: " .. theirs or ""), 0)
        end
        join()
      end)
    end
    -- No test waits for ever.
    local long = H.patience(20000)

    threads("carries every kind, both ways", function(spawn, join, name)
      local to, back = queue.shared(name, 4), queue.shared(name .. " back", 4)
      spawn(function(q, n) local a, b = q.shared(n), q.shared(n .. " back"); for v in a:iter() do b:send(v) end b:close() end, name)
      local t = { 1, 2, k = { d = true }, s = "a\0b" }; t.self = t
      for _, v in ipairs{ 7, 1.5, "a\0b", true, false, 2 ^ 53, -0.0, ("x"):rep(1e6) } do to:send(v); eq((back:receive(long)), v) end
      to:send(t); local r = back:receive(long)
      eq(r[2], 2); eq(r.k.d, true); eq(r.s, "a\0b"); eq(r.self, r)
      to:send(to); eq(back:receive(long):cap(), 4)
      if H.integers then
        to:send(3); to:send(3.0); eq(math.type(back:receive(long)), "integer"); eq(math.type(back:receive(long)), "float")
      end
      to:close(); H.results(H.pack(back:receive(long)), nil, false, "closed"); join()
    end)

    threads("without a buffer is a rendezvous", function(spawn, join, name)
      local ch, n = queue.shared(name), H.count(5000)
      spawn(function(q, nm, count) local c = q.shared(nm); for i = 1, count do c:send(i) end c:close() end, name, n)
      for i = 1, n do if ch:receive(long) ~= i then error("value " .. i) end end
      eq(select(3, ch:receive(long)), "closed"); join()
    end)

    threads("has many producers and consumers: each value once, each producer's in order", function(spawn, join, name)
      local each, out = H.count(3000), queue.shared(name .. " out", 100)
      queue.shared(name, 7)
      for p = 1, 3 do
        spawn(function(q, nm, producer, count)
          local c = q.shared(nm)
          for i = 1, count do c:send({ p = producer, i = i }) end
          q.shared(nm .. " out"):send({ done = producer })
        end, name, p, each)
      end
      for _ = 1, 3 do
        spawn(function(q, nm)
          local c, result = q.shared(nm), q.shared(nm .. " out")
          local last, count, sum, ordered = {}, 0, 0, true
          for v in c:iter() do
            if v.i <= (last[v.p] or 0) then ordered = false end
            last[v.p] = v.i; count = count + 1; sum = sum + v.i
          end
          result:send({ count = count, sum = sum, ordered = ordered })
        end, name)
      end
      for _ = 1, 3 do ok(out:receive(long).done) end
      queue.shared(name):close()
      local count, sum = 0, 0
      for _ = 1, 3 do local r = out:receive(long); eq(r.ordered, true); count = count + r.count; sum = sum + r.sum end
      eq(count, 3 * each); eq(sum, 3 * each * (each + 1) / 2); join()
    end)

    threads("plays ping-pong", function(spawn, join, name)
      local there, back, n = queue.shared(name), queue.shared(name .. " back"), H.count(3000)
      spawn(function(q, nm) local a, b = q.shared(nm), q.shared(nm .. " back"); for v in a:iter() do b:send(v + 1) end end, name)
      for i = 1, n do there:send(i); if back:receive(long) ~= i + 1 then error("round " .. i) end end
      there:close(); join()
    end)

    threads("that is closed wakes who waits there: receivers, senders, selects, jobs", function(spawn, join, name)
      local out = queue.shared(name .. " out", 10)
      local r, s = queue.shared(name .. " r"), queue.shared(name .. " s")
      spawn(function(q, nm)
        local c = q.shared(nm .. " r"); local _, open, why = c:receive(); q.shared(nm .. " out"):send(tostring(open) .. why)
      end, name)
      spawn(function(q, nm)
        local c = q.shared(nm .. " s"); local done, err = pcall(c.send, c, 1)
        q.shared(nm .. " out"):send(tostring(done) .. err:match("send on closed channel"))
      end, name)
      spawn(function(q, nm)
        local i, v, open = q.select{ q.channel(), q.shared(nm .. " r") }; q.shared(nm .. " out"):send(i .. tostring(v) .. tostring(open))
      end, name)
      spawn(function(q, nm)
        local jobs, o = q.new{ concurrency = 5 }, q.shared(nm .. " out")
        jobs:push(function() local _, _, why = q.shared(nm .. " r"):receive(); o:send("job " .. why) end)
        jobs:push(function() q.select{ { q.shared(nm .. " s"), 1 } } end)
        jobs:run(); o:send(jobs:metrics().failed .. " failed")
      end, name)
      H.results(H.pack(out:receive(H.patience(50))), nil, false, "timeout")
      r:close(); s:close()
      local said = {}
      for _ = 1, 5 do add(said, out:receive(long)) end
      table.sort(said); eq(table.concat(said, "|"), "1 failed|2nilfalse|falseclosed|falsesend on closed channel|job closed"); join()
    end)

    threads("outlives a state that ends while others wait, and what that had parked swallows nothing", function(spawn, join, name)
      local ch, sink = queue.shared(name), queue.shared(name .. " sink")
      local parked = function(q, nm)
        local jobs = q.new{ concurrency = 10 }
        for _ = 1, 3 do
          jobs:push(function() q.shared(nm):receive() end); jobs:push(function() q.shared(nm .. " sink"):send("never") end)
          jobs:push(function() q.select{ q.shared(nm), { q.shared(nm .. " sink"), "never" } } end)
        end
        jobs:poll()
      end
      spawn(parked, name); join()
      eq(select(2, ch:try_send("v")), "full", "a dead state still receives")
      eq(select(3, sink:try_receive()), "empty", "a dead state still sends")
      -- and while this one waits
      spawn(parked, name); spawn(function(q, nm) q.sleep(20); q.shared(nm .. " x"):send("late") end, name)
      H.results(H.pack(queue.shared(name .. " x"):receive(long)), "late", true); join()
      spawn(function(q, nm) q.sleep(10); q.shared(nm):send("alive") end, name)
      spawn(parked, name .. " other"); eq((ch:receive(long)), "alive"); join()
    end)

    threads("gets back what was handed to a state that ends", function(spawn, join, name)
      local ch, go = queue.shared(name, 3), queue.shared(name .. " go")
      spawn(function(q, nm)
        local jobs = q.new{ concurrency = 10 }
        jobs:push(function() q.shared(nm):receive() end); jobs:poll(); q.shared(nm .. " go"):send("parked"); q.shared(nm .. " go"):receive()
      end, name)
      eq((go:receive(long)), "parked"); eq(ch:try_send({ "handed" }), true); eq(ch:len(), 0); go:send("end"); join()
      eq(ch:len(), 1); eq(ch:receive(long)[1], "handed")
    end)

    threads("keeps its name while another state has a handle, no longer", function(spawn, join, name)
      local go = queue.shared(name .. " go")
      spawn(function(q, nm)
        local c, g = q.shared(nm, 1), q.shared(nm .. " go")
        c:close(); g:send(1); g:receive(); c:len()
      end, name)
      go:receive(long); H.collect(); eq(queue.shared(name):is_closed(), true); H.collect(); eq(queue.shared(name):is_closed(), true)
      go:send(1); join(); H.collect(); H.collect(); eq(queue.shared(name, 2):is_closed(), false)
    end)

    threads("is fed by a job that a ticker feeds", function(spawn, join, name)
      local ch = queue.shared(name, 2)
      spawn(function(q, nm)
        local tick, mid, jobs = q.tick(1), q.channel(), q.new{ concurrency = 4 }
        jobs:push(function() for i = 1, 10 do tick:receive(); mid:send(i) end tick:stop(); mid:close() end)
        jobs:push(function()
          local c = q.shared(nm)
          while true do local v, open = mid:receive(); if not open then break end c:send({ beat = v }) end
          c:close()
        end)
        jobs:run()
      end, name)
      local n = 0
      for v in ch:iter() do n = n + 1; eq(v.beat, n) end
      eq(n, 10); join()
    end)

    threads("wakes a run all of whose jobs wait on it, and lets timers go on", function(spawn, join, name)
      local q, got, beats, ch = crew(), {}, 0, queue.shared(name)
      for _ = 1, 3 do q:push(function() local v = ch:receive(); add(got, v) end) end
      spawn(function(qq, nm) for i = 1, 3 do qq.sleep(10); qq.shared(nm):send(i) end end, name)
      q:push(function() while #got < 3 do queue.sleep(1); beats = beats + 1 end end)
      G.run(q); list(got, "1 2 3"); ok(beats > 3); join()
    end)

    threads("wakes a run that has nothing else, without burning time", function(spawn, join, name)
      local q, ch, got = crew(), queue.shared(name), nil
      q:push(function() got = ch:receive() end); spawn(function(qq, nm) qq.sleep(120); qq.shared(nm):send("late") end, name)
      local before = os.clock(); G.run(q); eq(got, "late"); H.between(os.clock() - before, 0, 0.08 * H.slow); join()
    end)

    threads("stands a select on both sides, with time limits", function(spawn, join, name)
      local a, b, n, sum = queue.shared(name .. " a"), queue.shared(name .. " b", 1), H.count(2000), 0
      spawn(function(q, nm, count)
        local x, y = q.shared(nm .. " a"), q.shared(nm .. " b")
        for i = 1, count do
          while not q.select({ { x, i }, { y, i } }, i % 2 == 0 and 0.05 or 1000) do q.sleep(0) end
        end
        x:close(); y:close()
      end, name, n)
      local cases, open = { a, b }, 2
      while open > 0 do
        local i, v, more = queue.select(cases, long)
        if not i then error("nothing came") end
        if more then sum = sum + v else cases[i] = false; open = open - 1 end
      end
      eq(sum, n * (n + 1) / 2); join()
    end)

    threads("loses nothing over timed sends and receives and a close", function(spawn, join, name)
      for round = 1, H.count(20) do
        local nm = name .. round
        local ch, out = queue.shared(nm), queue.shared(nm .. " out", 2)
        spawn(function(q, channel)
          local c, sent = q.shared(channel), 0
          while true do
            local done, went = pcall(c.send, c, 1, 0.02)
            if not done then break end
            if went then sent = sent + 1 end
          end
          q.shared(channel .. " out"):send(sent)
        end, nm)
        local got, last = 0, queue.now() + 3
        while queue.now() < last do if ch:receive(0.02) then got = got + 1 end end
        ch:close(); if ch:receive(0) then got = got + 1 end
        local sent = out:receive(long); eq(got, sent); join()
      end
    end)

    threads("is reached from a job of each, by the channel that was sent along", function(spawn, join, name)
      local requests = queue.shared(name, 5)
      spawn(function(q, nm)
        local jobs = q.new{ concurrency = 5 }
        for _ = 1, 3 do
          jobs:push(function()
            local c = q.shared(nm)
            while true do local r, open = c:receive(); if not open then return end q.sleep(0.1); r.reply:send(r.n * 2) end
          end)
        end
        jobs:run()
      end, name)
      local q, sum = crew(), 0
      for i = 1, 30 do
        q:push(function()
          local reply = queue.shared(name .. " reply " .. i); requests:send({ n = i, reply = reply })
          local twice = reply:receive(); reply:close(); sum = sum + twice
        end)
      end
      G.run(q); eq(sum, 930); requests:close(); join()
    end)
  end)
end
