-- Each example runs to its end in an interpreter of its own, says nothing on standard error, and prints what it is
-- there to show.

local H = require("spec.helper")

local root = debug.getinfo(1, "S").source:match("^@(.*)spec[/\\][^/\\]*$") or ""

-- The line of a library's example where that library is missing.
local function with(name, lines)
  return H.optional(name) and lines or { "is not installed: nothing to show here." }
end

-- As redis_worker.lua looks for it: the client is plain Lua, and what is there for one Lua runs on the others.
local function has_redis()
  local path = package.path
  package.path = path .. ";/usr/share/lua/5.3/?.lua"
  local there = H.optional("redis") and H.optional("socket.unix")
  package.path = path
  return there and H.shell("command -v redis-server").code == 0
end

-- Once for each of the two loops that is there.
local function shutdown_lines()
  local lines = {}
  for _, loop in ipairs{ "luv", "cqueues" } do
    if H.optional(loop) then
      for _, line in ipairs{ "with " .. loop, "SIGTERM, 3 in flight", "done, 0 in flight, ", "none is lost: true" } do
        lines[#lines + 1] = line
      end
    end
  end
  return #lines > 0 and lines or { "nothing to show here" }
end

-- Lines that must appear, in this order; those of an inner list in any.
local shown = {
  ["tour.lua"] = {
    "the critic's dinner", "soup, table 4", "soup, table 9", "wash the pans", "(4 jobs)",
    "letter: given up after 3 attempts (no such street), return to sender", "parcel: delivered at knock 3",
    "6 attempts: 1 delivered, 4 retried, 1 failed",
    "lap 1, runner", "lap 2, runner", "lap 3, runner", "30 ms at least have gone by: true",
    "the visitor is served", "job \"quote of 9 o'clock\" expired before it ran",
    "Ada  -> job-1", "Ben  -> job-2", "Cleo -> queue is full", "queue(pending=2)",
    "channel(3/3): fig taken? false, full", "apple", "pear", "plum", "and then? false, closed",
    "after 15 ms: false, timeout", "without a limit: false, deadlock: receive on channel(0/1) can never complete",
    "beat 1", "beat 2", "the egg is done",
    "frame 1: 2 done, 3 left", "frame 2: 2 done, 1 left", "frame 3: 1 done, 0 left",
    "received form 1", "received form 2", "the intern: deadlock: receive on channel(0/0) can never complete",
    "6 jobs, five waits of 50 ms, less than 250 ms: true",
    "case 2: the train", "and now? case 1: closed", "and now? nil, timeout",
    "the other side, 3 pages, a copy: true", "false, bad argument #1 to 'send' (value.pages[1]: a function cannot be copied)",
    "push -> nil, queue is stopped", "queue(pending=0, stopped)",
  },
  ["retry.lua"] = { "lost /private, status 403", "2 fetched, 1 lost, after retries: true" },
  ["game_loop.lua"] = {
    "200 path steps over several frames: true", "waves came in between: true", "5 sparks were dropped",
    "queue(pending=1, stopped)",
  },
  ["event_loop.lua"] = H.lua51 and { "nothing to show here" }
    or { "9 jobs done: 1 2 3 4 5 6 7 8 9", "in three rounds, not nine: true" },
  ["service.lua"] = { "every request is accounted for: true", "the queue's own books agree: true" },
  ["pipeline.lua"] = {
    "300 jobs ended, 0 failed", "20000 values arrived, in order within each pipeline: true",
    "nothing lost, nothing doubled: true",
  },
  ["sieve.lua"] = {
    "500 primes up to 3571", "the first: 2 3 5 7 11 13 17 19 23 29", "the last: 3571",
    "hundreds of jobs in flight at once: true",
  },
  ["threads.lua"] = (H.optional("luv") or H.optional("cqueues.thread"))
    and { "20 answers from 3 threads", "168 primes up to 1000, 2262 up to 20000" } or { "no threads to show" },
  ["dashboard.lua"] = {
    "[..............................] 0 done, ", "[##############################] 180 done, 0 in flight, 0 pending",
    "retried 18, failed 0, expired 0", "wait p50 ", "exec p50 ",
    "thumbnails [#.............................]   2 %", "thumbnails [##############################] 100 %",
  },
  ["http_retry.lua"] = with("socket", {
    {
      "/news: status 503, attempt 2 follows in ", "/news: status 503, attempt 3 follows in ",
      "/busy: status 429, attempt 2 follows in 1000 ms", "/lost: status 404, given up at attempt 1",
      "/news: the text of /news", "/busy: the text of /busy",
    },
    "3 retries, 1 call given up",
  }),
  ["crawler.lua"] = {
    "/, 3 links", { "  /news, 4 links", "  /shop, 4 links", "  /about, 3 links", "/shop/sale, 2 links" },
    "12 pages read, 1 dead link, 1 retry", "dead: /gone, status 404", "31 links met, 14 requests made",
    "so 14 take 200 ms at least: true",
  },
  ["cron.lua"] = {
    { "greeting 3 of 3", "backup failed: disk full", "the clock strikes" },
    "done once more: backup", "cancelled: 1", "backup written", "would come next: chime",
    "the heartbeat came until it was cancelled: true", "greetings: 3, syncs that overlapped: 0",
  },
  ["fan_out.lua"] = {
    "faster than one by one: true", "Oslo: 25 degrees", "Cork: 21 degrees", "1 retry", "as they came in: ",
    "in order again:  Oslo 25 degrees, Rome 21 degrees, Lima 15 degrees, Kyiv 1 degrees, Doha 21 degrees",
    "faster than one by one: true",
  },
  ["shutdown.lua"] = shutdown_lines(),
  ["redis_worker.lua"] = has_redis() and {
    "put back: square 3",
    { "knock door: nobody opens, try 2", "mail Ada: no route, try 2" },
    "mail Ada: no route, given up", "The mail has a route now.",
    {
      "done: square 3 -> 9", "done: square 4 -> 16", "done: square 5 -> 25", "done: square 6 -> 36",
      "done: knock door -> open", "done: mail Ada -> sent",
    },
    "todo 0, doing 0, failed 0, done 6",
  } or { "is not installed: nothing to show here." },
  ["in_copas.lua"] = with("copas", {
    { "QUESTION 1\n", "QUESTION 2\n", "QUESTION 3\n", "tea is ready\n" }, "3 jobs done",
  }),
  ["in_cqueues.lua"] = with("cqueues", {
    { "served: soup", "closing time, and the ticker has ticked: true" }, "the loop went on: 20 turns, 1 job done",
  }),
  ["in_luasocket.lua"] = with("socket", {
    "order 1 is served", "order 2 is served", "order 3 is served", "closing time: 3 orders, 3 served",
  }),
  ["in_luv.lua"] = with("luv", {
    { "one -> ONE\n", "two -> TWO\n", "three -> THREE\n", "tea is ready\n" }, "3 jobs done",
  }),
}

local function examples()
  local list = {}
  local listing = assert(io.popen('ls "' .. root .. 'examples"'))
  for name in listing:lines() do
    if name:find("%.lua$") then list[#list + 1] = name end
  end
  listing:close()
  return list
end

-- As `H.run` has it: the path begins at spec/scripts.
local function run(name)
  return H.run("../../examples/" .. name)
end

describe("examples", function()
  for _, name in ipairs(examples()) do
    it(name .. " runs and ends by itself", function()
      local r = run(name)
      H.eq(r.err, "", "standard error")
      H.eq(r.code, 0, "exit code")
      H.ok(shown[name], "spec/examples_spec.lua does not know what " .. name .. " shows")
      local from = 1
      for _, lines in ipairs(shown[name]) do
        local past = from
        for _, line in ipairs(type(lines) == "table" and lines or { lines }) do
          local _, last = r.out:find(line, from, true)
          H.ok(last, "not there, or out of order: " .. line .. "\n" .. r.out)
          past = math.max(past, (last or 0) + 1)
        end
        from = past
      end
    end)
  end

  it("would be seen to fail", function()
    local r = run("there-is-no-such-file.lua")
    H.ok(r.code ~= 0)
    H.has(r.err, "there-is-no-such-file")
  end)
end)
