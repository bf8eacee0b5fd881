--- Go's channels, rule by rule: each test is named by the sentence of the Go Programming Language Specification (or of
-- The Go Memory Model, or of package time) that it holds this module to. A goroutine is a job of a queue without a bound.
--
-- Where this module has its own rule the test says so: a receive tells `ok` as a second value; closing twice is no error;
-- `false` in a select is the nil channel; a stopped timer's channel is closed; nil is no value.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, list, has, noop = H.queue, H.eq, H.list, H.has, H.noop
local crew, add, jobs = G.crew, G.add, G.jobs
local not51 = G.its(function() return it, pending end)

describe("Channel types:", function()
  it('"If the capacity is zero or absent, the channel is unbuffered and communication succeeds only when both a '
    .. 'sender and receiver are ready."', function()
    for _, ch in ipairs{ queue.channel(), queue.channel(0) } do
      eq(ch:try_send(1), false); eq(select(2, ch:try_receive()), false)
      local l = {}
      jobs(function() add(l, "sends"); ch:send("v"); add(l, "sent") end,
        function() queue.sleep(3); add(l, "receives"); add(l, ch:receive()) end)
      eq(l[1], "sends"); eq(l[2], "receives"); eq(#l, 4)
    end
  end)

  it('"Otherwise, the channel is buffered and communication succeeds without blocking if the buffer is not full '
    .. '(sends) or not empty (receives)."', function()
    for n = 1, 4 do
      local ch = queue.channel(n)
      for i = 1, n do eq(ch:try_send(i), true) end
      eq(ch:try_send("more"), false)
      for i = 1, n do H.results(H.pack(ch:try_receive()), i, true) end
      eq(select(2, ch:try_receive()), false)
    end
  end)

  it('"A nil channel is never ready for communication."', function()
    H.results(H.pack(queue.select({ false }, 0)), nil, "timeout"); H.results(H.pack(queue.select({ false, false }, 3)), nil, "timeout")
  end)

  it('"A single channel may be used in send statements, receive operations, and calls to the built-in functions cap '
    .. 'and len by any number of goroutines without further synchronization."', function()
    local q, ch, sum, left = crew(), queue.channel(3), 0, 20
    for i = 1, 20 do
      q:push(function()
        for j = 1, 20 do ch:send(i * j); H.between(ch:len(), 0, ch:cap()) end
        left = left - 1; if left == 0 then ch:close() end
      end)
      q:push(function() while true do local v, open = ch:receive(); if not open then return end sum = sum + v end end)
    end
    G.run(q); eq(sum, 210 * 210)
  end)

  it('"Channels act as first-in-first-out queues. ... if one goroutine sends values on a channel and a second '
    .. 'goroutine receives them, the values are received in the order sent."', function()
    for _, cap in ipairs{ 0, 1, 7, 1000 } do
      local ch, n, last = queue.channel(cap), H.count(1000), 0
      jobs(function() for i = 1, n do ch:send(i) end end,
        function() for _ = 1, n do local v = ch:receive(); if v ~= last + 1 then error("out of order") end last = v end end)
      eq(last, n)
    end
  end)
end)

describe("Length and capacity:", function()
  it('"len(s): number of elements queued in channel buffer; cap(s): channel buffer capacity; 0 <= len(s) <= cap(s)"', function()
    local ch = queue.channel(3); eq(ch:len(), 0); eq(ch:cap(), 3)
    for i = 1, 3 do ch:send(i); eq(#ch, i); eq(ch:cap(), 3) end
    ch:try_send(4); eq(#ch, 3)
    local q, un = crew(), queue.channel(); q:push(function() un:send(1) end); q:push(function() un:send(2) end); q:poll()
    eq(#un, 0); eq(un:cap(), 0); un:receive(); un:receive(); q:run()
  end)
end)

describe("Send statements:", function()
  it('"Both the channel and the value expression are evaluated before communication begins."', function()
    local l, ch, q, seen = {}, queue.channel(), crew()
    local function value() add(l, "value"); error("in the value", 0) end
    q:push(function() ch:send(value()) end); q:push(function() queue.sleep(1); eq(select(2, ch:try_receive()), false) end)
    q:run(); list(l, "value"); eq(#seen, 1); eq(seen[1].msg, "in the value")
  end)

  it('"Communication blocks until the send can proceed. A send on an unbuffered channel can proceed if a receiver is '
    .. 'ready."', function()
    local ch, l = queue.channel(), {}
    jobs(function() ch:receive(); add(l, "got") end, function() add(l, "before"); ch:send(1); add(l, "after") end)
    -- The receiver was ready: the send did not wait.
    list(l, "before after got")
  end)

  it('"A send on a buffered channel can proceed if there is room in the buffer."', function()
    local ch, l = queue.channel(1), {}
    jobs(function() ch:send(1); add(l, "1"); ch:send(2); add(l, "2") end, function() add(l, "r"); ch:receive() end)
    list(l, "1 r 2")
  end)

  it('"A send on a closed channel proceeds by causing a run-time panic."', function()
    local q, seen = crew(); local ch, full = queue.channel(), queue.channel(1); full:send(1)
    local fn = function() ch:send(1) end
    q:push(fn); q:push(function() full:send(2) end); q:push(function() ch:close(); full:close() end); q:run(); eq(#seen, 2)
    G.at(fn, seen[1].msg, "send on closed channel"); H.raises("send on closed channel", fn)
  end)

  it('"A send on a nil channel blocks forever": a nil channel in a select is false, and no case that happens', function()
    H.results(H.pack(queue.select({ false, { queue.channel(1), "v" } }, 0)), 2, true)
    H.raises("deadlock", function() queue.select{ false } end)
  end)
end)

describe("Receive operator:", function()
  it('"The expression blocks until a value is available."', function()
    local ch, l = queue.channel(1), {}
    jobs(function() add(l, "waits"); add(l, ch:receive()) end, function() add(l, "sends"); ch:send("v") end); list(l, "waits sends v")
  end)

  it('"A receive operation on a closed channel can always proceed immediately, yielding the element type\'s zero '
    .. 'value after any previously sent values have been received."', function()
    local ch = queue.channel(3); ch:send(1); ch:send(2); ch:close()
    eq((ch:receive()), 1); eq((ch:receive()), 2)
    for _ = 1, 10 do H.results(H.pack(ch:receive()), nil, false, "closed"); H.results(H.pack(ch:try_receive()), nil, false, "closed") end
  end)

  it('"The value of ok is true if the value received was delivered by a successful send operation to the channel, or '
    .. 'false if it is a zero value generated because the channel is closed and empty."', function()
    local ch = queue.channel(1); ch:send(false); ch:close(); H.results(H.pack(ch:receive()), false, true)
    H.results(H.pack(ch:receive()), nil, false, "closed")
  end)

  it('"Receiving from a nil channel blocks forever."', function()
    eq(queue.select({ false }, 2), nil); local n = 0
    jobs(function() eq(queue.select({ false }, 5), nil); eq(n, 1) end, function() n = 1 end)
  end)
end)

describe("Close:", function()
  it('"close ... records that no more values will be sent on the channel."', function()
    local ch = queue.channel(2); ch:send(1); ch:close(); eq(ch:is_closed(), true); eq(ch:try_send(2), false); eq(#ch, 1)
  end)

  it('"Sending to or closing a closed channel causes a run-time panic." (here closing twice is no error)', function()
    local ch = queue.channel(1); ch:close(); H.raises("send on closed channel", function() ch:send(1) end)
    ch:close(); eq(ch:is_closed(), true)
  end)

  it('"Closing the nil channel also causes a run-time panic.": close of what is no channel raises', function()
    H.raises("channel expected", function() queue.channel().close(nil) end)
  end)

  it('"After calling close, and after any previously sent values have been received, receive operations will return '
    .. 'the zero value for the channel\'s type without blocking."', function()
    local ch, got = queue.channel(5), {}
    jobs(function() for i = 1, 3 do ch:send(i) end ch:close() end, function()
      queue.sleep(1)
      for i = 1, 5 do local v, open = ch:receive(); got[i] = tostring(v) .. tostring(open) end
    end)
    list(got, "1true 2true 3true nilfalse nilfalse")
  end)

  it("wakes every goroutine that is blocked in a receive", function()
    local q, ch, n = crew(), queue.channel(), 0
    for _ = 1, 100 do q:push(function() if select(2, ch:receive()) == false then n = n + 1 end end) end
    q:push(function() ch:close() end); G.run(q); eq(n, 100)
  end)
end)

describe("For statements with range clause:", function()
  not51('"For channels, the iteration values produced are the successive values sent on the channel until the channel is '
    .. 'closed."', function()
    local ch, l = queue.channel(), {}
    jobs(function() for i = 1, 5 do ch:send(i) end ch:close() end, function() for v in ch:iter() do add(l, v) end add(l, "over") end)
    list(l, "1 2 3 4 5 over")
  end)

  it("outside a job over a buffered channel, false included, also when it is closed and empty from the start", function()
    local ch, n = queue.channel(3), 0; ch:send(false); ch:send(1); ch:close()
    for v in ch:iter() do n = n + 1; eq(v, n == 2 and 1) end
    eq(n, 2); for _ in ch:iter() do error("there is nothing") end
  end)

  it('"If the channel is nil, the range expression blocks forever.": over a channel that nobody feeds is a dead end', function()
    H.raises("deadlock: receive on channel%(0/0%)", function() for _ in queue.channel():iter() do noop() end end)
  end)

  not51("may be left by break, and gone on with", function()
    local ch, l = queue.channel(9), {}
    for i = 1, 6 do ch:send(i) end ch:close()
    for v in ch:iter() do add(l, v); if v == 3 then break end end
    jobs(function() for v in ch:iter() do add(l, v) end end); list(l, "1 2 3 4 5 6")
  end)
end)

describe("Select statements:", function()
  it('"the channel operands of receive operations and the channel and right-hand-side expressions of send statements '
    .. 'are evaluated exactly once, in source order, upon entering the select statement"', function()
    local l = {}
    local function value(name, v) add(l, name); return v end
    local a, b = queue.channel(1), queue.channel(1)
    queue.select{ value("a", a), { value("b", b), value("v", 1) }, value("nil", false) }; list(l, "a b v nil")
  end)

  it('"... irrespective of which (if any) communication operation is selected to proceed": a value that is not sent '
    .. 'is not seen', function()
    local a, b = queue.channel(1), queue.channel(1); b:send("full")
    eq(queue.select{ { a, "x" }, { b, "y" } }, 1); eq((b:receive()), "full"); eq(#b, 0)
  end)

  it('"If one or more of the communications can proceed, a single one that can proceed is chosen via a uniform '
    .. 'pseudo-random selection."', function()
    local a, b, c, counts, n = queue.channel(1), queue.channel(1), queue.channel(1), { 0, 0, 0 }, H.count(9000)
    for _ = 1, n do
      a:try_send(1); b:try_receive(); c:try_send(1)
      local i = queue.select{ a, { b, 1 }, c, false }; counts[i] = counts[i] + 1
    end
    for i = 1, 3 do H.between(counts[i] / n, 0.25, 0.42) end
  end)

  it('"Otherwise, if there is a default case, that case is chosen.": time limit 0', function()
    local ch = queue.channel(); H.results(H.pack(queue.select({ ch, { ch, 1 } }, 0)), nil, "timeout")
    jobs(function() H.results(H.pack(queue.select({ ch }, 0)), nil, "timeout") end)
  end)

  it('"If there is no default case, the select statement blocks until at least one of the communications can '
    .. 'proceed."', function()
    local a, b, l = queue.channel(), queue.channel(), {}
    jobs(function() local i, v = queue.select{ a, b }; add(l, i); add(l, v) end, function() add(l, "first"); b:send("v") end)
    list(l, "first 2 v")
  end)

  it('"Unless the selected case is the default case, the respective communication operation is executed."', function()
    local a, b = queue.channel(1), queue.channel(1); a:send(1)
    eq(queue.select({ a }, 0), 1); eq(#a, 0); eq(queue.select({ { b, 1 } }, 0), 1); eq(#b, 1)
    eq(queue.select({ a, { b, 2 } }, 0), nil); eq(#b, 1)
  end)

  it('"a select with only nil channels and no default case blocks forever": a dead end', function()
    local fn = function() queue.select{ false, false } end
    H.raises("deadlock: select can never complete", fn); H.raises("deadlock: select", function() queue.select{} end)
    local q, seen = crew(); q:push(fn); q:run(); G.at(fn, seen[1].msg, "deadlock: select can never complete")
  end)

  it("of a closed channel proceeds at once; setting it to nil takes the case out", function()
    local a, b, l = queue.channel(), queue.channel(), {}
    jobs(function() for i = 1, 3 do a:send(i) end a:close() end, function() for i = 4, 6 do b:send(i) end b:close() end, function()
      local cases, open = { a, b }, 2
      while open > 0 do
        local i, v, more = queue.select(cases)
        if more then add(l, v) else cases[i] = false; open = open - 1 end
      end
    end)
    table.sort(l); list(l, "1 2 3 4 5 6")
  end)

  it("that sends on a closed channel panics", function()
    local ch = queue.channel(); ch:close(); H.raises("send on closed channel", function() queue.select({ { ch, 1 } }, 0) end)
  end)

  it("with send and receive of the same unbuffered channel does not meet itself", function()
    local ch = queue.channel(); H.results(H.pack(queue.select({ { ch, 1 }, ch }, 2)), nil, "timeout")
  end)
end)

describe("Go statements:", function()
  it('"The function value and parameters are evaluated as usual in the calling goroutine"', function()
    local q, x, got = crew(), 1, nil
    q:push(function(v) got = v end, { args = { x } }); x = 2; G.run(q); eq(got, 1); eq(x, 2)
  end)

  it('"program execution does not wait for the invoked function to complete"', function()
    local l = {}
    local q = crew()
    q:push(function() q:push(function() add(l, "invoked") end); add(l, "on") end); G.run(q); list(l, "on invoked")
  end)

  it('"When the function terminates, its goroutine also terminates. If the function has any return values, they are '
    .. 'discarded when the function completes."', function()
    local q = crew(); q:push(function() return 1, 2, 3 end); eq(q:run(), 1); eq(q:in_flight(), 0)
  end)
end)

describe("The Go Memory Model:", function()
  it('"A send on a channel is synchronized before the completion of the corresponding receive from that channel."', function()
    local ch, a = queue.channel(10), nil
    jobs(function() ch:receive(); eq(a, "hello, world") end, function() a = "hello, world"; ch:send(0) end)
  end)

  it('"The closing of a channel is synchronized before a receive that returns because the channel is closed."', function()
    local ch, a = queue.channel(), nil
    jobs(function() ch:receive(); eq(a, "hello, world") end, function() a = "hello, world"; ch:close() end)
  end)

  it('"A receive from an unbuffered channel is synchronized before the completion of the corresponding send on that '
    .. 'channel."', function()
    local ch, a = queue.channel(), nil
    jobs(function() ch:send(0); eq(a, "hello, world") end, function() a = "hello, world"; ch:receive() end)
  end)

  it('"The kth receive on a channel with capacity C is synchronized before the completion of the k+Cth send": a '
    .. 'counting semaphore', function()
    local q, limit, now, most = crew(), queue.channel(3), 0, 0
    for i = 1, 20 do
      q:push(function()
        limit:send(1)
        now = now + 1; most = math.max(most, now); queue.sleep(i % 3 / 2); now = now - 1
        limit:receive()
      end)
    end
    G.run(q); eq(most, 3); eq(#limit, 0)
  end)
end)

describe("Package time:", function()
  it("After: sends the current time on the returned channel once, after the duration (here: a value, and then it is closed)", function()
    local start = queue.now(); local t = queue.after(8)
    jobs(function() H.results(H.pack(t:receive()), true, true); H.between(queue.now() - start, 8, H.patience(1000)) end)
    H.results(H.pack(t:receive()), nil, false, "closed")
  end)

  it("the channels of timers have room for one", function() eq(queue.after(1e6):cap(), 1); eq(queue.tick(1e6):cap(), 1) end)

  it("After in a select is a time limit", function()
    local never = queue.channel()
    jobs(function() local i = queue.select{ never, queue.after(5) }; eq(i, 2) end)
    local i = queue.select{ never, queue.after(5) }; eq(i, 2)
  end)

  it('Tick, NewTicker: "the ticker will adjust the time interval or drop ticks to make up for slow receivers"', function()
    H.eventually(3, function()
      local t, n = queue.tick(2), 0
      t:receive(); queue.sleep(30)
      while t:try_receive() do n = n + 1 end
      t:stop(); H.between(n, 1, 2)
    end)
  end)

  it('NewTicker: "the duration d must be greater than zero; if not, NewTicker will panic"', function()
    H.raises("interval must be > 0", function() queue.tick(0) end); H.raises("interval must be > 0", function() queue.tick(-1) end)
  end)

  it("Stop: no tick after it (here: the channel is closed, too)", function()
    local t = queue.tick(1); t:receive(); queue.sleep(3); t:stop(); H.results(H.pack(t:try_receive()), nil, false, "closed")
    local u = queue.after(1, "v"); queue.sleep(4); u:stop(); H.results(H.pack(u:try_receive()), nil, false, "closed")
  end)

  it('Sleep: "A negative or zero duration causes Sleep to return immediately."', function()
    jobs(function() local s = queue.now(); queue.sleep(0); queue.sleep(-5); H.between(queue.now() - s, 0, H.patience(100)) end)
  end)
end)

describe("Go programs:", function()
  it("all goroutines are asleep - deadlock! (here: the longest asleep gets it)", function()
    local q, seen = crew(); local a, b = queue.channel(), queue.channel()
    q:push(function() a:send(1); b:receive() end, { id = "one" }); q:push(function() b:send(1); a:receive() end, { id = "two" })
    eq(q:run(), 2); eq(#seen, 2); eq(seen[1].id, "one"); has(seen[1].msg, "deadlock: send"); has(seen[2].msg, "deadlock: send")
  end)

  it("the prime sieve of the specification's last pages", function()
    local q, primes = crew(), {}
    local src = queue.channel()
    q:push(function() local i = 2; while not src:is_closed() and i < 60 do src:send(i); i = i + 1 end src:close() end)
    q:push(function()
      local from = src
      while true do
        local prime, open = from:receive()
        if not open then return end
        add(primes, prime)
        local dst, before = queue.channel(), from
        q:push(function()
          while true do
            local i, more = before:receive()
            if not more then break end
            if i % prime ~= 0 then dst:send(i) end
          end
          dst:close()
        end)
        from = dst
      end
    end)
    G.run(q); list(primes, "2 3 5 7 11 13 17 19 23 29 31 37 41 43 47 53 59")
  end)

  it("a worker pool", function()
    local q, work, results, sum = crew(), queue.channel(5), queue.channel(5), 0
    for w = 1, 4 do
      q:push(function()
        while true do
          local n, open = work:receive()
          if not open then return results:send({ over = w }) end
          queue.sleep(n % 2 / 10); results:send({ n = n * n })
        end
      end)
    end
    q:push(function() for i = 1, 100 do work:send(i) end work:close() end)
    q:push(function()
      local over = 0
      while over < 4 do local r = results:receive(); if r.over then over = over + 1 else sum = sum + r.n end end
    end)
    G.run(q); eq(sum, 338350)
  end)

  it("fan in by select, with a done channel", function()
    local q, a, b, done, got = crew(), queue.channel(), queue.channel(), queue.channel(), 0
    for _, ch in ipairs{ a, b } do
      q:push(function() while true do local i = queue.select{ { ch, 1 }, done }; if i == 2 then return end end end)
    end
    q:push(function() for _ = 1, 100 do local _, v = queue.select{ a, b }; got = got + v end done:close() end)
    G.run(q); eq(got, 100)
  end)

  it("a mutex is a channel with room for one", function()
    local q, mutex, inside, n = crew(), queue.channel(1), false, 0
    for _ = 1, 20 do
      q:push(function()
        mutex:send(1); eq(inside, false); inside = true
        queue.sleep(0); n = n + 1
        inside = false; mutex:receive()
      end)
    end
    G.run(q); eq(n, 20)
  end)

  it("a reply channel goes along with the request", function()
    local q, requests, got = crew(), queue.channel(), {}
    q:push(function() for _ = 1, 3 do local r = requests:receive(); r.reply:send(r.n + 1) end end)
    for i = 1, 3 do
      q:push(function() local reply = queue.channel(); requests:send({ n = i, reply = reply }); got[i] = reply:receive() end)
    end
    G.run(q); list(got, "2 3 4")
  end)

  it("a chain of 1,000 goroutines, each adding one", function()
    local q, n = crew(), H.count(1000)
    local left = queue.channel()
    local right, result = left, nil
    for _ = 1, n do
      local to, from = right, queue.channel()
      right = from
      q:push(function() local v = from:receive(); to:send(v + 1) end)
    end
    q:push(function() right:send(0) end); q:push(function() result = left:receive() end); G.run(q); eq(result, n)
  end)
end)
