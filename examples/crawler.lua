-- A polite crawler: it follows every link of a site once, with a few requests at a time, never more than five in any
-- tenth of a second, retries included. Pages near the entrance come first.

local queue = require("queue")

-- The site: each page with its links. One page is moody, one link is dead.
local site = {
  ["/"] = { "/news", "/shop", "/about" },
  ["/news"] = { "/", "/news/1", "/news/2", "/news/3" },
  ["/news/1"] = { "/news", "/news/2" },
  ["/news/2"] = { "/news", "/news/1", "/news/3" },
  ["/news/3"] = { "/news", "/shop/sale" },
  ["/shop"] = { "/", "/shop/tea", "/shop/cups", "/shop/sale" },
  ["/shop/tea"] = { "/shop", "/shop/cups" },
  ["/shop/cups"] = { "/shop", "/shop/tea", "/gone" },
  ["/shop/sale"] = { "/shop", "/shop/tea" },
  ["/about"] = { "/", "/about/us", "/about/jobs" },
  ["/about/us"] = { "/about" },
  ["/about/jobs"] = { "/about", "/about/us" },
}
local moody = true
local function get(url)
  queue.sleep(20 + #url)                  -- the way there and back; other requests go on
  if url == "/shop" and moody then
    moody = false
    error({ status = 503 })
  end
  return site[url] or error({ status = 404 })
end

local settled = {}                        -- what has been read, or has turned out to be dead
local q = queue.new{
  concurrency = 3,
  limit = { jobs = 5, per_ms = 100 },     -- counted at the starts, so a retry counts as well
  keep_failed = 100,
  on_success = function(info) settled[info.id] = true end,
  on_error = function(_, info) settled[info.id] = true end,
}

local met = 0

-- `unique` refuses a page that is pending or under way; what is settled the crawler knows itself.
---@param depth integer
local function visit(url, depth)
  if settled[url] then return end
  q:push(function()
    local links = get(url)
    print(("%s%s, %d links"):format(("  "):rep(depth), url, #links))
    met = met + #links
    for _, link in ipairs(links) do visit(link, depth + 1) end
  end, {
    id = url, unique = true,
    priority = -depth,
    retries = 3,
    backoff_ms = function(_, err) return err.status >= 500 and 30 end,
  })
end

local started = queue.now()
visit("/", 0)
q:run()
local ms = queue.now() - started

local m = q:metrics()
print(("%d pages read, %d dead link, %d retry"):format(m.succeeded, m.failed, m.retried))
for _, info in ipairs(q:failed()) do print("dead: " .. info.id .. ", status " .. info.error.status) end
print(("%d links met, %d requests made; %d links led to a page that was under way"):format(
  met, m.processed, m.dropped))
print("five requests in a tenth of a second at most, so 14 take 200 ms at least: " .. tostring(ms >= 200))
