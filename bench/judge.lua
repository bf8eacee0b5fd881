--- From samples to rows: medians, bests, ratios, verdicts.
--
-- The ratio of the medians decides, as that is what a user meets; the ratio of the bests stands beside it.

local H = require("bench.harness")

local J = {}

local function summary(samples)
  if not samples or #samples == 0 then return nil end
  local best = math.huge
  for _, x in ipairs(samples) do best = math.min(best, x) end
  return { median = H.median(samples), best = best }
end

local function target(row)
  for _, kind in ipairs{ "least", "most", "limit" } do
    local goal = row[kind]
    if type(goal) == "table" then goal = H.jit and goal.jit or goal.puc end
    if goal then return kind, goal end
  end
end

local function figure(kind, ours, theirs)
  if kind == "limit" or not theirs then return ours end
  local a, b = theirs, ours
  if kind == "most" then a, b = ours, theirs end
  -- A peer that is not late at all leaves nothing to divide by.
  if b <= 0 then return a <= 0 and 1 or math.huge end
  return a / b
end

local function verdict(kind, goal, found)
  if not kind then return "–" end
  local met
  if kind == "least" then met = found >= goal else met = found <= goal end
  return met and "met" or "missed"
end

-- "queue:p99" is the contender queue and its number p99.
local function pick(played, name)
  if not name then return nil, nil end
  local contender, number = name:match("^([^:]*):?(.*)$")
  local samples = played.samples[contender]
  return summary(samples and samples[number]), played.missing[contender]
end

--- One row of a contest. `played.samples[contender][number]` is a list, `played.missing[contender]` a library's name.
function J.row(contest, row, played)
  local kind, goal = target(row)
  local ours, absent = pick(played, row.ours)
  local theirs, peer_absent = pick(played, row.theirs)
  local judged = {
    section = row.section, work = row.work, short = row.short or row.work, against = row.against,
    unit = row.unit or contest.unit, kind = kind, target = goal, ours = ours, theirs = theirs,
  }
  -- Beside a limit a peer is there to compare, and may be absent.
  local alone = kind == "limit" or not row.theirs
  if absent or peer_absent and not alone then
    judged.verdict = "not installed"
  elseif not ours or not theirs and not alone then
    judged.verdict = "failed"
  else
    judged.figure = {
      median = figure(kind, ours.median, theirs and theirs.median),
      best = figure(kind, ours.best, theirs and theirs.best),
    }
    judged.verdict = verdict(kind, goal, judged.figure.median)
  end
  return judged
end

--- A point of a curve: the median of each contender.
function J.point(contest, played)
  local point = { plot = contest.curve.plot, n = contest.curve.n }
  for _, contender in ipairs(contest.contenders) do
    local s = pick(played, contender.name)
    point[contender.name] = s and s.median
  end
  return point
end

return J
