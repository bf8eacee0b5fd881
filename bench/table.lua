--- The page docs/benchmark.md: what was measured, on what, how, and a table for each interpreter.

local format = require("bench.format")

local T = {}

local function row_of(row)
  local function raw(side) return side and format.quantity(side.median, row.unit) or "–" end
  local cells = {
    row.work, row.against, format.target(row), format.figure(row, "median"), format.figure(row, "best"),
    row.verdict == "missed" and "**missed**" or row.verdict, raw(row.ours), raw(row.theirs),
  }
  return "| " .. table.concat(cells, " | ") .. " |"
end

local HEAD = "| work | against | target | median | best | verdict | queue | the other |\n" ..
  "|---|---|---|---:|---:|---|---:|---:|"

--- The rows of one interpreter, a table for each section.
function T.rows(result)
  local lines, section = {}, nil
  for _, row in ipairs(result.rows) do
    if row.section ~= section then
      section = row.section
      lines[#lines + 1] = ("\n### %s, %s\n\n%s"):format(section, result.interpreter, HEAD)
    end
    lines[#lines + 1] = row_of(row)
  end
  return table.concat(lines, "\n")
end

--- How many rows have each verdict.
function T.count(result)
  local count = { met = 0, missed = 0 }
  for _, row in ipairs(result.rows) do count[row.verdict] = (count[row.verdict] or 0) + 1 end
  return count
end

local function tally(result)
  local count = T.count(result)
  local text = ("targets: %d met, %d missed"):format(count.met, count.missed)
  for _, word in ipairs{ "failed", "not installed" } do
    if count[word] then text = text .. (", %d %s"):format(count[word], word) end
  end
  return text
end

local function machine(results)
  local m = results[1].machine
  local lines = {
    ("- Machine: %s, %d cores%s; %s."):format(m.cpu, m.cores or 0,
      m.memory_gib and (", %.0f GiB"):format(m.memory_gib) or "", m.kernel),
    "- Module: " .. results[1].module .. ".",
  }
  for _, result in ipairs(results) do
    local peers = {}
    for i, peer in ipairs(result.peers) do peers[i] = peer.name .. " " .. peer.version end
    lines[#lines + 1] = ("- %s, with %s: %s."):format(result.interpreter, table.concat(peers, ", "), tally(result))
  end
  return table.concat(lines, "\n")
end

-- A curve as figures: a line for each number of jobs or values, a column for each interpreter and contender.
local function curve(results, plot, what)
  local head, rule, columns = { what }, { "---:" }, {}
  local others = { jobs = "pure-Lua queue", values = "Lua table" }
  for _, result in ipairs(results) do
    for _, who in ipairs{ "queue", "pure" } do
      head[#head + 1] = (who == "queue" and "queue" or others[plot]) .. ", " .. result.interpreter
      rule[#rule + 1] = "---:"
      columns[#columns + 1] = { result = result, who = who }
    end
  end
  local ns, seen = {}, {}
  for _, result in ipairs(results) do
    for _, point in ipairs(result.points) do
      if point.plot == plot and not seen[point.n] then
        seen[point.n] = true
        ns[#ns + 1] = point.n
      end
    end
  end
  table.sort(ns)
  local lines = { "| " .. table.concat(head, " | ") .. " |", "|" .. table.concat(rule, "|") .. "|" }
  for _, n in ipairs(ns) do
    local cells = { format.thousands(n) }
    for _, column in ipairs(columns) do
      local value
      for _, point in ipairs(column.result.points) do
        if point.plot == plot and point.n == n then value = point[column.who] end
      end
      cells[#cells + 1] = value and format.quantity(value, "ns") or "–"
    end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n"), #ns > 0
end

function T.growth(results)
  local jobs, any = curve(results, "jobs", "jobs waiting")
  local values, more = curve(results, "values", "values buffered")
  return jobs .. "\n\n" .. values, any or more
end

local INTRO = [[
# Benchmark

`make bench` takes these figures and writes this page and its pictures. The module and its peers do the same work in
turn, so what disturbs the machine disturbs both. Times differ from one machine to the next; what is compared is their
ratio in one run.

![How many times as fast as its peers the module is, and how much of its limits it uses](benchmark.svg)
]]

local READING = [[
## How to read it

- *median* and *best* are in the terms of the target: how many times as fast as the other (`≥`), how many times its
  cost (`≤ 2.5×`), or the value itself (`≤ 200 bytes`). *median* is the ratio of the medians of all rounds, and the
  verdict goes by it; *best* is the ratio of the quickest rounds. Where there is no target, it is how many times as much
  the other takes.
- *queue* and *the other* are the medians of both sides: for one job, one value, one round of a ping-pong.
- **The floor** is what any module in C costs at least: for a job two calls of an empty method and an `xpcall` of an
  empty function, for a value two such calls.
- **The pure-Lua queue** is `bench/peer.lua`: ids, priorities, delays, retries, start deadlines, metrics, a protected
  call. **binaryheap** is the library of that name, with push order and a `pcall` and nothing else. That is less than a
  job queue; its target is the same.
- Priorities are random. "10 priorities" are 0 to 9; "65,536 priorities" are spread over 31 bits, and up to some ten
  thousand jobs nearly each has its own. A queue is made, filled and run anew for each round of so many jobs.
- Jobs and values within one Lua state are measured in processor time, threads and timers by the clock on the wall.
  Each row has a process of its own; memory, many timers and blocked waits have a fresh one in each round.
- Between threads the lines are buffered in full, which is cqueues at its quickest, and made into numbers and tables
  again; in the ping-pong they are buffered by line.
- A beat of a ticker is late by how long after its place in the phase it is seen, an `after` by how long after its time.
]]

local LIMITS = [[
## What limits it

Where a row misses its target, this is what the profile shows.

- **A job beside the floor.** On Lua 5.4 a job of 10 priorities takes 4,800 instructions. The floor is 1,430. The string
  of the job's id and its collection take 710, the walk over the options 230, keeping the function where the collector
  sees it 290; the others schedule, measure, and pass on what `xpcall` returned.
- **Jobs on LuaJIT.** It compiles all of a peer in Lua into machine code, but no call of a C function. A push and a step
  of the pump are some 25 such calls, and make up for that only where a peer has many jobs to compare.
- **65,536 priorities.** Up to 32 priorities have a queue of their own each and nothing is compared. More go through a
  heap, which compares as a peer does, only faster, and waits for memory as a peer does.
- **binaryheap** has no ids, delays, retries or metrics to keep.
- **A value between two jobs.** Of the time of an unbuffered one `coroutine.resume` and `yield` alone take a quarter
  (LuaJIT: a ninth), the calls to send and receive a sixth. In the ring each hop is one resume for both sides, and
  cqueues has 1,000 coroutines ready in one list: a quarter of its time would be hardly more than the resume.
- **`after`** wakes two threads one after the other, its own and then Lua's; luv's loop wakes one. Mostly it is the more
  punctual all the same; in the worst hundredth the two wake-ups add up.
]]

local REPEATING = [[
## Take them again

```sh
make bench                       # all of it, on lua5.4 and luajit: writes docs/
make bench ROUNDS=2 ROWS=jobs    # some of it, shorter: shows the tables, writes build/bench/
```

An idle machine gives steady figures. The libraries that are missing are installed first, and said before they are.
]]

local GROWTH = [[
## Growth

Push and run, for each job, while so many wait, of 65,536 priorities (each time in a new queue, the making of which
shows at 10 jobs); and a channel that is filled and emptied, for each value, beside a plain Lua table with two indexes.
Both scales are logarithmic.

![The cost of a job by the jobs that wait, the cost of a value by the values that are buffered](growth.svg)
]]

--- The whole page.
function T.page(results)
  local parts = { INTRO, "## Taken on\n\n" .. machine(results) .. "\n", READING, "## Results\n" }
  for _, result in ipairs(results) do parts[#parts + 1] = T.rows(result):gsub("^\n", "") .. "\n" end
  local growth, any = T.growth(results)
  if any then parts[#parts + 1] = GROWTH .. "\n" .. growth .. "\n" end
  parts[#parts + 1] = LIMITS
  local notes, seen = {}, {}
  for _, result in ipairs(results) do
    for _, note in ipairs(result.notes) do
      if not seen[note] then notes[#notes + 1] = "- " .. note .. "." end
      seen[note] = true
    end
  end
  if #notes > 0 then parts[#parts + 1] = "## Left out\n\n" .. table.concat(notes, "\n") .. "\n" end
  parts[#parts + 1] = REPEATING
  return table.concat(parts, "\n")
end

--- The same, for a terminal.
function T.brief(results)
  local parts = {}
  for _, result in ipairs(results) do
    parts[#parts + 1] = T.rows(result)
    parts[#parts + 1] = ("\n%s: %s"):format(result.interpreter, tally(result))
  end
  local growth, any = T.growth(results)
  if any then parts[#parts + 1] = "\n" .. growth end
  return table.concat(parts, "\n") .. "\n"
end

return T
