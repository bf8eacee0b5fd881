-- A debug hook that raises can strike anywhere, also between two steps of the pump itself. A Ctrl-C is such a hook.
-- Whatever it strikes, the queue is whole afterwards: no job is lost or stays in flight, and the next run goes on.
-- And one that waits can strike a job that is about to wait: each of the two waits ends as it should.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, noop = H.queue, H.eq, H.noop
local sethook = debug.sethook ---@type fun(hook?: function, mask?: string, count?: integer)
local not51 = G.its(function() return it, pending end)

--- Calls `fn` with a hook that raises at the n-th instruction. Returns whether it struck.
local function strike(n, text, fn)
  local struck = false
  -- Two of them, as it may strike the way out of the inner one.
  local _, ok, err = pcall(pcall, function()
    sethook(function()
      sethook()
      struck = true
      error(text, 0)
    end, "", n)
    fn()
    sethook()
  end)
  sethook()
  if ok == false and err ~= text then error(err, 0) end
  return struck
end

local function interpreted(title, fn)
  it(title, function() H.interpreted(fn) end)
end

describe("a hook that strikes", function()
  for concurrency = 1, 3 do
    for _, text in ipairs{ "interrupted!", "out of time" } do
      interpreted(("anywhere in a run at concurrency %d with '%s' leaves the queue whole"):format(concurrency, text), function()
        local n, struck = 0, true
        while struck and n < 900 do
          n = n + 1
          local q, ran = queue.new{ concurrency = concurrency }, 0
          local function job() ran = ran + 1; queue.sleep(0) end
          for _ = 1, 3 do q:push(job) end
          -- Stock 5.1 has no protected call to catch it in, where a job that waits yields through the pump.
          if concurrency > 1 or not H.lua51 then
            q:push(function() error("no") end)
            q:push(function() error("not yet") end, { retries = 1 })
          end
          struck = strike(n, text, function() return q:run() end)
          -- What holds a job then may be garbage; to collect after every strike would take minutes.
          if q:in_flight() > 0 then H.collect() end
          q:run()
          local m = q:metrics()
          eq(m.pending, 0, "pending, struck at " .. n)
          if concurrency > 1 or not H.lua51 then eq(m.in_flight, 0, "in flight, struck at " .. n) end
          H.conserved(q)
          q:push(job)
          eq(q:run(), 1, "a later run, struck at " .. n)
        end
        assert(n > 50, "it struck nowhere")
      end)
    end
  end
end)

local function send(ch) ch:send("v") end
local function receive(ch) eq((ch:receive()), "v") end

--- How a job waits, what another one does meanwhile, and what the first is to be given.
local waits = {
  { "receive", function(ch) return ch:receive() end, send, H.pack("v", true) },
  { "timed receive", function(ch) return ch:receive(0.05) end, noop, H.pack(nil, false, "timeout") },
  { "send", function(ch) return ch:send("v") end, receive, H.pack(true) },
  { "timed send", function(ch) return ch:send("v", 0.05) end, noop, H.pack(false, "timeout") },
  { "iter", function(ch) return ch:iter()() end, send, H.pack("v") },
  { "select that receives", function(ch) return queue.select{ ch } end, send, H.pack(1, "v", true) },
  { "select that sends", function(ch) return queue.select{ { ch, "v" } } end, receive, H.pack(1, true) },
  { "timed select", function(ch) return queue.select({ ch, { ch, "v" } }, 0.05) end, noop, H.pack(nil, "timeout") },
  { "sleep", function() local t = queue.now(); queue.sleep(0.1); return queue.now() - t >= 0.1 end, noop, H.pack(true) },
  { "turn", function() queue.sleep(0); return true end, noop, H.pack(true) },
  { "plain yield", function() coroutine.yield(); return true end, noop, H.pack(true) },
  { "timer", function() return queue.after(0.05, "v"):receive() end, noop, H.pack("v", true) },
  { "run", function(ch)
    local inner = queue.new(); inner:push(noop, { delay_ms = 0.05 }); inner:push(send, { args = { ch } })
    return inner:run()
  end, receive, H.pack(2) },
  { "concurrent run", function(ch)
    local inner = queue.new{ concurrency = 2 }; inner:push(send, { args = { ch } }); inner:push(queue.sleep, { args = { 0.05 } })
    return inner:run()
  end, receive, H.pack(2) },
}

--- Runs such a job with a hook at every n-th instruction of it, and looks whether all is well. False: it never struck.
local function disturbed(case, n, hook)
  local q, seen = G.crew(2)
  local ch, struck, got = queue.channel(0), false, nil
  q:push(function()
    sethook(function() struck = true; hook(ch) end, "", n)
    got = H.pack(case[2](ch))
    sethook()
  end)
  q:push(case[3], { args = { ch } })
  local name, begun = ("%s, struck at %d"):format(case[1], n), queue.now()
  while q:next_due() and queue.now() - begun < H.patience(2000) do q:poll(); queue.sleep(0.02) end
  sethook()
  eq(q:in_flight(), 0, name); eq(seen[1] and seen[1].msg, nil, name)
  eq(got.n, case[4].n, name)
  for i = 1, got.n do eq(got[i], case[4][i], name) end
  eq(#ch, 0, name); eq(select(3, ch:try_receive()), "empty", name)
  H.conserved(q)
  return struck
end

-- On stock 5.1 such a hook raises: nothing yields out of one there.
describe("a hook that waits", function()
  local function each(name, most, make)
    for _, case in ipairs(waits) do
      not51(("%s leaves a %s alone"):format(name, case[1]), function()
        H.interpreted(function()
          local n = 0
          repeat n = n + 1 until n > most or not disturbed(case, n, make(queue.channel(0), n))
        end)
      end)
    end
  end

  each("once", 300, function(other)
    return function() sethook(); H.results(H.pack(other:receive(0.01)), nil, false, "timeout") end
  end)
  each("twice", 300, function(other)
    return function() sethook(); queue.sleep(0); queue.select({ other, { other, 1 } }, 0.01) end
  end)
  each("again and again", 30, function(other)
    return function() queue.sleep(0); other:receive(0.01) end
  end)

  --- A hook at the n-th instruction of a job that does `fn`, for as long as it strikes. Nothing may be left in `ch`.
  local function at_each(fn, hook, partner)
    local n, struck = 0, true
    H.interpreted(function()
      while struck do
        n, struck = n + 1, false
        local q, ch, other = G.crew(2), queue.channel(0), queue.channel(0)
        local by_hook, by_job, by_partner
        q:push(function()
          sethook(function() sethook(); struck = true; by_hook = hook(ch); other:receive(0.01) end, "", n)
          by_job = fn(ch)
          sethook()
        end)
        q:push(function() by_partner = partner(ch) end)
        G.run(q)
        eq(by_job, by_job and "v"); eq((by_job and 1 or 0) + (by_hook and 1 or 0) + (by_partner and 1 or 0), 2, "struck at " .. n)
        eq(#ch, 0); eq(select(3, ch:try_receive()), "empty")
      end
    end)
    assert(n > 5, "it struck nowhere")
  end

  not51("and takes what the job is about to send: it is sent once", function()
    local function take(ch) return (ch:receive(0)) end
    at_each(function(ch) return ch:send("v") and "v" end, take, function(ch) return (ch:receive(1)) end)
    at_each(function(ch) return queue.select{ { ch, "v" } } and "v" end, take, function(ch) return (ch:receive(1)) end)
  end)

  not51("and gives what the job is about to receive: it is received once", function()
    local function give(ch) return ch:send("v", 0) end
    at_each(function(ch) return (ch:receive()) end, give, function(ch) return (ch:send("v", 1)) end)
    at_each(function(ch) return (select(2, queue.select{ ch })) end, give, function(ch) return (ch:send("v", 1)) end)
  end)
end)
