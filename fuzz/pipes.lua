--- Channels, timers, select and sleep, as programs call them, and the ledger of values: each is sent once, under a
-- number, and comes out once at most; what was said to be sent has come out or is still there.

local each = require("fuzz.each")
local Texts = require("fuzz.texts")

local function send(ch, v, ms) local ok, why = ch:send(v, ms); return ok, why end
local function try_send(ch, v) local ok, why = ch:try_send(v); return ok, why end
local function receive(ch, ms) local v, ok, why = ch:receive(ms); return v, ok, why end
local function try_receive(ch) local v, ok, why = ch:try_receive(); return v, ok, why end
local function close(ch) ch:close() end
local function stop(ch) ch:stop() end

local function iterate(ch, most, got)
  local n = 0
  for v in ch:iter() do
    got(v)
    n = n + 1
    if n >= most then return false end
  end
  return true
end

local FAR, SHORT = 5, 0.3

return function(w)
  local queue = w.queue
  local ledger, made = {}, 0
  local by_value = setmetatable({}, { __mode = "k" })    -- values that hold no number → their number
  local shared = {}

  local function select_cases(cases, ms) local i, v, ok = queue.select(cases, ms); return i, v, ok end
  local function sleep(ms) queue.sleep(ms) end

  -- The ledger ----------------------------------------------------------------------------------------------------

  --- A new value of a kind, offered to a channel; its number.
  local function value(kind, rec, held)
    made = made + 1
    local n = made
    ledger[n] = { rec = rec, state = "offered", number = n }
    if rec.kind == "shared" and (kind == "function" or kind == "held") then kind = "table" end
    if kind == "false" then
      ledger[n].blank = true
      rec.offered = (rec.offered or 0) + 1
      return n, false
    end
    if kind == "float" then return n, n + 0.5 end
    if kind == "string" then return n, "v" .. n end
    if kind == "table" then
      local v = { n = n, list = { 1, "two", { 3 } } }
      v.itself = v
      return n, v
    end
    if kind == "held" then return n, { n = n, held = held } end
    if kind == "function" then
      local function v() return n end
      by_value[v] = n
      return n, v
    end
    return n, n
  end

  local function number_of(v)
    local kind = type(v)
    if kind == "number" then return math.floor(v) end
    if kind == "string" then return tonumber(v:match("^v(%d+)$")) end
    if kind == "table" then return v.n end
    if kind == "function" then return by_value[v] end
  end

  local function settle(n, state)
    local entry = ledger[n]
    if entry.state == "offered" then entry.state = state end
    if state == "kept" and entry.received then
      w.fail("%s: value %d was received, though its send did not succeed", entry.rec.name, n)
    end
  end

  --- Who receives: values reach him in the order they were offered in.
  local function here()
    local co, is_main = coroutine.running()
    if co == nil or is_main then return "main" end
    return co
  end

  --- A value came out of a plain or a shared channel.
  local function received(rec, v)
    if v == false then
      rec.blanks = (rec.blanks or 0) + 1
      if rec.blanks > (rec.offered or 0) then w.fail("%s gave false more often than it was sent", rec.name) end
      return
    end
    local n = number_of(v)
    local entry = n and ledger[n]
    if not entry then return w.fail("%s gave %s, which was never sent", rec.name, tostring(v)) end
    if entry.rec ~= rec then return w.fail("%s gave value %d of %s", rec.name, n, entry.rec.name) end
    if entry.received then return w.fail("%s gave value %d twice", rec.name, n) end
    if entry.state == "kept" then return w.fail("%s gave value %d, whose send did not succeed", rec.name, n) end
    entry.received = true
    if type(v) == "table" and v.list and v.itself ~= v then w.fail("value %d is not what it was", n) end
    if w.aside > 0 or w.shaken then
      rec.unordered = true
    elseif not rec.unordered then
      local me = here()
      local last = rec.last[me] or 0
      if n < last then rec.disorder = ("%s gave value %d after value %d"):format(rec.name, n, last) end
      rec.last[me] = n
    end
  end

  --- Something came out of a timer's channel. `begun` is when the receive began.
  local function went_off(rec, v, begun)
    local now = queue.now()
    rec.gave = rec.gave + 1
    if rec.once then
      if rec.gave > 1 then w.fail("%s went off %d times", rec.name, rec.gave) end
      if now < rec.start + rec.ms then w.fail("%s went off %g ms too early", rec.name, rec.start + rec.ms - now) end
      if not rawequal(v, rec.value) and v ~= rec.value then w.fail("%s gave %s", rec.name, tostring(v)) end
    else
      if v ~= true then w.fail("%s gave %s", rec.name, tostring(v)) end
      if now < rec.start + rec.gave * rec.ms then w.fail("%s ticked too early or too often", rec.name) end
    end
    if rec.ended and begun > rec.ended then w.fail("%s went off after its stop", rec.name) end
  end

  local function take(rec, v, begun)
    if rec.kind == "timer" then went_off(rec, v, begun) else received(rec, v) end
  end

  -- Making --------------------------------------------------------------------------------------------------------

  local function record(kind, name, capacity)
    return { kind = kind, name = name, capacity = capacity, last = setmetatable({}, { __mode = "k" }), open_calls = 0 }
  end

  function w.channel(name, capacity)
    if w.fuel <= 0 then return nil end
    local ok, ch = w.call_guarded("channel", Texts.none, function() local ch = queue.channel(capacity); return ch end)
    if ok then return w.keep(ch, record("channel", name, capacity or 0)) end
  end

  --- The channel of a name, of this program's own. Names come again: after a close it may be the old one or a new one.
  function w.shared(name, capacity)
    if w.fuel <= 0 then return nil end
    local full = ("fuzz %d %s"):format(w.seed, name)
    local ok, ch = w.call_guarded("shared", Texts.shared, function()
      local ch = queue.shared(full, capacity)
      return ch
    end)
    if not ok then
      if not shared[name] and not w.shaken then w.fail("the first channel of a name has another capacity") end
      return nil
    end
    local rec = shared[name]
    local closed, cap = ch:is_closed(), ch:cap()
    if capacity and cap ~= capacity then w.fail("shared of capacity %d has %d", capacity, cap) end
    if rec and rec.closed == closed and rec.capacity == cap then
      return w.keep(ch, rec)
    end
    if rec and not rec.closed then w.fail("the open channel %s was replaced", name) end
    if closed then w.fail("a new channel is closed") end
    rec = record("shared", name, cap)
    rec.closed = false
    shared[name] = rec
    return w.keep(ch, rec)
  end

  function w.after(name, ms, value_kind)
    if w.fuel <= 0 then return nil end
    local rec = record("timer", name, 1)
    rec.once, rec.ms, rec.gave, rec.start = true, math.max(0, ms), 0, queue.now()
    rec.far = ms > FAR and ms ~= math.huge
    rec.value = true
    if value_kind == "false" then rec.value = false elseif value_kind then rec.value = value_kind end
    local ok, ch = w.call_guarded("after", Texts.none, function()
      if value_kind == nil then
        local ch = queue.after(ms)
        return ch
      end
      local ch = queue.after(ms, rec.value)
      return ch
    end)
    if ok then return w.keep(ch, rec) end
  end

  function w.tick(name, ms)
    if w.fuel <= 0 then return nil end
    local rec = record("timer", name, 1)
    rec.ms, rec.gave, rec.start, rec.far = ms, 0, queue.now(), ms > FAR and ms ~= math.huge
    local ok, ch = w.call_guarded("tick", Texts.none, function() local ch = queue.tick(ms); return ch end)
    if ok then return w.keep(ch, rec) end
  end

  -- Calls -----------------------------------------------------------------------------------------------------------

  --- A wait that only another thread, or a far timer, could end gets a limit.
  local function limit(rec, ms)
    if (rec.kind == "shared" or rec.far) and (ms == nil or ms > FAR) then return SHORT end
    if ms and ms > FAR and ms ~= math.huge then return SHORT end
    return ms
  end

  local function check_timeout(name, begun, ms)
    local spent = queue.now() - begun
    if not ms then
      w.fail("%s timed out without a limit", name)
    elseif spent < ms then
      w.fail("%s timed out after %g of %g ms", name, spent, ms)
    end
  end

  --- What a send returned. A channel that is closed stays so: whoever says "closed" must be right.
  local function sent(ch, rec, n, ok, went, why, reason)
    rec.open_calls = rec.open_calls - 1
    if not ok then return settle(n, "kept") end
    if went == true then return settle(n, "sent") end
    settle(n, "kept")
    if went ~= false or why ~= reason and why ~= "closed" then
      w.fail("a send returned %s, %s", tostring(went), tostring(why))
    elseif why == "closed" and not ch:is_closed() then
      w.fail("a send says closed, and it is not")
    end
  end

  function w.send(ch, kind, ms, held)
    local rec = w.enter("send", ch, kind, ms)
    if not rec then return end
    if rec.kind == "timer" then return w.misuse("send", ch, function() ch:send(1, ms) end) end
    ms = limit(rec, ms)
    local n, v = value(kind, rec, held)
    local begun = queue.now()
    rec.open_calls = rec.open_calls + 1
    local ok, went, why = w.call("send", Texts.send, send, ch, v, ms)
    sent(ch, rec, n, ok, went, why, "timeout")
    if not ok and tostring(went):find("send on closed channel", 1, true) and not ch:is_closed() then
      w.fail("send on closed channel, and it is open")
    end
    if ok and why == "timeout" then check_timeout("send", begun, ms) end
    return ok and went
  end

  function w.try_send(ch, kind, held)
    local rec = w.enter("try_send", ch, kind)
    if not rec then return end
    if rec.kind == "timer" then return w.misuse("try_send", ch, function() ch:try_send(1) end) end
    local n, v = value(kind, rec, held)
    rec.open_calls = rec.open_calls + 1
    local ok, went, why = w.call("try_send", Texts.none, try_send, ch, v)
    if ok and why == "full" and w.exact() and ch:len() < ch:cap() then w.fail("full with %s", tostring(ch)) end
    if ok and why == "timeout" then w.fail("a try_send timed out") end
    sent(ch, rec, n, ok, went, why, "full")
    return ok and went
  end

  --- What a receive returned.
  local function arrived(ch, rec, begun, v, ok, why, reason)
    if ok == true then
      if v == nil then w.fail("nil was received") else take(rec, v, begun) end
      if why ~= nil then w.fail("a reason where a value came: %s", tostring(why)) end
    elseif v ~= nil or ok ~= false or why ~= reason and why ~= "closed" then
      w.fail("a receive returned %s, %s, %s", tostring(v), tostring(ok), tostring(why))
    elseif why == "closed" and (not ch:is_closed() or ch:len() > 0) then
      w.fail("a receive says closed of %s", tostring(ch))
    end
  end

  function w.receive(ch, ms)
    local rec = w.enter("receive", ch, ms)
    if not rec then return end
    ms = limit(rec, ms)
    local begun = queue.now()
    rec.open_calls = rec.open_calls + 1
    local ok, v, got, why = w.call("receive", Texts.receive, receive, ch, ms)
    rec.open_calls = rec.open_calls - 1
    if not ok then return end
    arrived(ch, rec, begun, v, got, why, "timeout")
    if why == "timeout" then check_timeout("receive", begun, ms) end
  end

  function w.try_receive(ch)
    local rec = w.enter("try_receive", ch)
    if not rec then return end
    local begun = queue.now()
    local idle = rec.kind ~= "timer" and w.exact() and not ch:dirty()
    local ok, v, got, why = w.call("try_receive", Texts.none, try_receive, ch)
    if not ok then return end
    arrived(ch, rec, begun, v, got, why, "empty")
    if idle and why ~= "empty" then w.fail("%s was not dirty, and a receive would not have waited", rec.name) end
  end

  function w.iter(ch, most)
    local rec = w.enter("iter", ch, most)
    if not rec then return end
    if not ch:is_closed() and (rec.kind == "shared" or rec.far) then return w.receive(ch, SHORT) end
    local begun = queue.now()
    rec.open_calls = rec.open_calls + 1
    local ok, ended = w.call("iter", Texts.receive, iterate, ch, most, function(v) take(rec, v, begun) end)
    rec.open_calls = rec.open_calls - 1
    if ok and ended and not ch:is_closed() then w.fail("a loop over an open channel ended") end
  end

  function w.close(ch)
    local rec = w.enter("close", ch)
    if not rec then return end
    rec.closed = true
    w.call_guarded("close", Texts.none, close, ch)
    if not ch:is_closed() then w.fail("not closed after close") end
  end

  function w.stop_timer(ch)
    local rec = w.enter("stop_timer", ch)
    if not rec then return end
    if rec.kind ~= "timer" then return w.misuse("stop", ch, function() ch:stop() end) end
    w.call_guarded("stop", Texts.none, stop, ch)
    rec.closed, rec.ended = true, rec.ended or queue.now()
    if ch:len() ~= 0 or not ch:is_closed() then w.fail("%s after stop", tostring(ch)) end
  end

  -- Select ----------------------------------------------------------------------------------------------------------

  --- What the module is given for the cases of a program: `channel`, `{ channel, kind }` or false. And what is known.
  local function make_cases(cases)
    local given, known, bounded = {}, {}, false
    for i = 1, cases.n do
      local case = cases[i]
      local ch = case
      if type(case) == "table" then ch = case[1] end
      local rec = ch and w.records[ch]
      if not rec or type(case) == "table" and rec.kind == "timer" then
        given[i], known[i] = false, false
      else
        if rec.kind == "shared" or rec.far then bounded = true end
        if type(case) == "table" then
          local n, v = value(case[2], rec)
          given[i], known[i] = { ch, v }, { rec = rec, n = n }
        else
          given[i], known[i] = ch, { rec = rec, ch = ch }
        end
        rec.open_calls = rec.open_calls + 1
      end
    end
    return given, known, bounded
  end

  local function check_choice(known, begun, i, v, ok)
    local case = type(i) == "number" and known[i]
    if not case then return w.fail("select returned %s, %s, %s", tostring(i), tostring(v), tostring(ok)) end
    if case.n then
      settle(case.n, "sent")
      if v ~= true or ok ~= nil then w.fail("a send of select returned %s, %s", tostring(v), tostring(ok)) end
    elseif ok == true then
      if v == nil then w.fail("select received nil") else take(case.rec, v, begun) end
    elseif ok ~= false or v ~= nil then
      w.fail("a receive of select returned %s, %s", tostring(v), tostring(ok))
    elseif not case.ch:is_closed() then
      w.fail("select says closed, and it is not")
    end
  end

  --- `cases.n` cases: a channel that is gone is none.
  function w.select(cases, ms)
    if not w.enter("select", queue, cases.n, ms) and w.fuel <= 0 then return end
    local given, known, bounded = make_cases(cases)
    if ms and ms > FAR and ms ~= math.huge or bounded and (ms == nil or ms > FAR) then ms = SHORT end
    local begun = queue.now()
    local ok, i, v, got = w.call("select", Texts.select, select_cases, given, ms)
    if ok and i == nil then
      if v ~= "timeout" then w.fail("select returned nil, %s", tostring(v)) end
      check_timeout("select", begun, ms)
    elseif ok then
      check_choice(known, begun, i, v, got)
    end
    for _, case in ipairs(known) do
      if case then
        case.rec.open_calls = case.rec.open_calls - 1
        if case.n and ledger[case.n].state == "offered" then settle(case.n, "kept") end
      end
    end
  end

  function w.sleep(ms)
    if not w.enter("sleep", queue, ms) and w.fuel <= 0 then return end
    if ms > FAR and ms ~= math.huge then ms = SHORT end
    local begun = queue.now()
    local ok = w.call("sleep", Texts.sleep, sleep, ms)
    if ok and queue.now() - begun < ms then w.fail("a sleep of %g ms took %g", ms, queue.now() - begun) end
  end

  -- The end ---------------------------------------------------------------------------------------------------------

  --- Empties a channel and closes it.
  function w.drain(ch, rec)
    w.look(ch)
    if rec.kind == "timer" then
      w.stop_timer(ch)
    else
      for _ = 1, 1000 do
        if ch:len() == 0 then break end
        w.try_receive(ch)
      end
      w.close(ch)
      w.try_receive(ch)
      rec.drained = true
    end
    w.look(ch)
  end

  --- Whatever was sent to a channel that has been emptied must have come out of it: but for what went to a receiver who
  -- never came back to tell.
  function w.settle_values()
    local lost, blanks = {}, {}
    for _, entry in ipairs(ledger) do
      local rec = entry.rec
      if entry.blank then
        if entry.state == "sent" then blanks[rec] = (blanks[rec] or 0) + 1 end
      elseif entry.state == "sent" and not entry.received and rec.drained then
        lost[rec] = (lost[rec] or 0) + 1
      end
    end
    for _, entry in ipairs(ledger) do
      local rec = entry.rec
      -- What was handed to a job that was collected is there again, and comes late.
      if rec.disorder and rec.open_calls == 0 then w.fail("%s", rec.disorder) end
      rec.disorder = nil
    end
    for rec, n in each(blanks) do
      local missing = n - (rec.blanks or 0)
      if rec.drained and missing > 0 then lost[rec] = (lost[rec] or 0) + missing end
    end
    for rec, n in each(lost) do
      if n > rec.open_calls then w.fail("%s: %d values were sent and are nowhere", rec.name, n) end
    end
  end
end
