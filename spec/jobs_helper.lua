--- What the specs of the job queue's richer half share: queues that note what they tell, and looks at what is alive.
local H = require("spec.helper")
local queue = H.queue

local J = {}

--- One job at a time, and several side by side.
J.widths = { 1, 3 }

function J.fail() error("boom") end

--- A queue that notes what its callbacks are told; `options` are those of `new`.
function J.watched(options)
  local seen, all = {}, {}
  for k, v in pairs(options or {}) do all[k] = v end
  local function note(what, msg, info, results)
    seen[#seen + 1] = { what = what, id = info.id, msg = msg, info = info, results = results }
  end
  function all.on_error(msg, info) note("error", msg, info) end
  function all.on_retry(msg, info) note("retry", msg, info) end
  function all.on_success(info, ...) note("success", nil, info, H.pack(...)) end
  return queue.new(all), seen
end

--- What was told, as words: `error a`, `retry b`, `success c`.
function J.told(seen)
  local words = {}
  for i, s in ipairs(seen) do words[i] = s.what .. " " .. s.id end
  return words
end

--- The ids of an array of jobs: by default what `jobs()` shows, or what `q:failed()` does.
function J.ids(q, rows)
  local ids = {}
  for i, row in ipairs(rows or q:jobs()) do ids[i] = row.id end
  return ids
end

--- The first job of that id which `jobs()` shows, or nil.
function J.row(q, id)
  for _, row in ipairs(q:jobs()) do
    if row.id == id then return row end
  end
end

--- Between which two moments the pending job of that id is due; nothing where it is due already.
function J.due(q, id)
  local before = queue.now()
  local row = J.row(q, id)
  local after = queue.now()
  if not row then error("no job " .. id, 2) end
  if not row.due_ms then error("job " .. id .. " is in flight", 2) end
  if row.due_ms > 0 then return before + row.due_ms, after + row.due_ms end
end

--- Whether the pending job of that id is due later: then it must be so a whole number of intervals after a moment
-- between `low` and `high`.
function J.on_phase(q, id, interval, low, high)
  local from, to = J.due(q, id)
  if not from then return false end
  local n = math.floor((to - low) / interval)
  if n * interval < from - high then
    error(("%.3f to %.3f ms after the first are no multiple of %g"):format(from - high, to - low, interval), 2)
  end
  return true
end

--- The method of that name, called on what is no queue, says so.
function J.wrong_self(name)
  local q, ch = queue.new(), queue.channel(1)
  local method = q[name]
  H.eq(type(method), "function", name)
  local function bad(got) return ("'%s'.*queue expected, got %s"):format(name, got) end
  H.raises(bad("no value"), function() method() end)
  H.raises(bad("nil"), function() method(nil, "x") end)
  H.raises(bad("number"), function() method(5, "x") end)
  H.raises(bad("string"), function() method("x", "x") end)
  H.raises(bad("table"), function() method({}, "x") end)
  H.raises(bad("function"), function() method(H.noop, "x") end)
  H.raises(bad("channel"), function() method(ch, "x") end)
  H.raises("queue expected", function() method(setmetatable({}, debug.getmetatable(q)), "x") end)
  J.untouched(q)
end

--- Nothing has been pushed to `q`, and no id was used up.
function J.untouched(q)
  H.eq(q:size(), 0, "size"); H.eq(q:metrics().enqueued, 0, "enqueued"); H.eq(q:metrics().dropped, 0, "dropped")
  H.eq(#q:jobs(), 0, "jobs"); H.eq(q:is_stopped(), false); H.eq(q:is_paused(), false)
  H.eq(q:push(H.noop), "job-1", "the first id"); H.eq(q:run(), 1)
end

--- The pattern of a bad argument, and of a bad option.
function J.arg(n, name, extra) return ("bad argument #%d to '%s' %%(%s%%)"):format(n, name, extra or ".*") end
function J.option(key, name, extra) return ("bad option '%s' to '%s' %%(%s%%)"):format(key, name, extra or ".*") end

return J
