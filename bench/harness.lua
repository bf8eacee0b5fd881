--- What every part of the benchmark uses: the module that was built for this Lua, peers, processes, clocks, numbers.

local H = {}

H.jit = rawget(_G, "jit") ~= nil
H.name = H.jit and "luajit" or "lua" .. _VERSION:match("%d+%.%d+")
package.cpath = ("./%s/%s/?.so;%s"):format(os.getenv("QUEUE_BUILD") or "build", H.name, package.cpath)
H.queue = require("queue")

-- Peers ---------------------------------------------------------------------------------------------------------

-- Debian puts binaryheap, which is plain Lua, below 5.1 to 5.3 only. It runs on the later ones as it is.
local elsewhere = { binaryheap = ";/usr/share/lua/5.3/?.lua" }

--- A peer's library, or nil where it is not installed.
function H.optional(name)
  local path = package.path
  package.path = path .. (elsewhere[name] or "")
  local there, library = pcall(require, name)
  package.path = path
  return there and library or nil
end

-- Luas ----------------------------------------------------------------------------------------------------------

--- The interpreter that runs this, as it was typed.
function H.interpreter()
  local i = 0
  while arg[i - 1] do i = i - 1 end
  return i < 0 and arg[i] or H.name
end

function H.quote(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

--- Starts `bench/<script>` with these arguments under the same interpreter; returns a file to read what it prints.
function H.start(script, ...)
  local words = { H.quote(H.interpreter()), H.quote("bench/" .. script) }
  for i = 1, select("#", ...) do words[#words + 1] = H.quote((select(i, ...))) end
  return assert(io.popen(table.concat(words, " ") .. " </dev/null", "r"))
end

--- Runs bench/probe.lua, one measurement in a fresh process: the numbers it prints, by name.
function H.probe(...)
  return H.numbers(H.start("probe.lua", ...))
end

--- Reads lines such as `cpu_ms 1.5` to the end of the file.
function H.numbers(file)
  local answer = {}
  for line in file:lines() do
    local name, value = line:match("^(%S+) (%S+)$")
    if name then answer[name] = tonumber(value) end
  end
  file:close()
  if next(answer) == nil then error("a measuring process ended without an answer", 0) end
  return answer
end

-- Time ----------------------------------------------------------------------------------------------------------

--- Nanoseconds of processor time for one of `units`, when `work` does them all.
function H.cpu(units, work)
  local start = os.clock()
  work()
  return (os.clock() - start) / units * 1e9
end

--- Nanoseconds that went by for one of `units`, when `work` does them all.
function H.wall(units, work)
  local now = H.queue.now
  local start = now()
  work()
  return (now() - start) / units * 1e6
end

-- Memory --------------------------------------------------------------------------------------------------------

--- A field of a file in /proc that counts in KiB, in bytes; nil where there is none.
local function proc(path, field)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  local kib = text:match(field .. ":%s*(%d+) kB")
  return kib and tonumber(kib) * 1024
end

function H.resident() return proc("/proc/self/status", "VmRSS") end
function H.available() return proc("/proc/meminfo", "MemAvailable") end

-- Numbers -------------------------------------------------------------------------------------------------------

--- The value below which the fraction `p` of a list lies.
function H.percentile(list, p)
  local sorted = {}
  for i, v in ipairs(list) do sorted[i] = v end
  table.sort(sorted)
  return sorted[math.max(1, math.ceil(p * #sorted))]
end

--- The middle of a list; between two middle values, half-way.
function H.median(list)
  local sorted = {}
  for i, v in ipairs(list) do sorted[i] = v end
  table.sort(sorted)
  local n = #sorted
  return (sorted[math.floor((n + 1) / 2)] + sorted[math.ceil((n + 1) / 2)]) / 2
end

--- Random whole numbers from 0 to below `bound`, the same ones on every Lua and in every run.
function H.random(bound)
  local state = 20011
  return function()
    state = state * 16807 % 2147483647
    return state % bound
  end
end

return H
