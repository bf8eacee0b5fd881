--- A drawing: elements in a list, with the colours of both themes, as a file of SVG.

local S = {}
S.__index = S

local function escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local function number(x) return (("%.1f"):format(x):gsub("%.0$", "")) end

-- The classes that drawings use. The first Lua is blue, the second purple; what misses its target is orange.
local STYLE = [[
    .page   { fill: #ffffff; stroke: #d0d7de; }
    .grid   { stroke: #d8dee4; stroke-width: 1; }
    .axis   { stroke: #8c959f; stroke-width: 1.5; }
    .goal   { stroke: #1f2328; stroke-width: 2; }
    .bar1   { fill: #54aeff; }
    .bar2   { fill: #c297ff; }
    .line1  { fill: none; stroke: #0969da; stroke-width: 2.2; stroke-linejoin: round; }
    .line2  { fill: none; stroke: #8250df; stroke-width: 2.2; stroke-linejoin: round; }
    .dot1   { fill: #0969da; }
    .dot2   { fill: #8250df; }
    .peer   { stroke-dasharray: 5 4; stroke-width: 1.6; }
    text    { fill: #1f2328; font: 13px -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; }
    .head   { font-size: 16px; font-weight: 600; }
    .group  { font-weight: 600; }
    .group, .value { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
    .note   { fill: #57606a; font-size: 12px; }
    .value  { font-size: 11px; }
    .missed { fill: #bc4c00; font-weight: 600; }
    .mid    { text-anchor: middle; }
    .end    { text-anchor: end; }
    @media (prefers-color-scheme: dark) {
      .page   { fill: #0d1117; stroke: #30363d; }
      .grid   { stroke: #21262d; }
      .axis   { stroke: #8b949e; }
      .goal   { stroke: #e6edf3; }
      .bar1   { fill: #1f6feb; }
      .bar2   { fill: #8957e5; }
      .line1  { stroke: #58a6ff; }
      .line2  { stroke: #bc8cff; }
      .dot1   { fill: #58a6ff; }
      .dot2   { fill: #bc8cff; }
      text    { fill: #e6edf3; }
      .group, .value { stroke: #0d1117; }
      .note   { fill: #9da7b1; }
      .missed { fill: #f0883e; }
    }]]

function S.new(title, description)
  return setmetatable({ title = title, description = description, body = {} }, S)
end

local function add(drawing, form, ...)
  drawing.body[#drawing.body + 1] = "  " .. form:format(...)
end

function S:text(x, y, class, text)
  add(self, '<text class="%s" x="%s" y="%s">%s</text>', class, number(x), number(y), escape(text))
end

function S:rect(x, y, width, height, class, round)
  add(self, '<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>', class, number(x), number(y),
    number(math.max(0, width)), number(height), number(round or 0))
end

function S:line(x1, y1, x2, y2, class)
  add(self, '<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>', class, number(x1), number(y1), number(x2), number(y2))
end

function S:circle(x, y, r, class)
  add(self, '<circle class="%s" cx="%s" cy="%s" r="%s"/>', class, number(x), number(y), number(r))
end

--- A line through points { { x, y }, … }.
function S:path(points, class)
  local words = {}
  for i, p in ipairs(points) do words[i] = number(p[1]) .. "," .. number(p[2]) end
  add(self, '<polyline class="%s" points="%s"/>', class, table.concat(words, " "))
end

--- The file's text, once the size is known.
function S:render(width, height)
  return table.concat({
    ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" ' ..
      'aria-labelledby="title desc">'):format(width, height, width, height),
    ('  <title id="title">%s</title>'):format(escape(self.title)),
    ('  <desc id="desc">%s</desc>'):format(escape(self.description)),
    "  <style>\n" .. STYLE .. "\n  </style>",
    ('  <rect class="page" x="1" y="1" width="%d" height="%d" rx="10"/>'):format(width - 2, height - 2),
    table.concat(self.body, "\n"),
    "</svg>\n",
  }, "\n")
end

return S
