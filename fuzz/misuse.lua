--- Bad calls: each raises a string in the stock library's words, at the caller's line, and changes nothing.

local Texts = require("fuzz.texts")

return function(w)
  --- What must be the same before and after.
  local function snapshot(object)
    local rec = w.records[object]
    if not rec or rec.kind == "timer" then return "" end
    if rec.kind ~= "queue" then return tostring(object) end
    local m = object:metrics()
    return ("%d %d %d %d %d %d %s"):format(m.enqueued, m.processed, m.dropped, m.cancelled, m.pending, m.in_flight,
      tostring(object))
  end

  --- `bare`: the position may be missing, for a tail call or pcall itself made the call.
  local function check(name, object, bare, fn, ...)
    local before = snapshot(object)
    local ok, thrown = pcall(fn, ...)
    local after = snapshot(object)
    if ok then return w.fail("a bad call of %s passed", name) end
    local rec = w.records[object]
    local patterns = Texts.misuse(name)
    if rec and rec.closed then patterns[#patterns + 1] = "^send on closed channel$" end
    if name == "run" or name == "poll" then patterns[#patterns + 1] = "^queue is already running$" end
    w.judge(name, patterns, thrown, bare)
    if after ~= before then w.fail("a bad call of %s changed %s to %s", name, before, after) end
  end

  --- A bad call, made by `fn` on a line of its own. With `tail` it is the tail call of `fn`.
  function w.misuse(name, object, fn, tail)
    if w.fuel <= 0 or object == nil then return end
    w.fuel = w.fuel - 1
    if w.trace then w.trace("misuse of " .. name) end
    w.quiet(check, name, object, tail == "tail", fn)
  end

  --- The same with pcall itself as the caller. A method that is not there yet is none.
  function w.misuse_direct(name, object, fn, ...)
    if w.fuel <= 0 or object == nil or fn == nil then return end
    w.fuel = w.fuel - 1
    if w.trace then w.trace("direct misuse of " .. name) end
    w.quiet(check, name, object, true, fn, ...)
  end

  --- Whether the module has what a bad call is about.
  function w.knows(group, name) return w.has[group][name] ~= false end
end
