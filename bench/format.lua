--- Numbers as a reader wants them.

local F = {}

function F.thousands(n)
  return (("%.0f"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^(%-?),", "%1"))
end

--- Three digits that count, and no exponent.
function F.number(x)
  local size = math.abs(x)
  if size >= 99.95 then return F.thousands(x) end
  if size >= 9.995 then return ("%.1f"):format(x) end
  return ("%.2f"):format(x)
end

local LARGER = { ns = { 1e3, "us" }, us = { 1e3, "ms" }, ms = { 1e3, "s" } }
local NAMES = { us = "µs", times = "×" }

--- A value and its unit, such as `310 ns` or `2.48 µs`.
function F.quantity(x, unit)
  while LARGER[unit] and math.abs(x) >= LARGER[unit][1] do x, unit = x / LARGER[unit][1], LARGER[unit][2] end
  if unit == "times" then return F.number(x) .. "×" end
  return F.number(x) .. " " .. (NAMES[unit] or unit)
end

function F.ratio(x) return F.number(x) .. "×" end

--- A target, which is written as short as it is set: `≥ 4×`, `≤ 200 bytes`.
function F.target(row)
  if not row.kind then return "–" end
  local sign, number = row.kind == "least" and "≥" or "≤", ("%.14g"):format(row.target)
  if row.kind ~= "limit" then return sign .. " " .. number .. "×" end
  return sign .. " " .. number .. " " .. (NAMES[row.unit] or row.unit)
end

--- What was found, in the target's terms.
function F.figure(row, which)
  local figure = row.figure and row.figure[which]
  if not figure then return "–" end
  if row.kind == "limit" or not row.theirs then return F.quantity(figure, row.unit) end
  -- Rounding must not show as met what was missed by a hair.
  if row.verdict == "missed" and tonumber(F.number(figure)) == row.target then return ("%.5g×"):format(figure) end
  return F.ratio(figure)
end

return F
