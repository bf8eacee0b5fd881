--- What the module under test has: a program calls everything the contract names, and what is not there is skipped.

local optional = { "cancel", "status", "set_priority", "jobs", "pause", "resume", "is_paused", "every", "failed",
  "retry" }

local function noop() end

--- Sets of names: `has.queue.cancel`, `has.module.backoff`, `has.new.limit`, `has.push.unique`.
return function(queue)
  local has = { queue = {}, module = {}, new = {}, push = {} }
  local q = queue.new()
  for _, name in ipairs(optional) do
    local there, method = pcall(function() return q[name] end)
    has.queue[name] = there and method ~= nil
  end
  has.module.backoff = queue.backoff ~= nil
  for name, value in pairs{ on_retry = noop, on_success = noop, keep_failed = 1, limit = { jobs = 1, per_ms = 1 } } do
    has.new[name] = pcall(queue.new, { [name] = value })
  end
  has.push.unique = pcall(q.push, q, noop, { unique = true })
  return has
end
