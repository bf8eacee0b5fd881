--- The error `interrupted!`, which is how the interpreter's Ctrl-C arrives, as a job or a callback meets it.
-- The signal itself is in interrupt_spec.lua.
local H = require("spec.helper")
local queue, eq, list, has = H.queue, H.eq, H.list, H.has

local function watched()
  local seen = {}
  return queue.new{ on_error = function(msg, info) seen[#seen + 1] = { msg = msg, info = info } end }, seen
end

describe("interrupted!", function()
  it("thrown by a job ends the run with it; the job has failed and is not retried", function()
    for _, method in ipairs{ "run", "poll" } do
      local q, seen = watched(); local l, note = H.log()
      q:push(function() l[#l + 1] = "job"; error("interrupted!", 0) end, { retries = 5, id = "i" })
      q:push(note("rest"))
      local done, err = pcall(q[method], q)
      eq(done, false); eq(err, "interrupted!"); list(l, "job")
      eq(#seen, 1); eq(seen[1].msg, "interrupted!"); eq(seen[1].info.id, "i"); eq(seen[1].info.attempts, 1)
      local m = H.conserved(q); eq(m.failed, 1); eq(m.retried, 0); eq(m.pending, 1); eq(m.in_flight, 0)
      eq(q:run(), 1, "a later run goes on"); list(l, "job rest")
    end
  end)

  it("counts after a position too", function()
    local q, seen = watched()
    q:push(function() error("interrupted!") end, { retries = 5 }); q:push(H.noop)
    local done, err = pcall(q.run, q)
    eq(done, false); has(err, "spec.lua:"); eq(err:sub(-14), ": interrupted!"); eq(err, seen[1].info.error)
    eq(q:size(), 1); eq(q:metrics().failed, 1)
  end)

  it("as a part of another text is an error like any other", function()
    for _, text in ipairs{ "upload interrupted!", "interrupted! again", "interrupted", "Interrupted!", "x: interrupted!!" } do
      local q, seen = watched(); local ran
      q:push(function() error(text, 0) end, { retries = 1 }); q:push(function() ran = true end)
      eq(q:run(), 3, text); eq(#seen, 1); eq(seen[1].info.attempts, 2); eq(ran, true)
    end
  end)

  it("after a position of another kind of text is an error like any other", function()
    local q = queue.new(); q:push(function() error("upload interrupted!") end, { retries = 1 }); eq(q:run(), 2)
  end)

  it("out of on_error ends the run, and the job that failed is counted", function()
    local q
    q = queue.new{ on_error = function() error("interrupted!", 0) end }
    q:push(function() error("x") end); q:push(H.noop)
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(H.conserved(q).failed, 1); eq(q:size(), 1); eq(q:run(), 1)
  end)

  it("out of on_error of a shed job ends the run, and the job is counted", function()
    local q
    q = queue.new{ on_error = function() error("interrupted!", 0) end }
    q:push(H.noop, { timeout_ms = 1e-3 }); queue.sleep(1); q:push(H.noop)
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(H.conserved(q).expired, 1); eq(q:size(), 1)
  end)

  it("out of backoff_ms ends the run, and nothing is lost", function()
    local q = queue.new(); local ran
    q:push(function() error("x") end, { retries = 3, backoff_ms = function() error("interrupted!", 0) end })
    q:push(function() ran = true end)
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(ran, nil)
    local m = H.conserved(q); eq(m.processed, 1); eq(m.in_flight, 0)
  end)

  it("out of a run inside a job ends both runs, and both jobs have failed", function()
    local q, seen = watched(); local ran
    q:push(function() q:run() end, { id = "outer", priority = 2, retries = 1 })
    q:push(function() error("interrupted!", 0) end, { id = "inner", priority = 1, retries = 1 })
    q:push(function() ran = true end)
    local done, err = pcall(q.run, q)
    eq(done, false); eq(err, "interrupted!"); eq(ran, nil)
    eq(#seen, 2); eq(seen[1].info.id, "inner"); eq(seen[2].info.id, "outer")
    local m = H.conserved(q); eq(m.failed, 2); eq(m.pending, 1)
  end)

  it("that a job catches is the job's affair", function()
    local q, seen = watched(); local ran
    q:push(function() pcall(error, "interrupted!", 0) end); q:push(function() ran = true end)
    eq(q:run(), 2); eq(ran, true); eq(#seen, 0)
  end)
end)
