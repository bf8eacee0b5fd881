--- A shared channel between two OS threads, against lines over the socket pair of cqueues' `thread.start`. The threads
-- are cqueues' in both cases. What is measured begins once the other thread is there, and ends with the last value.

local H = require("bench.harness")
local queue = H.queue

-- A thread's function arrives in the other state as code: it sees its arguments, which are strings, and nothing else.

local names = 0
local function fresh()
  names = names + 1
  return ("bench %d %s"):format(names, queue.now())
end

-- One way -----------------------------------------------------------------------------------------------------------

local function channel_sender(_, cpath, name, n, kind)
  package.cpath = cpath
  local shared = require("queue").shared
  local ch, go = shared(name), shared(name .. " go")
  go:receive()
  if kind == "integers" then
    for i = 1, tonumber(n) do ch:send(i) end
  else
    for i = 1, tonumber(n) do ch:send{ a = i, b = "x" } end
  end
end

local function by_channel(kind, n)
  local name = fresh()
  local ch, go = queue.shared(name, 1024), queue.shared(name .. " go", 0)
  local thread = require("cqueues.thread").start(channel_sender, package.cpath, name, tostring(n), kind)
  go:send(true)
  local last
  local ns = H.wall(n, function() for _ = 1, n do last = ch:receive() end end)
  thread:join()
  ch:close()
  go:close()
  assert(kind == "integers" and last == n or last.a == n and last.b == "x")
  return ns
end

-- Buffered in full on both sides, which is cqueues at its quickest.
local function line_sender(con, n, kind)
  con:setmode("bf", "bf")
  con:read("*l")
  if kind == "integers" then
    for i = 1, tonumber(n) do con:write(i, "\n") end
  else
    for i = 1, tonumber(n) do
      local t = { a = i, b = "x" }
      con:write(t.a, " ", t.b, "\n")
    end
  end
  con:flush()
  con:read("*l")
end

local function by_lines(kind, n)
  local thread, con = require("cqueues.thread").start(line_sender, tostring(n), kind)
  con:setmode("bf", "bf")
  con:write("go\n")
  con:flush()
  local last
  local ns = H.wall(n, function()
    if kind == "integers" then
      for _ = 1, n do last = tonumber(con:read("*l")) end
    else
      for _ = 1, n do
        local a, b = con:read("*l"):match("^(%d+) (.*)$")
        last = { a = tonumber(a), b = b }
      end
    end
  end)
  con:write("done\n")
  con:flush()
  thread:join()
  assert(kind == "integers" and last == n or last.a == n and last.b == "x")
  return ns
end

-- To and fro --------------------------------------------------------------------------------------------------------

local function channel_echo(_, cpath, name)
  package.cpath = cpath
  local shared = require("queue").shared
  local ping, pong = shared(name), shared(name .. " back")
  for v in ping:iter() do pong:send(v) end
  pong:close()
end

local function channel_rounds(n)
  local name = fresh()
  local ping, pong = queue.shared(name, 1), queue.shared(name .. " back", 1)
  local thread = require("cqueues.thread").start(channel_echo, package.cpath, name)
  ping:send(0)
  pong:receive()
  local last
  local ns = H.wall(n, function()
    for i = 1, n do
      ping:send(i)
      last = pong:receive()
    end
  end)
  ping:close()
  thread:join()
  assert(last == n)
  return ns
end

local function line_echo(con)
  con:setmode("bl", "bl")
  for line in con:lines("*l") do con:write(line, "\n") end
end

local function line_rounds(n)
  local thread, con = require("cqueues.thread").start(line_echo)
  con:setmode("bl", "bl")
  con:write(0, "\n")
  con:read("*l")
  local last
  local ns = H.wall(n, function()
    for i = 1, n do
      con:write(i, "\n")
      last = tonumber(con:read("*l"))
    end
  end)
  con:shutdown("w")
  thread:join()
  assert(last == n)
  return ns
end

local S = {}

function S.contests(size)
  local integers, tables, rounds = size(1000000, 50), size(300000, 50), size(20000, 10)
  local lines = "lines over a cqueues socket pair"
  return {
    {
      id = "shared integers",
      unit = "ns",
      contenders = {
        { name = "queue", needs = "cqueues", run = function() return by_channel("integers", integers) end },
        { name = "cqueues", needs = "cqueues", run = function() return by_lines("integers", integers) end },
      },
      rows = {
        { section = "Shared channels", work = "1,000,000 integers to another OS thread", short = "integers",
          ours = "queue", theirs = "cqueues", against = lines, least = 4 },
      },
    },
    {
      id = "shared tables",
      unit = "ns",
      contenders = {
        { name = "queue", needs = "cqueues", run = function() return by_channel("tables", tables) end },
        { name = "cqueues", needs = "cqueues", run = function() return by_lines("tables", tables) end },
      },
      rows = {
        { section = "Shared channels", work = "300,000 tables `{ a = i, b = \"x\" }` to another OS thread",
          short = "small tables", ours = "queue", theirs = "cqueues", against = lines, least = 1 },
      },
    },
    {
      id = "shared ping-pong",
      unit = "ns",
      contenders = {
        { name = "queue", needs = "cqueues", run = function() return channel_rounds(rounds) end },
        { name = "cqueues", needs = "cqueues", run = function() return line_rounds(rounds) end },
      },
      rows = {
        { section = "Shared channels", work = "ping-pong of two OS threads, a round", short = "ping-pong",
          ours = "queue", theirs = "cqueues", against = lines, most = 0.5 },
      },
    },
  }
end

return S
