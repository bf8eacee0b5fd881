--- Bad calls, from what each function takes: good arguments but for one, bad options, a wrong self.

local bad = {
  callable = { "5", '"x"', "{}", "true", "nil", "Q", "C", "coroutine.create(function() end)", "io.stdout" },
  table = { "5", '"x"', "true", "print", "Q", "C", "io.stdout" },
  must_table = { "nil", "5", '"x"', "true", "print", "Q", "C" },
  ms = { '"5"', '"x"', "{}", "true", "0/0", "print", "Q", "C" },
  must_ms = { "nil", '"5"', "{}", "false", "0/0", "print", "Q" },
  interval = { "nil", "0", "-1", "-math.huge", "0/0", '"5"', "{}" },
  count = { '"5"', "{}", "true", "-1", "1.5", "0/0", "-math.huge", "2^70", "print" },
  value = { "nil" },
  string = { "nil", "5", "{}", "true", "print", "Q" },
  id = { "5", "{}", "true", "print", "Q" },
  integer = { "nil", '"5"', "{}", "1.5", "0/0", "math.huge", "2^70", "print" },
  option = { '"5"', "{}", "1.5", "0/0", "math.huge", "print" },
  boolean_not = { "5", '"x"', "{}" },
}

local good = { callable = "print", table = "{}", ms = "0", must_ms = "0", interval = "1", count = "1", value = "1",
  string = '"bad"', integer = "1" }

-- Methods with arguments: what they take.
local on_queue = {
  { "push", "callable", "table" }, { "poll", "count" }, { "every", "interval", "callable" }, { "cancel", "string" },
  { "status", "string" }, { "set_priority", "string", "integer" }, { "pause", "ms" }, { "retry", "string" },
}
local on_channel = { { "send", "value" }, { "send", "value", "ms" }, { "try_send", "value" }, { "receive", "ms" } }
local of_module = {
  { "new", "table" }, { "channel", "count" }, { "after", "must_ms" }, { "tick", "interval" }, { "sleep", "must_ms" },
  { "shared", "string" }, { "shared", "string", "count" }, { "select", "must_table" }, { "select", "must_table", "ms" },
  { "backoff", "table" },
}

-- Options, and what makes each of them bad.
local of_push = {
  { "priority", "option" }, { "delay_ms", "ms" }, { "retries", "count" }, { "timeout_ms", "ms" }, { "args", "table" },
  { "id", "id" }, { "retrys", "id" }, { "on_error", "callable" }, { "unique", "boolean_not" },
}
local of_new = {
  { "capacity", "count" }, { "concurrency", "count" }, { "on_error", "callable" }, { "on_retry", "callable" },
  { "on_success", "callable" }, { "keep_failed", "count" }, { "capasity", "id" }, { "id", "id" }, { "limit", "table" },
}

local methods_of_queue = { "push", "run", "poll", "stop", "is_stopped", "size", "empty", "clear", "metrics",
  "in_flight", "next_due", "getfd", "cancel", "status", "set_priority", "jobs", "pause", "resume", "is_paused", "every",
  "failed", "retry" }
local methods_of_channel = { "send", "try_send", "receive", "try_receive", "iter", "close", "is_closed", "len", "cap",
  "stop", "getfd", "dirty", "pollfd", "events", "timeout" }
local selves = { "nil", "5", '"x"', "{}", "print", "io.stdout", "OTHER", "setmetatable({}, debug.getmetatable(SELF))" }

--- Limits that are none.
local limits = { "{}", "{ jobs = 1 }", "{ jobs = 0, per_ms = 1 }", "{ jobs = 1, per_ms = 0 }",
  "{ jobs = 1, per_ms = math.huge }", "{ jobs = 1.5, per_ms = 1 }", "5" }

--- Cases of select that are wrong.
local cases = { "{ 5 }", '{ "x" }', "{ true }", "{ {} }", "{ { C } }", "{ { C, nil } }", "{ { 5, 1 } }",
  "{ C, nil, C }", "{ Q }", "{ { Q, 1 } }" }

return function(random, q, ch)
  local function filled(text) return (text:gsub("%f[%w]Q%f[%W]", q):gsub("%f[%w]C%f[%W]", ch)) end

  --- A bad value of a kind. A name of the program may be nil there, and NaN is bad everywhere.
  local function bad_value(kind)
    local value = random:of(bad[kind])
    if value ~= "Q" and value ~= "C" then return value end
    return ("(%s or 0/0)"):format(filled(value))
  end

  --- Arguments, the last of which is bad, and the ones before it good.
  local function arguments(takes)
    local list = {}
    for i = 2, #takes do list[#list + 1] = good[takes[i]] or "{}" end
    list[#list] = bad_value(takes[#takes])
    return table.concat(list, ", ")
  end

  --- The statement: the call in a function of its own, as its tail call, or made by pcall itself.
  local function call(name, object, group, callee, args, method)
    local form = random:upto(6)
    local guard = ("if %s and w.knows(%q, %q) then "):format(object, group, name)
    if form == 1 then
      local first = method and object .. (args ~= "" and ", " or "") or ""
      return ("%sw.misuse_direct(%q, %s, %s.%s, %s%s) end"):format(guard, name, object, callee, name, first, args)
    end
    local colon = method and ":" or "."
    if form == 2 then
      return ('%sw.misuse(%q, %s, function() return %s%s%s(%s) end, "tail") end'):format(guard, name, object, callee,
        colon, name, args)
    end
    return ("%sw.misuse(%q, %s, function() %s%s%s(%s) end) end"):format(guard, name, object, callee, colon, name, args)
  end

  local function of_list(list, object, group, method)
    local takes = random:of(list)
    return call(takes[1], object, group, object, arguments(takes), method)
  end

  local function option(list, name, object, arg, group)
    local which = random:of(list)
    local value = which[1] == "limit" and random:of(limits) or bad_value(which[2])
    -- A nil option is an absent one.
    if value == "nil" then value = "0/0" end
    if value == "math.huge" and which[1] == "concurrency" then value = "0" end
    if which[2] == "count" and which[1] == "concurrency" and value == "0" then value = "-1" end
    local made = ("{ %s = %s }"):format(which[1], value)
    return ("if w.knows(%q, %q) then %s end"):format(group, which[1],
      call(name, object, name == "new" and "module" or "queue", object, arg .. made, name ~= "new"))
  end

  local function wrong_self()
    local on_q = random:chance(2)
    local object, other = on_q and q or ch, on_q and ch or q
    local name = random:of(on_q and methods_of_queue or methods_of_channel)
    local self = random:of(selves):gsub("OTHER", ("(%s or 5)"):format(other)):gsub("SELF", object)
    local text = 'if %s and w.knows("queue", %q) then w.misuse(%q, %s, function() %s.%s(%s, 1) end) end'
    return text:format(object, name, name, object, object, name, self)
  end

  local pick = random:upto(12)
  if pick <= 3 then return of_list(on_queue, q, "queue", true) end
  if pick <= 5 then return of_list(on_channel, ch, "module", true) end
  if pick <= 7 then return of_list(of_module, "queue", "module", false) end
  if pick <= 9 then return option(of_push, "push", q, "print, ", "push") end
  if pick == 10 then return option(of_new, "new", "queue", "", "new") end
  if pick == 11 then
    local case = filled(random:of(cases))
    return ('if %s and %s then w.misuse("select", queue, function() queue.select(%s, 0) end) end'):format(q, ch, case)
  end
  return wrong_self()
end
