--- Makes the page and the pictures of what bench/run.lua found, and shows the tables.
--
--   write.lua FOLDER RESULT…     the results in the order of the interpreters

package.path = "./?.lua;" .. package.path
local data = require("bench.data")
local tables = require("bench.table")

local folder, results = arg[1], {}
for i = 2, #arg do results[#results + 1] = data.load(arg[i]) end

local function write(name, text)
  local path = folder .. "/" .. name
  if not text then
    -- One of an earlier run would be taken for this run's.
    os.remove(path)
    return
  end
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  print("wrote " .. path)
end

print(tables.brief(results))
write("benchmark.md", tables.page(results))
write("benchmark.svg", require("bench.bars").render(results))
write("growth.svg", require("bench.curves").render(results))
