-- What the pages and the type file say, held against the module: each ```lua block is a program that runs and prints
-- what its `-->` comments say; links lead somewhere; every documented call exists.

local H = require("spec.helper")
local eq, ok = H.eq, H.ok

local root = debug.getinfo(1, "S").source:match("^@(.*)spec[/\\][^/\\]*$") or ""

local function read(path)
  local file = assert(io.open(root .. path, "r"))
  local text = file:read("*a")
  file:close()
  return text
end

local function exists(path)
  local file = io.open(root .. path, "r")
  if file then file:close() end
  return file ~= nil
end

local function lines_of(text)
  return (text .. "\n"):gmatch("(.-)\r?\n")
end

local function pages()
  local list = { "README.md" }
  local listing = assert(io.popen('ls "' .. root .. 'docs"'))
  for name in listing:lines() do
    if name:find("%.md$") then list[#list + 1] = "docs/" .. name end
  end
  listing:close()
  return list
end

-- The blocks of a page, each with the line it begins at. In the type file they stand in `---` comments.
local function blocks(path)
  local list, block, number = {}, nil, 0
  local prefix = path:find("%.lua$") and "^%-%-%-" or "^"
  for text in lines_of(read(path)) do
    local line = text:gsub(prefix, "", 1)
    number = number + 1
    if not block then
      if line:find("^```lua%s*$") then block = { line = number + 1 } end
    elseif line:find("^```%s*$") then
      list[#list + 1] = { line = block.line, source = table.concat(block, "\n") }
      block = nil
    else
      block[#block + 1] = line
    end
  end
  assert(not block, path .. ": a block is not closed")
  return list
end

local function squeeze(text)
  return (text:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

local function expected(source)
  local list = {}
  for line in lines_of(source) do
    local said = line:match("%-%->(.*)$")
    if said then list[#list + 1] = squeeze(said) end
  end
  return table.concat(list, "\n")
end

-- Runs a block as the file app.lua; returns what it printed.
local function run(source)
  local printed = {}
  local env = setmetatable({
    print = function(...)
      local words = {}
      for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
      for line in lines_of(table.concat(words, "\t")) do printed[#printed + 1] = squeeze(line) end
    end,
  }, { __index = _G })
  local chunk ---@type function
  if setfenv then
    chunk = setfenv(assert(loadstring(source, "@app.lua")), env)
  else
    chunk = assert(load(source, "@app.lua", "t", env))
  end
  local fine, err = xpcall(chunk, debug.traceback)
  if not fine then error(err, 0) end
  return table.concat(printed, "\n")
end

-- The examples of the type file are short: a queue and a channel are there already.
local PRELUDE = 'local queue = require("queue"); local q, ch = queue.new(), queue.channel(4); '

local function missing(source)
  if H.lua51 and source:find("not on stock Lua 5.1", 1, true) then return "stock Lua 5.1 cannot" end
  for name in source:gmatch('require%("(.-)"%)') do
    if name ~= "queue" and not pcall(require, name) then return name .. " is not there" end
  end
end

local function check_blocks(path)
  for _, block in ipairs(blocks(path)) do
    it(path .. ":" .. block.line, function()
      local source = block.source
      if not source:find('require("queue")', 1, true) then source = PRELUDE .. source end
      local why = missing(source)
      if why then
        pending(why)
        return
      end
      eq(run(source), expected(source), "output")
    end)
  end
end

describe("the programs on the pages", function()
  for _, path in ipairs(pages()) do check_blocks(path) end
end)

describe("the examples in the type file", function()
  check_blocks("types/queue.lua")
end)

describe("the runner of these programs", function()
  it("sees a wrong line of output", function()
    ok(expected('print("a") --> b') ~= run('print("a") --> b'))
  end)

  it("sees a line too many, and one too few", function()
    ok(expected('print("a")') ~= run('print("a")'))
    ok(expected("--> a") ~= run("--> a"))
  end)

  it("passes on an error", function()
    local fine, err = pcall(run, 'error("no")')
    eq(fine, false)
    H.has(err, "app.lua:1: no")
  end)
end)

describe("the links on the pages", function()
  -- The anchor that a heading gets on the usual hosts of repositories.
  local function anchor(heading)
    return (heading:lower():gsub("`", ""):gsub("[^%w%s_-]", ""):gsub("%s", "-"))
  end

  local function anchors(path)
    local set, fenced = {}, false
    for line in lines_of(read(path)) do
      if line:find("^```") then fenced = not fenced end
      local heading = not fenced and line:match("^#+%s+(.-)%s*$")
      if heading then set[anchor(heading)] = true end
    end
    return set
  end

  for _, page in ipairs(pages()) do
    it("lead somewhere: " .. page, function()
      local folder = page:match("^(.*/)") or ""
      for target in read(page):gmatch("%]%(([^)%s]+)%)") do
        if not target:find("^%a+:") then
          local path, mark = target:match("^([^#]*)#?(.*)$")
          local file = path == "" and page or folder .. path
          while file:find("[^/]+/%.%./") do file = file:gsub("[^/]+/%.%./", "", 1) end
          ok(exists(file), page .. ": no such file: " .. target)
          if mark ~= "" then
            ok(anchors(file)[mark], page .. ": no such heading: " .. target)
          end
        end
      end
    end)
  end
end)

describe("types/queue.lua", function()
  local queue = H.queue
  local text = read("types/queue.lua")
  local objects = { queue = queue, Queue = queue.new(), Channel = queue.channel(1) }

  it("names only what is there", function()
    local seen = 0
    for owner, name in text:gmatch("\nfunction (%a+)[.:]([%a_]+)%(") do
      eq(type(objects[owner][name]), "function", owner .. "." .. name)
      seen = seen + 1
    end
    ok(seen > 20)
  end)

  it("names all of the module", function()
    for name, value in pairs(queue) do
      local found
      if type(value) == "function" then
        found = text:find("\nfunction queue." .. name .. "(", 1, true)
      else
        found = text:find("@field " .. name .. " ", 1, true)
      end
      ok(found, "queue." .. name .. " has no type")
    end
  end)

  it("names all methods, where the metatable shows them", function()
    for owner, object in pairs{ Queue = objects.Queue, Channel = objects.Channel } do
      local index = debug.getmetatable(object).__index
      if type(index) == "table" then
        for name in pairs(index) do
          local found = name:find("^__") or text:find("\nfunction " .. owner .. ":" .. name .. "(", 1, true)
          ok(found, owner .. ":" .. name .. " has no type")
        end
      end
    end
  end)
end)
