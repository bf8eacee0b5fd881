--- What the figures were taken on: the machine, the interpreter, the peers.

local H = require("bench.harness")

local M = {}

local function output(command)
  local file = io.popen(command .. " 2>&1 </dev/null")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return (text:gsub("%s+$", ""))
end

local function read(path)
  local file = io.open(path)
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text
end

function M.machine()
  local cpuinfo = read("/proc/cpuinfo")
  local model = cpuinfo:match("model name%s*:%s*([^\n]+)")
  if not model then model = output("sysctl -n machdep.cpu.brand_string || uname -m") end
  local memory = tonumber(read("/proc/meminfo"):match("MemTotal:%s*(%d+)"))
  return {
    cpu = model,
    cores = tonumber((output("getconf _NPROCESSORS_ONLN"):match("%d+"))),
    kernel = output("uname -sr"),
    memory_gib = memory and memory / 1024 / 1024,
  }
end

--- Such as "Lua 5.4.4" or "LuaJIT 2.1.0-beta3".
function M.interpreter()
  if H.jit then return require("jit").version end
  return output(H.quote(H.interpreter()) .. " -v"):match("^Lua %S+") or _VERSION
end

-- The libraries themselves do not tell, or tell the same for years: where a package brought one, it knows.
local function version(name)
  if not H.optional(name) then return "not installed" end
  local packaged = output("dpkg-query -W -f '${Version}' lua-" .. name)
  return packaged:match("^%d%S*$") or "installed, of a version unknown"
end

function M.peers()
  local list = {}
  for i, name in ipairs{ "binaryheap", "cqueues", "luv" } do list[i] = { name = name, version = version(name) } end
  return list
end

return M
