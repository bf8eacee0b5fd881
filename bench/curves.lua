--- docs/growth.svg: the cost of a job by the jobs that wait, that of a value by the values in the channel. Both scales
-- are logarithmic, so a cost that does not grow is level, and one that doubles with the number climbs at 45 degrees.

local svg = require("bench.svg")
local format = require("bench.format")

local C = {}

local WIDTH, HEIGHT = 1040, 440
local TOP, BOTTOM = 104, 370

local function short(n)
  if n >= 1e6 then return ("%.14g M"):format(n / 1e6) end
  if n >= 1e4 then return ("%.14g k"):format(n / 1e3) end
  return format.thousands(n)
end

local function log10(x) return math.log(x) / math.log(10) end

local function points_of(result, plot, who)
  local list = {}
  for _, point in ipairs(result.points) do
    if point.plot == plot and point[who] and point[who] > 0 then list[#list + 1] = { point.n, point[who] } end
  end
  return list
end

-- The powers of ten that hold all of this plot.
local function bounds(results, plot)
  local x1, x2, y1, y2 = math.huge, 0, math.huge, 0
  for _, result in ipairs(results) do
    for _, who in ipairs{ "queue", "pure" } do
      for _, p in ipairs(points_of(result, plot, who)) do
        x1, x2 = math.min(x1, p[1]), math.max(x2, p[1])
        y1, y2 = math.min(y1, p[2]), math.max(y2, p[2])
      end
    end
  end
  if x2 == 0 then return nil end
  local b = { x1 = math.floor(log10(x1) + 0.01), x2 = math.ceil(log10(x2) - 0.01), y1 = math.floor(log10(y1)),
    y2 = math.ceil(log10(y2)) }
  if b.x2 == b.x1 then b.x2 = b.x1 + 1 end
  if b.y2 == b.y1 then b.y2 = b.y1 + 1 end
  return b
end

local function panel(drawing, results, plot, left, right, title, below)
  local b = bounds(results, plot)
  if not b then return end
  local function px(x) return left + (log10(x) - b.x1) / (b.x2 - b.x1) * (right - left) end
  local function py(y) return BOTTOM - (log10(y) - b.y1) / (b.y2 - b.y1) * (BOTTOM - TOP) end
  drawing:text(left - 44, 76, "head", title)
  for e = b.x1, b.x2 do
    drawing:line(px(10 ^ e), TOP, px(10 ^ e), BOTTOM, "grid")
    drawing:text(px(10 ^ e), BOTTOM + 18, "note mid", short(10 ^ e))
  end
  for e = b.y1, b.y2 do
    drawing:line(left, py(10 ^ e), right, py(10 ^ e), e == b.y1 and "axis" or "grid")
    local value = e >= 3 and ("%.14g µs"):format(10 ^ (e - 3)) or ("%.14g ns"):format(10 ^ e)
    drawing:text(left - 8, py(10 ^ e) + 4, "note end", value)
  end
  drawing:text((left + right) / 2, BOTTOM + 42, "mid", below)
  for i, result in ipairs(results) do
    local colour = (i - 1) % 2 + 1
    for _, who in ipairs{ "pure", "queue" } do
      local path = {}
      for k, p in ipairs(points_of(result, plot, who)) do path[k] = { px(p[1]), py(p[2]) } end
      if #path > 1 then drawing:path(path, "line" .. colour .. (who == "pure" and " peer" or "")) end
      for _, p in ipairs(path) do drawing:circle(p[1], p[2], who == "pure" and 2.2 or 3.4, "dot" .. colour) end
    end
  end
end

local function legend(drawing, results, x, y)
  for i, result in ipairs(results) do
    local colour = (i - 1) % 2 + 1
    for _, who in ipairs{ "queue", "plain Lua" } do
      drawing:path({ { x, y - 4 }, { x + 28, y - 4 } }, "line" .. colour .. (who == "queue" and "" or " peer"))
      drawing:circle(x + 14, y - 4, who == "queue" and 3.4 or 2.2, "dot" .. colour)
      local words = who .. ", " .. result.interpreter
      drawing:text(x + 36, y, "", words)
      x = x + 62 + 6.7 * #words
    end
  end
end

--- The text of the picture, or nil where no curve was measured.
function C.render(results)
  if not bounds(results, "jobs") and not bounds(results, "values") then return nil end
  local drawing = svg.new("How the costs grow",
    "Two plots with logarithmic scales: the time for a job by the number of jobs that wait, and the time for a " ..
    "value by the number of values in a channel. docs/benchmark.md has the same in figures.")
  legend(drawing, results, 28, 38)
  panel(drawing, results, "jobs", 80, 500, "Push and run, time for a job", "jobs waiting")
  panel(drawing, results, "values", 600, 1012, "Send and receive, time for a value", "values in the channel")
  return drawing:render(WIDTH, HEIGHT)
end

return C
