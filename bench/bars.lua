--- docs/benchmark.svg. On the left how many times as fast as its peers the module is, on a logarithmic scale with the
-- peer at 1; on the right how much of what a target allows it takes. A mark at each bar is its target.

local svg = require("bench.svg")
local format = require("bench.format")

local B = {}

local WIDTH = 1040
local TOP = 92
local BAR, GAP = 9, 2
-- How wide a character of a value is, about.
local LETTER = 6.6

-- The rows of all interpreters beside each other, those with a target alone, in groups by what they are held against.
local function gather(results, left)
  local groups, by_name, by_row = {}, {}, {}
  for i, result in ipairs(results) do
    for _, row in ipairs(result.rows) do
      if row.figure and row.kind and (row.kind == "least") == left then
        local name = left and "against " .. row.against
          or row.kind == "limit" and "of a limit" or "of the cost of " .. row.against
        local group = by_name[name]
        if not group then
          group = { name = name, rows = {} }
          by_name[name], groups[#groups + 1] = group, group
        end
        local key = name .. "\n" .. row.short
        if not by_row[key] then
          by_row[key] = { short = row.short, bars = {} }
          table.insert(group.rows, by_row[key])
        end
        by_row[key].bars[i] = row
      end
    end
  end
  return groups
end

local function largest(groups)
  local most = 1
  for _, group in ipairs(groups) do
    for _, row in ipairs(group.rows) do
      for _, bar in pairs(row.bars) do
        most = math.max(most, bar.target, bar.figure.median < math.huge and bar.figure.median or 1)
      end
    end
  end
  return most
end

-- One half of the picture. `scale(row)` gives the ends of a bar and the place of its target, as parts of the width.
local function half(drawing, groups, count, x, label, width, scale)
  local y = TOP
  local height = count * (BAR + GAP) + 9
  for _, group in ipairs(groups) do
    drawing:text(x, y + 12, "group", group.name)
    y = y + 22
    for _, row in ipairs(group.rows) do
      drawing:text(x + label - 10, y + height / 2 - 0.5, "end", row.short)
      for i = 1, count do
        local bar = row.bars[i]
        if bar then
          local top = y + (i - 1) * (BAR + GAP)
          local from, to, goal = scale(bar)
          local left, right = x + label + math.min(from, to) * width, x + label + math.max(from, to) * width
          drawing:rect(left, top, math.max(1, right - left), BAR, "bar" .. (i - 1) % 2 + 1, 1.5)
          drawing:line(x + label + goal * width, top - 1, x + label + goal * width, top + BAR + 1, "goal")
          local words, mark = format.figure(bar, "median"), x + label + goal * width
          -- Beyond the mark, where the mark would stand in the text.
          if mark > right and mark < right + 10 + LETTER * #words then right = mark end
          drawing:text(right + 5, top + BAR - 0.5, bar.verdict == "missed" and "value missed" or "value", words)
        end
      end
      y = y + height
    end
    y = y + 12
  end
  return y
end

local function legend(drawing, results, x, y)
  for i, result in ipairs(results) do
    drawing:rect(x, y - 10, 22, 10, "bar" .. (i - 1) % 2 + 1, 2)
    drawing:text(x + 30, y, "", result.interpreter)
    x = x + 60 + 8 * #result.interpreter
  end
  drawing:line(x, y - 11, x, y + 1, "goal")
  drawing:text(x + 8, y, "", "target")
  drawing:text(x + 68, y, "missed", "missed")
end

--- The text of the picture, or nil where no row has a target.
function B.render(results)
  local fast, cost = gather(results, true), gather(results, false)
  if #fast + #cost == 0 then return nil end
  local drawing = svg.new("The benchmark of queue",
    "Two bar charts. The left one shows how many times as fast as its peers the module is, the right one how much " ..
    "of what the targets allow it takes. docs/benchmark.md has the same in figures.")
  local frame = #drawing.body
  legend(drawing, results, 28, 36)

  -- Left: from 1/2 or less to the largest ratio, each doubling as wide as the next.
  local label, x1, width1 = 206, 28, 244
  local top = math.max(8, largest(fast)) * 1.15
  local low = 0.5
  local function place(ratio)
    return math.log(math.max(low, math.min(ratio, top)) / low) / math.log(top / low)
  end
  local bottom = half(drawing, fast, #results, x1, label, width1,
    function(row) return place(1), place(row.figure.median), place(row.target) end)

  -- Right: parts of what is allowed; what takes more than twice as much ends at the edge.
  local x2, label2, width2, edge = 548, 216, 196, 2
  bottom = math.max(bottom, half(drawing, cost, #results, x2, label2, width2,
    function(row) return 0, math.min(row.figure.median / row.target, edge) / edge, 1 / edge end))

  -- The grid goes below the bars.
  local bars = {}
  for i = frame + 1, #drawing.body do bars[#bars + 1] = drawing.body[i] end
  for i = #drawing.body, frame + 1, -1 do drawing.body[i] = nil end
  drawing:text(x1, 66, "head", "Times as fast as its peer")
  drawing:text(x2, 66, "head", "Cost, as a part of what is allowed")
  local tick = 0.5
  while tick <= top do
    local x = x1 + label + place(tick) * width1
    drawing:line(x, TOP, x, bottom - 6, tick == 1 and "axis" or "grid")
    drawing:text(x, bottom + 8, "note mid", tick == 0.5 and "½×" or ("%d×"):format(tick))
    tick = tick * 2
  end
  for part = 0, 4 do
    local x = x2 + label2 + part / 4 * width2
    drawing:line(x, TOP, x, bottom - 6, part == 0 and "axis" or "grid")
    drawing:text(x, bottom + 8, "note mid", (part == 4 and "≥ " or "") .. part * 50 .. "%")
  end
  for _, element in ipairs(bars) do drawing.body[#drawing.body + 1] = element end
  return drawing:render(WIDTH, bottom + 24)
end

return B
