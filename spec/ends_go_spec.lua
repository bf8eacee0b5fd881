--- Ctrl-C during select and concurrent runs, and the ends of scripts with parked jobs, shared channels and descriptors.
local H = require("spec.helper")

local function interrupted(...) H.interrupted("interrupted_go.lua", ...) end
local function ends(...) H.ends("ends_go.lua", ...) end

local waits = {
  "select", "select with a time", "select over timers", "select that sends", "select of many", "shared receive", "shared send",
  "shared iter", "concurrent run", "concurrent run of sleepers", "concurrent run in a concurrent job",
  "concurrent run of a delayed job",
}

for _, place in ipairs{ "top", "coroutine" } do
  describe("Ctrl-C at " .. place .. " ends", function()
    local function here(title, ...)
      local words = H.pack(...)
      it(title, function()
        if H.lua51 and (place == "coroutine" or title:find("in a concurrent job")) then
          return pending("stock 5.1 cannot tell a coroutine")
        end
        interrupted(H.unpack(words, 1, words.n))
      end)
    end
    for _, wait in ipairs(waits) do here(wait, 1, "ready\n", "interrupted!", wait, place) end

    -- A coroutine has a hook of its own, which a Ctrl-C reaches only where the coroutine waits.
    if place == "top" then
      here("a run of jobs that never rest", 1, "ready\n", "interrupted!", "run of jobs that never rest", place)
    end

    here("a blocking wait in a concurrent job: that job has failed", 1, "ready\nfailed blocker 1\n", "interrupted!",
      "blocking wait in a concurrent job", place)

    here("a run whose jobs all wait on a shared channel: they stay in flight, and a later run goes on", 3,
      "ready\ncaught true, in flight 3, pending 1, failed 0\nthe delayed one\nthen ran 4, got 6\n", nil, "goes on", place)
  end)
end

local ways = {
  { "end of file", 0 }, { "error", 1, "the end" }, { "os.exit(0)", 0 }, { "os.exit(0, true)", 0 },
  { "os.exit(7, true) in a concurrent job", 7 }, { "error in a coroutine", 1, "the end" },
}
for kind, many in pairs{ parked = 1000, shared = 500, descriptors = 90 } do
  describe("a script with " .. (kind == "parked" and "parked jobs" or kind == "shared" and "shared channels"
    or "open descriptors") .. " ends by", function()
    for _, way in ipairs(ways) do
      it(way[1], function() ends(way[2], way[3], way[1], kind, math.max(10, math.floor(many / H.slow))) end)
    end
  end)
end
