-- Retries in earnest: a pause that grows and is spread at random, errors that are not worth a second try, and a
-- list of what failed for good, to be looked at or sent once more.

local queue = require("queue")

-- A server that is down for a while, and one page it will never give.
local up_at = queue.now() + 60
local function get(url)
  if url == "/private" then error({ status = 403 }) end
  if queue.now() < up_at then error({ status = 503 }) end
  return "<p>" .. url .. "</p>"
end

-- The error is the value that was thrown, so a table can say what it is about.
local function backoff(attempts, err)
  local status = type(err) == "table" and err.status
  if status and status < 500 then return nil end          -- our fault, not the server's: no retry helps
  local pause = math.min(10 * 2 ^ (attempts - 1), 200)    -- 10, 20, 40, ... at most 200 ms
  return pause * (0.75 + math.random() / 2)               -- a quarter to either side, so that a crowd disperses
end

local lost = {}
local q = queue.new{
  on_error = function(_, info)
    lost[#lost + 1] = { url = info.payload, status = type(info.error) == "table" and info.error.status or "?" }
  end,
}

for _, url in ipairs{ "/news", "/private", "/weather" } do
  q:push(function() print("got " .. get(url)) end, { id = url, payload = url, retries = 8, backoff_ms = backoff })
end
q:run()

for _, page in ipairs(lost) do print("lost " .. page.url .. ", status " .. page.status) end
local m = q:metrics()
print(m.succeeded .. " fetched, " .. m.failed .. " lost, after retries: " .. tostring(m.retried > 0))
