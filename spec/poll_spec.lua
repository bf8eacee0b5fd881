--- Descriptors to poll: what they are, and when they are readable.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, noop = H.queue, H.eq, H.ok, H.noop
local crew = G.crew

local socket, cqueues = H.optional("socket"), H.optional("cqueues")

--- Whether a descriptor polls readable within `ms`; nil where nothing can tell.
local function readable(fd, ms)
  if socket then
    return #socket.select({ { getfd = function() return fd end } }, nil, (ms or 0) / 1000) == 1
  elseif cqueues then
    local r = cqueues.poll({ pollfd = fd, events = "r" }, (ms or 0) / 1000)
    return type(r) == "table"
  end
end

--- An `it` on a system that has descriptors and something to poll them with.
local function polls(title, fn)
  it(title, function()
    if not queue.channel():getfd() then return pending("no descriptors here") end
    if not socket and not cqueues then return pending("neither luasocket nor cqueues is installed") end
    return fn()
  end)
end

--- The descriptor shows what `dirty` says, and both what a receive would do.
local function shows(ch, want, what)
  eq(readable(ch:getfd(), want and 1000 or 0), want, what); eq(ch:dirty(), want, what)
end

--- The number of descriptors that this process has open, or nil.
local function open_descriptors()
  local stat = io.open("/proc/self/stat")
  if not stat then return nil end
  local pid = stat:read("*n"); stat:close()
  local list_of = assert(io.popen("ls /proc/" .. pid .. "/fd | wc -l")); local n = list_of:read("*n"); list_of:close()
  return n
end

local names = 0
local function shared(capacity) names = names + 1; return queue.shared("poll_spec " .. names, capacity), "poll_spec " .. names end

--- What a thread runs: it sends a value, after a while.
local function later(cpath, name)
  package.cpath = cpath
  local there = require("queue")
  there.sleep(20); there.shared(name):send("v")
end

describe("ch:getfd()", function()
  polls("is a number, always the same, another for each channel", function()
    local a, b = queue.channel(1), queue.channel(1)
    local fd = a:getfd(); eq(type(fd), "number"); eq(fd % 1, 0); ok(fd > 2); eq(a:getfd(), fd); ok(b:getfd() ~= fd)
    if H.integers then eq(math.type(fd), "integer") end
    a:send(1); a:receive(); a:close(); eq(a:getfd(), fd)
  end)

  polls("of a buffered channel is readable while it has values", function()
    local ch = queue.channel(2); shows(ch, false)
    for _ = 1, 3 do
      ch:send(1); shows(ch, true); shows(ch, true, "it is a level"); ch:send(2)
      ch:receive(); shows(ch, true); ch:receive(); shows(ch, false)
    end
  end)

  polls("made when values are there already shows them", function()
    local ch = queue.channel(1); ch:send(1); shows(ch, true)
    local gone = queue.channel(1); gone:close(); shows(gone, true)
    local q, un = crew(), queue.channel(); q:push(function() un:send(1) end); q:poll(); shows(un, true)
    local t = queue.after(0); queue.sleep(5); shows(t, true)
  end)

  polls("of a closed channel is readable for ever", function()
    local ch = queue.channel(1); ch:getfd(); ch:send(1); ch:close(); shows(ch, true); ch:receive(); shows(ch, true)
    eq(select(3, ch:receive()), "closed"); shows(ch, true)
  end)

  polls("of an unbuffered channel is readable while a sender waits", function()
    local q, ch = crew(), queue.channel(); shows(ch, false)
    q:push(function() ch:send(1) end); q:push(function() queue.select{ { ch, 2 } } end); q:poll(); shows(ch, true)
    ch:receive(); shows(ch, true); ch:receive(); shows(ch, false); q:poll(); G.fine(q)
  end)

  polls("is not readable once the sender's time is over", function()
    local q, ch = crew(), queue.channel(); ch:getfd()
    local limit = H.patience(40)
    q:push(function() ch:send(1, limit) end); q:poll(); shows(ch, true); queue.sleep(limit + 3); q:poll(); shows(ch, false)
  end)

  polls("is not readable once the select that would send has gone elsewhere", function()
    local q, ch, other = crew(), queue.channel(), queue.channel(); ch:getfd()
    q:push(function() queue.select{ { ch, 1 }, other } end); q:poll(); shows(ch, true); ok(other:try_send(1)); shows(ch, false); q:poll()
  end)

  polls("is not readable for a value that was handed to another", function()
    local q, ch = crew(), queue.channel(1); ch:getfd()
    q:push(function() ch:receive() end); q:poll(); eq(ch:try_send(1), true); shows(ch, false); q:poll(); shows(ch, false)
  end)

  polls("is not readable when a sender waits and a queue with it is collected", function()
    local ch = queue.channel(); ch:getfd()
    do local q = crew(); q:push(function() ch:send(1) end); q:poll() end
    shows(ch, true); H.collect(); H.collect(); shows(ch, false)
  end)

  polls("of a full channel with senders waiting is readable till the last", function()
    local q, ch, n = crew(), queue.channel(1), 0; ch:getfd()
    for i = 1, 4 do q:push(function() ch:send(i) end) end
    q:poll(); while ch:dirty() do shows(ch, true); ch:try_receive(); n = n + 1 end
    eq(n, 4); shows(ch, false)
  end)

  polls("of a timer is readable once it has fired, then for it is closed", function()
    local t = queue.after(H.patience(50)); eq(readable(t:getfd(), 0), false)
    local start = queue.now(); eq(readable(t:getfd(), 5000), true); H.between(queue.now() - start, 0, H.patience(2000))
    t:receive(); shows(t, true)
    local u = queue.after(1e6); u:getfd(); u:stop(); shows(u, true)
  end)

  polls("of a ticker is readable beat by beat", function()
    local t = queue.tick(3)
    for _ = 1, 5 do eq(readable(t:getfd(), 5000), true); ok(t:try_receive()) end
    t:stop(); shows(t, true)
  end)

  polls("of a shared channel is readable when another handle or thread sends", function()
    local ch, name = shared(2); shows(ch, false)
    local other = queue.shared(name); other:send(1); shows(ch, true); shows(other, true); ok(other:getfd() ~= ch:getfd()); ch:receive()
    shows(ch, false); shows(other, false)
    local uv = H.optional("luv")
    if not uv then return pending("luv is not installed") end
    local thread = uv.new_thread(later, package.cpath, name)
    eq(readable(ch:getfd(), 5000), true); thread:join(); eq((ch:receive()), "v"); shows(ch, false); ch:close(); shows(other, true)
  end)

  polls("agrees with receive over random steps", function()
    for seed = 1, H.count(30) do
      math.randomseed(seed)
      local r = math.random
      local q, ch = queue.new{ concurrency = 9, on_error = noop }, queue.channel(r(0, 2))
      if r(2) == 1 then ch:getfd() end
      for _ = 1, 40 do
        local x = r(7)
        if x == 1 then ch:try_receive() elseif x == 2 then pcall(ch.try_send, ch, 1)
        elseif x == 3 then q:push(function() ch:send(1, r(0, 1)) end) elseif x == 4 then q:push(function() ch:receive(r(0, 1)) end)
        elseif x == 5 then q:push(function() queue.select({ ch, { ch, 1 } }, r(0, 1)) end)
        elseif x == 6 and r(20) == 1 then ch:close() else q:poll() end
        if r(3) == 1 then
          local shown = readable(ch:getfd(), 0); eq(ch:dirty(), shown)
          local _, got, why = ch:try_receive(); eq(shown, got or why == "closed", "seed " .. seed)
        end
      end
      q:stop(); q:clear()
    end
  end)

  polls("is closed on exec: a child does not have it", function()
    local ch, q = queue.channel(1), crew(2)
    for _, fd in ipairs{ ch:getfd(), q:getfd() } do
      local r = H.shell(("test -e /proc/self/fd || exit 7; ls -l /proc/$$/fd/%d"):format(fd))
      if r.code == 7 then return pending("no /proc here") end
      ok(r.code ~= 0 or not r.out:find("anon_inode"), r.out)
    end
  end)

  polls("costs nothing when it is not asked for, and is closed on collection", function()
    H.collect(); H.collect()
    local before = open_descriptors()
    if not before then return pending("no /proc here") end
    local kept = {}
    for i = 1, 200 do
      local ch, q = queue.channel(1), crew(2); kept[i] = { ch, q, shared(1), queue.after(1e6) }
      ch:send(1); q:push(function() ch:receive() end); q:run(); ok(not ch:dirty())
    end
    H.between(open_descriptors() - before, -2, 2, "descriptors")
    for i = 1, 200 do kept[i][1]:getfd(); kept[i][2]:getfd(); kept[i][1]:getfd() end
    local with_them = open_descriptors(); H.between(with_them - before, 390, 800, "descriptors")
    kept = {}; H.collect(); H.collect(); eq(#kept, 0); H.between(open_descriptors() - before, -50, 5, "descriptors left")
  end)

  it("where none is left is nil and why, and works again later", function()
    if not H.so then return pending("the module is not in a file") end
    local r = H.run_limited({ "n" }, 24, "few_descriptors.lua")
    if not r then return pending("the shell cannot limit descriptors") end
    eq(r.err, ""); H.has(r.out, "done"); eq(r.code, 0)
  end)
end)

describe("what cqueues and luasocket ask for", function()
  it("pollfd is getfd, events is r, timeout is none, dirty is whether a receive would not wait", function()
    local ch = queue.channel(1)
    if ch:getfd() then eq(ch:pollfd(), ch:getfd()) end
    eq(ch:events(), "r"); eq(ch:timeout(), nil)
    eq(ch:dirty(), false); ch:send(false); eq(ch:dirty(), true); ch:receive(); eq(ch:dirty(), false)
    ch:close(); eq(ch:dirty(), true)
  end)

  it("dirty needs no descriptor", function()
    local q, ch = crew(), queue.channel(); q:push(function() ch:send(1) end); eq(ch:dirty(), false); q:poll(); eq(ch:dirty(), true)
    local t = queue.after(1e6); eq(t:dirty(), false); t:stop(); eq(t:dirty(), true)
  end)
end)

describe("q:getfd()", function()
  polls("is a number, always the same, of any queue", function()
    for _, n in ipairs{ 1, 2, math.huge } do
      local q = crew(n); local fd = q:getfd(); eq(type(fd), "number"); eq(q:getfd(), fd); eq(readable(fd), false)
      q:push(noop); eq(q:run(), 1); eq(readable(fd), false)
    end
  end)

  polls("is readable while an outside event has made a job in flight ready: a send, a receive, a close", function()
    local q, ch, full = crew(), queue.channel(), queue.channel(); local fd = q:getfd()
    q:push(function() ch:receive() end); q:push(function() full:send(1) end); q:push(function() ch:receive() end)
    q:poll(); eq(readable(fd), false)
    ok(ch:try_send(1)); eq(readable(fd), true); eq(readable(fd), true); eq(q:next_due(), 0); eq(q:poll(), 1); eq(readable(fd), false)
    ok(full:try_receive()); eq(readable(fd), true); q:poll(); eq(readable(fd), false)
    ch:close(); eq(readable(fd), true); eq(q:poll(), 1); eq(readable(fd), false); G.fine(q)
  end)

  polls("made late shows what is ready already", function()
    local q, ch = crew(), queue.channel(); q:push(function() ch:receive() end); q:poll(); ok(ch:try_send(1))
    eq(readable(q:getfd()), true)
    q:run(); eq(readable(q:getfd()), false)
  end)

  polls("is readable when a timer feeds a job, and a select", function()
    local q, t, u = crew(), queue.after(10), queue.after(15)
    q:push(function() t:receive() end); q:push(function() queue.select{ u, false } end); q:poll()
    eq(readable(q:getfd(), 5000), true); q:poll()
    ok(H.wait_for(2000, function() q:poll(); return q:in_flight() == 0 end)); eq(readable(q:getfd()), false)
  end)

  polls("is readable when another thread sends on a shared channel", function()
    local uv = H.optional("luv")
    if not uv then return pending("luv is not installed") end
    local ch, name = shared(); local q, got = crew(), nil
    q:push(function() got = ch:receive() end); q:poll()
    local thread = uv.new_thread(later, package.cpath, name)
    eq(readable(q:getfd(), 5000), true); thread:join(); eq(q:poll(), 1); eq(got, "v"); eq(readable(q:getfd()), false)
  end)

  polls("is readable when a job of a queue that is run inside one of its jobs is ready", function()
    if H.lua51 then return pending("stock 5.1 cannot park a run") end
    local outer, inner, ch = crew(), crew(), queue.channel()
    inner:push(function() ch:receive() end); outer:push(function() inner:run() end); outer:poll()
    eq(readable(outer:getfd()), false); ok(ch:try_send(1)); eq(readable(outer:getfd(), 1000), true)
    outer:run(); G.fine(outer); G.fine(inner); eq(readable(outer:getfd()), false)
  end)

  polls("is not readable once the queue is run dry, stopped or cleared", function()
    local q, ch = crew(), queue.channel(); q:push(function() ch:receive() end); q:poll(); q:getfd(); q:stop()
    eq(readable(q:getfd()), false)
    ch:close(); eq(readable(q:getfd()), true); q:run(); eq(readable(q:getfd()), false)
  end)
end)
