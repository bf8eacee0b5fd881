-- The benchmark runs: every contest, so small that its figures mean nothing. And what it makes of figures is right.

local H = require("spec.helper")
local eq, ok, has = H.eq, H.ok, H.has

local function slurp(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function count(text, pattern) return (select(2, text:gsub(pattern, ""))) end

-- Raises unless each tag is closed, in its turn, and each `&` begins an entity.
local function well_formed(xml)
  local open = {}
  for slash, name, rest in xml:gmatch("<(/?)([%w:]+)([^<>]*)>") do
    if slash == "/" then
      eq(table.remove(open), name, "closing tag")
    elseif not rest:find("/%s*$") then
      open[#open + 1] = name
    end
    local left = rest:gsub('%s[%w:-]+="[^"]*"', "")
    ok(not left:find("[^%s/]"), "an attribute is not quoted: " .. rest)
  end
  eq(#open, 0, "tags left open")
  eq(count(xml, "<"), count(xml, "<(/?)([%w:]+)([^<>]*)>"), "tags")
  eq(count(xml, "&"), count(xml, "&%a+;"), "entities")
  ok(not xml:lower():find("[ \"]%-?nan") and not xml:lower():find("[ \",]%-?inf[ \",]"), "a coordinate is no number")
end

local function tables_in(page)
  local cells, seen = nil, 0
  for line in page:gmatch("[^\n]*") do
    if line:find("^|") then
      local n = count(line, "|")
      cells = cells or n
      eq(n, cells, "cells of " .. line)
      seen = seen + 1
    elseif line ~= "" then
      cells = nil
    end
  end
  return seen
end

local function result(name, rows)
  return {
    name = name, interpreter = name .. " <1> & \"2\"", module = "queue 0", rounds = 3,
    machine = { cpu = "a cpu", cores = 2, kernel = "a kernel", memory_gib = 4 },
    peers = { { name = "luv", version = "9" } },
    rows = rows,
    points = {
      { plot = "jobs", n = 10, queue = 300, pure = 900 }, { plot = "jobs", n = 1000, queue = 400 },
      { plot = "values", n = 1, queue = 50, pure = 40 }, { plot = "values", n = 100, queue = 60, pure = 45 },
    },
    notes = { "something was left out" },
  }
end

local function played(samples, missing) return { samples = samples, missing = missing or {} } end

describe("make bench", function()
  local data = require("bench.data")

  it("plays every contest and writes its pages", function()
    local room = H.shell("mktemp -d").out:gsub("%s+$", "")
    local file = room .. "/result.lua"
    local r = H.run("../../bench/run.lua", file, "tiny")
    eq(r.err, "")
    eq(r.code, 0)
    local found = data.load(file)
    ok(#found.rows > 30)
    eq(#found.points, 14)
    for _, row in ipairs(found.rows) do
      ok(row.verdict ~= "failed", "failed: " .. row.work .. ", against " .. row.against)
      if row.verdict == "not installed" then
        ok(not (H.optional("luv") and H.optional("cqueues") and H.optional("binaryheap")), row.work)
      end
    end

    r = H.run("../../bench/write.lua", room, file)
    eq(r.err, "")
    eq(r.code, 0)
    ok(tables_in(slurp(room .. "/benchmark.md")) > #found.rows)
    well_formed(slurp(room .. "/benchmark.svg"))
    well_formed(slurp(room .. "/growth.svg"))
    os.execute("rm -rf " .. room)
  end)

  it("knows the rows by their names", function()
    local r = H.run("../../bench/run.lua", "/dev/null", "tiny", "rows=no such row")
    eq(r.code, 2)
    has(r.err, "no such row")
  end)
end)

describe("a row of the benchmark", function()
  local judge, format = require("bench.judge"), require("bench.format")
  local contest = { unit = "ns" }

  local function judged(row, ours, theirs)
    row.ours, row.theirs = "queue", theirs and "other"
    return judge.row(contest, row, played{ queue = { [""] = ours }, other = theirs and { [""] = theirs } })
  end

  it("goes by the ratio of the medians", function()
    local row = judged({ least = 4 }, { 1, 2, 3 }, { 4, 8, 100 })
    eq(row.figure.median, 4)
    eq(row.figure.best, 4)
    eq(row.verdict, "met")
    eq(judged({ least = 4 }, { 1, 2.1, 3 }, { 4, 8, 100 }).verdict, "missed")
    eq(judged({ least = 4 }, { 2, 4 }, { 12 }).figure.median, 4)
  end)

  it("allows so many times the cost, or so much", function()
    eq(judged({ most = 2.5 }, { 5 }, { 2 }).verdict, "met")
    eq(judged({ most = 2.5 }, { 6 }, { 2 }).verdict, "missed")
    eq(judged({ limit = 200, unit = "bytes" }, { 200 }).verdict, "met")
    eq(judged({ limit = 200, unit = "bytes" }, { 201 }, { 1 }).verdict, "missed")
    eq(judged({}, { 2 }, { 4 }).verdict, "–")
  end)

  it("may have a target for each kind of Lua", function()
    local row = judged({ least = { puc = 4, jit = 2 } }, { 1 }, { 3 })
    eq(row.target, H.jit and 2 or 4)
    eq(row.verdict, H.jit and "met" or "missed")
  end)

  it("says what was not there and what did not work", function()
    local row = { least = 4, ours = "queue", theirs = "other:p99" }
    local samples = { queue = { [""] = { 1 } } }
    eq(judge.row(contest, row, played(samples, { other = "luv" })).verdict, "not installed")
    eq(judge.row(contest, row, played(samples)).verdict, "failed")
    eq(judge.row(contest, { limit = 4, ours = "queue" }, played{}).verdict, "failed")
  end)

  it("is written for people", function()
    eq(format.quantity(312.4, "ns"), "312 ns")
    eq(format.quantity(2481, "ns"), "2.48 µs")
    eq(format.quantity(1234567, "us"), "1.23 s")
    eq(format.ratio(9.999), "10.0×")
    eq(format.figure(judged({ least = 4 }, { 1 }, { 3.9991 }), "median"), "3.9991×")
    eq(format.ratio(99.97), "100×")
    eq(format.quantity(1234.6, "bytes"), "1,235 bytes")
    eq(format.thousands(10000000), "10,000,000")
    eq(format.thousands(100), "100")
    eq(format.target(judged({ most = 2.5 }, { 1 }, { 1 })), "≤ 2.5×")
    eq(format.target(judged({ limit = 20, unit = "ms" }, { 1 })), "≤ 20 ms")
  end)
end)

describe("the pages of the benchmark", function()
  local judge, tables = require("bench.judge"), require("bench.table")

  local function rows(ours)
    local list = {}
    for i, goal in ipairs{ { least = 4 }, { most = 2 }, { limit = 50 }, {} } do
      goal.section, goal.work, goal.against = "Things", "work " .. i, "a <peer> & co"
      goal.ours, goal.theirs = "queue", i ~= 3 and "other" or nil
      list[i] = judge.row({ unit = "ns" }, goal, played{ queue = { [""] = { ours } }, other = { [""] = { 80 } } })
    end
    list[5] = judge.row({ unit = "ns" }, { section = "Things", work = "work 5", against = "nobody", least = 1,
      ours = "queue", theirs = "none" }, played({ queue = { [""] = { 1 } } }, { none = "luv" }))
    return list
  end
  local good, bad = result("Lua 1", rows(10)), result("Lua 2", rows(1000))

  it("say what is met, missed, and not there", function()
    local page = tables.page{ good, bad }
    ok(tables_in(page) > 10)
    eq(count(page, "| met |"), 3)
    eq(count(page, "| %*%*missed%*%* |"), 3)
    eq(count(page, "| not installed |"), 2)
    has(page, "targets: 3 met, 0 missed, 1 not installed")
    has(page, "targets: 0 met, 3 missed, 1 not installed")
    has(page, "something was left out")
    has(page, "| 1,000 | 400 ns | – | 400 ns | – |")
  end)

  it("have pictures that hold every row with a target", function()
    local picture = require("bench.bars").render{ good, bad }
    well_formed(picture)
    eq(count(picture, '<rect class="bar%d"'), 2 + 6)
    eq(count(picture, 'class="value missed"'), 3)
    has(picture, "a &lt;peer&gt; &amp; co")
    local growth = require("bench.curves").render{ good, bad }
    well_formed(growth)
    eq(count(growth, "<circle"), 4 + 2 * 7)
  end)

  it("have no picture of nothing", function()
    local nothing = result("Lua 3", {})
    nothing.points = {}
    eq(require("bench.bars").render{ nothing }, nil)
    eq(require("bench.curves").render{ nothing }, nil)
    ok(tables.page{ nothing })
  end)

  it("pass through a file unharmed", function()
    local path = os.tmpname()
    require("bench.data").save(path, good)
    eq(tables.page{ require("bench.data").load(path) }, tables.page{ good })
    os.remove(path)
  end)
end)

-- A peer that left something out would be no peer.
describe("the pure-Lua queue of the benchmark", function()
  local peer = require("bench.peer")
  local time, said, q = 0, {}, nil

  local function fresh(options)
    time, said = 0, {}
    options = options or {}
    options.now = function() return time end
    options.sleep = function(ms) time = time + ms end
    q = peer.new(options)
  end
  local function say(word) return function() said[#said + 1] = word end end

  it("runs by priority, then in push order", function()
    fresh()
    for i = 1, 30 do q:push(say(("%d.%02d"):format(9 - i % 3, i)), { priority = i % 3 }) end
    eq(q:run(), 30)
    local sorted = {}
    for i, word in ipairs(said) do sorted[i] = word end
    table.sort(sorted)
    H.list(said, table.concat(sorted, " "))
  end)

  it("waits out delays, retries, and goes on after an error", function()
    local lost = {}
    fresh{ on_error = function(message, info) lost[#lost + 1] = info.id .. " " .. info.attempts .. " " .. message end }
    q:push(say("late"), { delay_ms = 20 })
    q:push(function() error("no", 0) end, { id = "bad", retries = 2, backoff_ms = 5 })
    q:push(say("soon"), { delay_ms = 1 })
    eq(q:run(), 5)
    H.list(said, "soon late")
    H.list(lost, "bad 3 no")
    eq(time, 20)
    local m = q:metrics()
    eq(m.retried, 2)
    eq(m.failed, 1)
    eq(m.succeeded, 2)
    eq(m.pending, 0)
  end)

  it("sheds, cancels, refuses and stops", function()
    fresh{ capacity = 3 }
    eq(q:push(say("a")), "job-1")
    q:push(say("b"), { timeout_ms = 10 })
    q:push(say("c"), { id = "c" })
    eq(select(2, q:push(say("d"))), "queue is full")
    eq(q:cancel("c"), 1)
    eq(q:size(), 2)
    time = 11
    eq(q:run(), 1)
    H.list(said, "a")
    eq(q:metrics().expired, 1)
    q:stop()
    eq(select(2, q:push(say("e"))), "queue is stopped")
    eq(q:metrics().dropped, 2)
  end)
end)
