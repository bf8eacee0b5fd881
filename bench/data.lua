--- Results on their way from the interpreter that took them to the one that writes the pages: a file of plain Lua data.

local D = {}

local function write(value, indent, out)
  if type(value) == "table" then
    local deeper = indent .. "  "
    out[#out + 1] = "{\n"
    for i = 1, #value do
      out[#out + 1] = deeper
      write(value[i], deeper, out)
      out[#out + 1] = ",\n"
    end
    local names = {}
    for name in pairs(value) do if type(name) == "string" then names[#names + 1] = name end end
    table.sort(names)
    for _, name in ipairs(names) do
      out[#out + 1] = ("%s[%q] = "):format(deeper, name)
      write(value[name], deeper, out)
      out[#out + 1] = ",\n"
    end
    out[#out + 1] = indent .. "}"
  elseif type(value) == "number" then
    out[#out + 1] = value == math.huge and "math.huge" or ("%.17g"):format(value)
  elseif type(value) == "string" then
    out[#out + 1] = ("%q"):format(value)
  else
    out[#out + 1] = tostring(value)
  end
end

function D.save(path, value)
  local out = { "return " }
  write(value, "", out)
  out[#out + 1] = "\n"
  local file = assert(io.open(path, "w"))
  file:write(table.concat(out))
  file:close()
end

function D.load(path) return assert(loadfile(path))() end

return D
