--- Child processes that run programs: fuzz/child.lua under a time limit, and what became of it.

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function read_all(name)
  local file = io.open(name, "rb")
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  os.remove(name)
  return text
end

--- The interpreter that runs this, as it was typed.
local function interpreter()
  local i = 0
  while arg[i - 1] do i = i - 1 end
  return i < 0 and arg[i] or "lua"
end

--- The last lines of what a child wrote to its standard error, for a failure that says little itself.
local function tail(text, most)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    -- What callbacks of programs raise is reported there, line by line, and is as it should be.
    if not line:find("^queue: on_%w+ handler failed: ") then lines[#lines + 1] = line end
  end
  local from = math.max(1, #lines - most + 1)
  return { (table.unpack or unpack)(lines, from) }
end

return function(root)
  local Child = { name = rawget(_G, "jit") and "luajit" or "lua" .. _VERSION:match("%d+%.%d+") }

  -- `timeout` is not everywhere; without it a hang is for whoever watches.
  local found = io.popen("command -v timeout 2>/dev/null")
  local has_timeout = found:read("*l")
  found:close()

  --- Runs `o.count` programs from `o.from` on. Returns { failures, slow, next, text }; a failure has seed, text, more.
  function Child.run(o)
    local err = os.tmpname()
    local limit = has_timeout and ("timeout -s KILL %d "):format(o.limit) or ""
    local pipe = assert(io.popen(("ulimit -c 0; %s%s %s %d %d %d %s %s %s 2>%s; echo exit $?"):format(limit,
      quote(interpreter()), quote(root .. "fuzz/child.lua"), o.from, o.count, o.seconds, o.trace and "trace" or "plain",
      quote(o.without or ""), quote(tostring(o.mutant or "")), quote(err))))
    local result = { failures = {}, slow = {}, next = o.from }
    local last, text, code, ended = nil, {}, nil, false
    for line in pipe:lines() do
      text[#text + 1] = line
      local word, rest = line:match("^(%a+) (.*)$")
      if word == "run" then
        last = tonumber(rest)
        result.next = last + 1
      elseif word == "bad" then
        local seed, what = rest:match("^(%d+) (.*)$")
        result.failures[#result.failures + 1] = { seed = tonumber(seed), text = what, more = {} }
      elseif word == "slow" then
        result.slow[#result.slow + 1] = tonumber(rest)
      elseif word == "end" then
        ended = true
        result.next = tonumber(rest)
      elseif word == "exit" then
        code = tonumber(rest)
      elseif line:sub(1, 1) == "|" and not o.trace and #result.failures > 0 then
        local more = result.failures[#result.failures].more
        more[#more + 1] = line:sub(3)
      end
    end
    pipe:close()
    local errors = read_all(err)
    if not ended then
      local how = ("exit code %s"):format(tostring(code))
      if code == 137 or code == 124 then how = ("a hang: no end within %d s"):format(o.limit)
      elseif code and code > 128 then how = ("a crash: signal %d"):format(code - 128) end
      result.failures[#result.failures + 1] = { seed = last or o.from, text = how, more = tail(errors, 20) }
      result.next = (last or o.from) + 1
    elseif errors:lower():find("panick") then
      result.failures[#result.failures + 1] = { seed = o.from, text = "panicked, in this program or one after it",
        more = tail(errors, 20) }
    end
    result.text = table.concat(text, "\n") .. "\n"
    return result
  end

  return Child
end
