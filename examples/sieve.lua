-- The sieve of Eratosthenes as a chain of jobs. A generator sends 2, 3, 4, ... into the first channel. Each job takes
-- the first number that reaches it, which is a prime, and passes on those that the prime does not divide; a new job
-- stands at the other end. Hundreds of jobs wait for each other at once, and one thread runs them.

local queue = require("queue")

local LIMIT = 3571

local q = queue.new{
  concurrency = math.huge,
  on_error = function(msg, info) print(info.id .. " failed: " .. msg) end,
}

local primes, most = {}, 0

local function filter(numbers)
  local prime, ok = numbers:receive()
  if not ok then return end               -- closed before a number came: the end of the chain
  primes[#primes + 1] = prime
  most = math.max(most, q:in_flight())

  local rest = queue.channel()
  q:push(filter, { args = { rest } })
  while true do
    local n
    n, ok = numbers:receive()
    if not ok then break end
    if n % prime ~= 0 then rest:send(n) end
  end
  rest:close()                            -- the end travels down the chain
end

local all = queue.channel()
q:push(filter, { args = { all } })
q:push(function()
  for n = 2, LIMIT do all:send(n) end
  all:close()
end)
q:run()

print(#primes .. " primes up to " .. LIMIT)
print("the first: " .. table.concat(primes, " ", 1, 10))
print("the last: " .. primes[#primes])
print("hundreds of jobs in flight at once: " .. tostring(most > 300))
