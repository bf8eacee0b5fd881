-- Retries an HTTP call: the pause grows and is spread at random, a server that names a time is taken at its word, and
-- an answer that no second try can change is the last.
--
-- The server runs here as well, as a job of the same queue. All sockets are non-blocking, and whoever waits for one
-- sleeps a moment in the queue, so that the others go on. (in_luasocket.lua sleeps in `socket.select` instead.)

local queue = require("queue")
local there, socket = pcall(require, "socket")
if not there then
  print("luasocket is not installed: nothing to show here.")
  return
end

local LIMIT_MS = 5000

-- What comes in, by a pattern of luasocket's: a line, or all until the other side closes.
local function read(peer, pattern)
  local last = queue.now() + LIMIT_MS
  local text, why, part = peer:receive(pattern)
  while why == "timeout" and queue.now() < last do
    queue.sleep(1)
    text, why, part = peer:receive(pattern, part)
  end
  return text or error(why, 0)
end

-- A GET as short as it can be. What is no success is thrown, as a table that tells the backoff what it needs.
local function get(port, path)
  local peer = assert(socket.connect("127.0.0.1", port))
  peer:settimeout(0)
  peer:send("GET " .. path .. " HTTP/1.0\r\n\r\n")
  local answer = read(peer, "*a")
  peer:close()
  local status = answer:match("^HTTP/%d%.%d (%d+)") or error("no answer in HTTP", 0)
  if status ~= "200" then
    error({ status = tonumber(status), retry_after = tonumber(answer:match("\r\nRetry%-After: (%d+)")) })
  end
  return answer:match("\r\n\r\n(.*)$")
end

local growing = queue.backoff{ base_ms = 10, factor = 2, max_ms = 1000, jitter = 0.25 }
local function backoff(attempts, err)
  if type(err) ~= "table" then return growing(attempts) end              -- no answer at all
  if err.status < 500 and err.status ~= 429 then return nil end           -- our fault: give up
  return err.retry_after and err.retry_after * 1000 or growing(attempts)
end

local function said(err) return type(err) == "table" and "status " .. err.status or tostring(err) end

local q = queue.new{
  concurrency = 10,
  on_retry = function(_, info)
    print(("%s: %s, attempt %d follows in %.0f ms"):format(
      info.id, said(info.error), info.attempts + 1, info.delay_ms))
  end,
  on_success = function(info, body)
    if body then print(info.id .. ": " .. body) end                       -- the server's jobs return nothing
  end,
  on_error = function(_, info)
    print(("%s: %s, given up at attempt %d"):format(info.id, said(info.error), info.attempts))
  end,
}

-- The server: down at first, and busy once it is up.
local answers = {
  ["/news"] = { "503 Down", "503 Down", "200 OK" },
  ["/busy"] = { "429 Too Many\r\nRetry-After: 1", "200 OK" },
  ["/lost"] = { "404 Not Found" },
}
local listener = assert(socket.bind("127.0.0.1", 0))
listener:settimeout(0)

local function serve(peer)
  peer:settimeout(0)
  local path = read(peer, "*l"):match("^GET (%S+)")
  repeat until read(peer, "*l") == ""     -- the headers
  local status = table.remove(answers[path], 1)
  peer:send("HTTP/1.0 " .. status .. "\r\n\r\n" .. "the text of " .. path)
  peer:close()
end

q:push(function()
  while #q > 0 or q:in_flight() > 1 do    -- until nobody is left but the server
    local peer = listener:accept()
    if peer then q:push(serve, { args = { peer } }) else queue.sleep(1) end
  end
  listener:close()
end, { id = "server" })

local _, port = listener:getsockname()
for _, path in ipairs{ "/news", "/busy", "/lost" } do
  q:push(get, { args = { port, path }, id = path, retries = 4, backoff_ms = backoff })
end
q:run()

local m = q:metrics()
print(m.retried .. " retries, " .. m.failed .. " call given up")
