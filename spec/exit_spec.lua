--- The ends of a script: every way out is prompt and clean, whatever is alive.
local H = require("spec.helper")
local eq = H.eq

local function ends(...) H.ends("ends.lua", ...) end
local with = H.with(function() return it, pending end)

local ways = {
  { "end of file", 0 }, { "error", 1, "the end" }, { "error in a coroutine", 1, "the end" },
  { "os.exit(0)", 0 }, { "os.exit(7)", 7 }, { "os.exit(0, true)", 0 }, { "os.exit(7, true)", 7 },
  { "os.exit(7) in a coroutine", 7 }, { "os.exit(0, true) in a coroutine", 0 },
  { "os.exit(0) in a job", 0 }, { "os.exit(7, true) in a job", 7 }, { "os.exit(0, true) in on_error", 0 },
  { "os.exit(0) in a finalizer", 0 }, { "error in a loop over a ticker", 1, "the end" },
}

describe("a script with 2,000 live timers ends by", function()
  for _, way in ipairs(ways) do
    it(way[1], function() ends(way[2], way[3], way[1], "timers", math.max(20, math.floor(2000 / H.slow))) end)
  end
end)

describe("a script with fast tickers ends by", function()
  for _, way in ipairs(ways) do
    it(way[1], function() ends(way[2], way[3], way[1], "tickers", 20) end)
  end
end)

describe("a script with pending jobs and full channels ends by", function()
  for _, way in ipairs(ways) do
    it(way[1], function() ends(way[2], way[3], way[1], "jobs", 1000) end)
  end
end)

describe("a script ends clean", function()
  it("where a job is parked in a coroutine", function() ends(0, nil, "end of file", "parked", 10) end)
  it("where finalizers use the objects while the state closes", function() ends(0, nil, "end of file", "finalizers", 100) end)
  it("by os.exit(0, true) where they do", function() ends(0, nil, "os.exit(0, true)", "finalizers", 100) end)
  it("where the module was let go of first", function() ends(0, nil, "end of file", "unloaded", 10) end)
end)

describe("a Lua state that is closed in a worker thread", function()
  for _, host in ipairs{ "luv", "cqueues.thread" } do
    with(host, "of " .. host .. " takes its timers with it", function()
      local r = H.run("worker_state.lua", host)
      eq(r.err, ""); eq(r.out, "worker done\nmain done\n"); eq(r.code, 0)
    end)
  end
end)
