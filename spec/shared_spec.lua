--- Shared channels in one Lua: what they do, what they carry, and the lives of their names.
local H = require("spec.helper")
local G = require("spec.go_helper")
local queue, eq, ok, list, has = H.queue, H.eq, H.ok, H.list, H.has
local crew, add = G.crew, G.add

-- Names are never used twice: a channel that is left open lives as long as the process.
local names = 0
local function fresh() names = names + 1; return "shared_spec " .. names end
local function shared(capacity) local name = fresh(); return queue.shared(name, capacity), name end

-- Sends a value to a channel and gives back what comes out.
local function copy(v)
  local ch = shared(1)
  eq(ch:try_send(v), true)
  local r = H.pack(ch:try_receive()); eq(r.n, 2); eq(r[2], true); ch:close()
  return r[1]
end

describe("a shared channel", function()
  it("is one for all who open its name", function()
    local a, name = shared(3)
    local b, c = queue.shared(name, 3), queue.shared(name)
    a:send(1); b:send(2); eq(c:len(), 2); eq(#c, 2); eq(c:cap(), 3); eq((c:receive()), 1); eq((a:receive()), 2)
    b:close(); eq(a:is_closed(), true); eq(c:is_closed(), true)
  end)

  it("of different names is different", function()
    local a, b = shared(1), shared(1); a:send(1); eq(b:len(), 0); a:close(); eq(b:is_closed(), false)
  end)

  it("may have any string for a name", function()
    for _, name in ipairs{ "", "\0", "a\0b", "a\0c", ("x"):rep(10000), "ü", "%s %d\n" } do
      local ch = queue.shared(name, 2); eq(ch:cap(), 2, name); eq(ch:len(), 0, name); ch:send(name)
      eq((queue.shared(name):receive()), name); ch:close()
    end
  end)

  it("takes the capacity that is there, or 0; another raises and changes nothing", function()
    local a, name = shared(3)
    eq(queue.shared(name):cap(), 3); eq(queue.shared(name, 3):cap(), 3); eq(queue.shared(name, 3.0):cap(), 3)
    eq(queue.shared(name, nil):cap(), 3)
    for _, other in ipairs{ 0, 1, 4, 2 ^ 31 } do
      local err = H.raises("capacity", function() queue.shared(name, other) end); has(err, "'shared'")
    end
    eq(a:cap(), 3); local b, unbuffered = shared(); eq(b:cap(), 0); eq(queue.shared(unbuffered, 0):cap(), 0)
    local again = function() queue.shared(unbuffered, 1) end
    H.raises("capacity", again)
  end)

  it("works as any channel does", function()
    local ch = shared(2)
    H.results(H.pack(ch:try_receive()), nil, false, "empty"); H.results(H.pack(ch:receive(0)), nil, false, "timeout")
    H.results(H.pack(ch:send("a")), true); H.results(H.pack(ch:try_send("b")), true); H.results(H.pack(ch:try_send("c")), false, "full")
    H.results(H.pack(ch:send("c", 2)), false, "timeout"); eq(tostring(ch), "channel(2/2)"); eq(#ch, 2)
    H.results(H.pack(ch:receive()), "a", true); ch:close(); ch:close(); eq(ch:is_closed(), true); eq(tostring(ch), "channel(1/2, closed)")
    H.raises("send on closed channel", function() ch:send(1) end); H.results(H.pack(ch:try_send(1)), false, "closed")
    local seen = {}; for v in ch:iter() do add(seen, v) end
    list(seen, "b"); H.results(H.pack(ch:receive()), nil, false, "closed"); H.results(H.pack(ch:try_receive()), nil, false, "closed")
    H.raises("", function() ch:stop() end)
  end)

  it("works among jobs as any channel does", function()
    local ch, l = shared(), {}
    G.jobs(function() for i = 1, 20 do ch:send({ i }) end ch:close() end, function()
      while true do local v, open = ch:receive(); if not open then return end add(l, v[1]) end
    end)
    eq(#l, 20); eq(l[20], 20)
  end)

  it("never counts as a deadlock, outside and in jobs", function()
    local ch, full = shared(), shared(1); full:send(1)
    H.results(H.pack(ch:receive(5)), nil, false, "timeout"); H.results(H.pack(full:send(2, 5)), false, "timeout")
    local q, plain = crew(), queue.channel()
    q:push(function() ch:receive() end); q:push(function() plain:receive(); ch:send(1) end)
    for _ = 1, 3 do eq(q:poll(), 0) end
    eq(q:in_flight(), 2); eq(q:next_due(), math.huge); q:push(function() plain:send(1) end); eq(G.run(q), 3)
  end)

  it("keeps a job beside it from being accused", function()
    local q, ch, plain = crew(), shared(), queue.channel()
    q:push(function() plain:receive() end); q:push(function() ch:receive(20); plain:send(1) end); G.run(q)
  end)
end)

describe("what a shared channel carries", function()
  it("are copies: numbers, strings, booleans", function()
    for _, v in ipairs{ 0, 1, -1, 1.5, 2 ^ 31, 2 ^ 53, -2 ^ 53, 1e300, 5e-324, math.huge, -math.huge, "", "x", "a\0b\0",
      ("long"):rep(1e4), true, false } do
      eq(copy(v), v); eq(type(copy(v)), type(v))
    end
    local nan, zero = copy(0 / 0), 0.0; ok(nan ~= nan); eq(1 / copy(-zero), -math.huge)
  end)

  it("keeps integers and floats apart", function()
    if not H.integers then return pending("this Lua has one kind of number") end
    for _, v in ipairs{ 1, math.maxinteger, math.mininteger, -1, 0, math.maxinteger - 1 } do
      eq(copy(v), v); eq(math.type(copy(v)), "integer")
    end
    for _, v in ipairs{ 1.0, 2.0 ^ 53, -0.0, 2.0 ^ 63 } do eq(copy(v), v); eq(math.type(copy(v)), "float") end
    local t = copy({ 1, 1.0, [2.5] = 3, n = 4.0 })
    eq(math.type(t[1]), "integer"); eq(math.type(t[2]), "float"); eq(math.type(t.n), "float")
  end)

  it("keeps tables of those, of any shape", function()
    local t = copy({ 1, "two", { 3, { four = { true, false } } }, [10] = "ten", [-1] = "minus", [1.5] = "half", [true] = "yes",
      [""] = "empty", ["a b"] = 0 })
    eq(t[1], 1); eq(t[2], "two"); eq(t[3][1], 3); eq(t[3][2].four[1], true); eq(t[3][2].four[2], false)
    eq(t[10], "ten"); eq(t[-1], "minus")
    eq(t[1.5], "half"); eq(t[true], "yes"); eq(t[""], "empty"); eq(t["a b"], 0)
    eq(next(copy({})), nil); local n = 0; for _ in pairs(t) do n = n + 1 end eq(n, 9)
  end)

  it("are taken at the send, and are nobody else's", function()
    local t, ch = { a = { 1 } }, shared(2)
    ch:send(t); ch:send(t); t.a[1] = "changed"; t.b = 1
    local x, y = ch:receive(), ch:receive(); eq(x.a[1], 1); eq(x.b, nil); ok(x ~= y); ok(x ~= t); x.a[1] = 5; eq(y.a[1], 1)
  end)

  it("keeps shared references and cycles", function()
    local shared_part = { "part" }
    local t ---@type table<any, any>
    t = { a = shared_part, b = { shared_part }, c = { [shared_part] = true } }
    t.self = t; t.b.up = t; t[t] = t
    local r = copy(t)
    eq(r.a[1], "part"); eq(r.b[1], r.a); eq(r.c[r.a], true); eq(r.self, r); eq(r.b.up, r); eq(r[r], r); ok(r ~= t)
    local a, b = {}, {}; a[1], b[1] = b, a; local c = copy(a); eq(c[1][1], c); ok(c[1] ~= c)
  end)

  it("keeps light userdata", function()
    local light = G.light()
    if not light then return pending("no light userdata to be had") end
    eq(type(light), "userdata"); eq(copy(light), light); local r = copy({ light, [light] = 1 }); eq(r[1], light); eq(r[light], 1)
  end)

  it("are shared channels too, bare and in tables", function()
    local inner, name = shared(2)
    local r = copy(inner); eq(r:cap(), 2); r:send("through"); eq((inner:receive()), "through")
    r = copy({ reply = inner, list = { inner, inner } }); r.reply:send(1); eq((r.list[2]:receive()), 1)
    eq(tostring(r.reply), tostring(inner)); eq(queue.shared(name):len(), 0)
    local self = shared(1); self:send(self); local back = self:receive(); back:send("itself"); eq((self:receive()), "itself")
  end)

  it("may be a table 100,000 deep: a copy or an error, no crash", function()
    local deep = {}; local d = deep
    for _ = 1, H.count(100000) do d[1] = {}; d = d[1] end
    d.bottom = true
    local ch = shared(1)
    local sent, err = pcall(ch.send, ch, deep)
    if not sent then eq(type(err), "string"); eq(ch:len(), 0); return end
    local r, n = ch:receive(), 0
    while r[1] do r = r[1]; n = n + 1 end
    eq(n, H.count(100000)); eq(r.bottom, true)
    -- and by its keys, with a function at the bottom
    deep = {}; d = deep
    for _ = 1, H.count(100000) do local k = {}; d[k] = "x"; d = k end
    d.f = print
    sent, err = pcall(ch.send, ch, deep); eq(sent, false); eq(type(err), "string"); has(err, "a function cannot be copied")
    eq(ch:len(), 0)
  end)

  it("may be wide", function()
    local t, n = {}, H.count(100000)
    for i = 1, n do t[i] = { i, tostring(i) }; t["k" .. i] = i end
    local r = copy(t)
    for i = 1, n do if r[i][1] ~= i or r[i][2] ~= tostring(i) or r["k" .. i] ~= i then error("entry " .. i) end end
  end)

  it("may be 100 MB", function()
    if H.slow > 1 then return pending("too slow here") end
    local s = ("0123456789abcde\0"):rep(100 * 2 ^ 20 / 16); eq(#s, 100 * 2 ^ 20)
    ok(copy(s) == s); local r = copy({ s }); ok(r[1] == s); s, r = nil, nil; collectgarbage()
  end)

  --- What is refused: what and where are named, and nothing is sent.
  local function refused(title, value, why)
    it("refuses " .. title, function()
      local ch = shared(2); ch:send("kept")
      if type(value) == "function" and why ~= "value: a function cannot be copied" then value = value() end
      local plain = why:gsub("%p", "%%%0")
      local send = function() ch:send(value) end
      local err = H.raises("bad argument #1 to 'send'", send); has(err, why)
      local try = function() ch:try_send(value, 5) end
      H.raises(plain, try)
      local pick = function() queue.select{ { ch, value } } end
      H.raises(plain, pick); H.raises("'select'", pick)
      eq(ch:len(), 1); eq((ch:receive()), "kept"); ch:send(value == nil and 0 or "after"); eq(ch:len(), 1)
    end)
  end
  refused("a function", print, "value: a function cannot be copied")
  refused("a coroutine", coroutine.create(H.noop), "value: a thread cannot be copied")
  refused("a queue", function() return queue.new() end, "value: a queue cannot be copied")
  refused("a plain channel", function() return queue.channel(1) end, "value: a channel cannot be copied")
  refused("a timer", function() return queue.after(1e6) end, "value: a channel cannot be copied")
  refused("a file", function() return io.stdout end, " cannot be copied")
  refused("a table with a metatable", function() return setmetatable({}, {}) end, "value: a table with a metatable cannot be copied")
  refused("a metatable that hides", function() return setmetatable({}, { __metatable = false }) end,
    "value: a table with a metatable cannot be copied")
  refused("a function, named by its place", function()
    return { users = { { name = "a" }, { name = "b" }, { callback = print } } }
  end, "value.users[3].callback: a function cannot be copied")
  refused("a metatable in a table", function() return { a = { setmetatable({}, {}) } } end,
    "value.a[1]: a table with a metatable cannot be copied")
  refused("at a key that is no name", function() return { ["a b"] = { [1.5] = print } } end,
    'value["a b"][1.5]: a function cannot be copied')
  refused("at a key that is a keyword or a digit", function() return { ["1x"] = print } end, 'value["1x"]: a function cannot be copied')
  refused("at a negative place", function() return { [-3] = print } end, "value[-3]: a function cannot be copied")
  refused("at true", function() return { [true] = print } end, "a function cannot be copied")
  refused("a function for a key", function() return { a = { [print] = 1 } } end, "value.a: a function as a key cannot be copied")
  refused("a queue in the last of many", function()
    local t = {}; for i = 1, 1000 do t[i] = i end t[1000] = queue.new(); return t
  end, "value[1000]: a queue cannot be copied")
  refused("with a place of many steps", function()
    local t = print; for _ = 1, 200 do t = { step = t } end; return t
  end, "a function cannot be copied")

  it("does not call metamethods, even of what it refuses", function()
    local called
    local function call() called = true end
    local t = setmetatable({}, { __index = call, __pairs = call, __len = call, __tostring = call, __name = "evil" })
    pcall(function() shared(1):send(t) end); pcall(function() shared(1):send({ { t } }) end); eq(called, nil)
  end)

  it("is refused also where a receiver waits, who goes on waiting", function()
    local q, ch, got = crew(), shared(), nil
    q:push(function() got = ch:receive() end); q:poll(); eq(pcall(ch.try_send, ch, print), false); eq(pcall(ch.send, ch, { print }), false)
    eq(ch:try_send("good"), true); q:poll(); eq(got, "good"); G.fine(q)
  end)
end)

describe("the name of a shared channel lives", function()
  local function gone() H.collect(); H.collect() end

  it("without handles while it is open, with what is in it", function()
    local name = fresh()
    queue.shared(name, 2):send("left"); gone(); eq(queue.shared(name):len(), 1); eq((queue.shared(name):receive()), "left")
    gone(); eq(queue.shared(name):cap(), 2)
  end)

  it("without handles while it is closed and values are left", function()
    local name = fresh()
    do local ch = queue.shared(name, 2); ch:send(1); ch:send(2); ch:close() end
    gone(); H.results(H.pack(queue.shared(name):receive()), 1, true)
    gone(); H.results(H.pack(queue.shared(name):receive()), 2, true)
    gone(); eq(queue.shared(name, 5):cap(), 5); eq(queue.shared(name):is_closed(), false)
  end)

  it("as long as a handle on the closed one: a latecomer gets that", function()
    local ch, name = shared(1); ch:close()
    for _ = 1, 3 do
      gone(); local late = queue.shared(name)
      eq(late:is_closed(), true); H.results(H.pack(late:receive()), nil, false, "closed"); H.raises("closed", function() late:send(1) end)
    end
    H.raises("capacity", function() queue.shared(name, 7) end); eq(ch:is_closed(), true)
  end)

  it("until the last handle is collected, then it is a new one's, of any capacity", function()
    local ch, name = shared(1); ch:close(); ch = nil; gone()
    local again = queue.shared(name, 9); eq(again:is_closed(), false); eq(again:cap(), 9); eq(again:send("new"), true)
  end)

  it("by a handle that lies in a channel, a parked job, an iterator, a select", function()
    for kind = 1, 4 do
      local name = fresh()
      local keep, quit = nil, queue.channel()
      do
        local ch = queue.shared(name, 1)
        if kind == 1 then keep = queue.channel(1); keep:send(ch)
        elseif kind == 2 then keep = crew(); keep:push(function() quit:receive(); return ch end); keep:poll()
        elseif kind == 3 then keep = ch:iter()
        else keep = crew(); keep:push(function() queue.select{ quit, ch, false } end) end
        ch:close()
      end
      gone(); eq(queue.shared(name):is_closed(), true, "kind " .. kind); ok(keep)
    end
  end)

  it("by a handle that lies in another shared channel", function()
    local box, name = shared(1), fresh()
    do local ch = queue.shared(name, 3); box:send({ ch }); ch:close() end
    gone(); eq(queue.shared(name):is_closed(), true); gone()
    eq(box:receive()[1]:is_closed(), true); gone(); eq(queue.shared(name, 4):is_closed(), false)
  end)

  it("and 10,000 names come and go", function()
    local before = H.resident()
    for i = 1, H.count(10000) do
      local ch = queue.shared("shared_spec many " .. i, 1); ch:send({ i }); ch:receive(); ch:close()
      if i % 1000 == 0 then gone() end
    end
    gone(); if before then H.between(H.resident() - before, -1e9, 20000, "KiB") end
  end)
end)
