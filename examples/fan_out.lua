-- Fan-out and fan-in: many pieces of work spread over a few hands, and their results brought together again. Once with
-- a job for each piece, once with workers that share a channel.

local queue = require("queue")

local cities = { "Oslo", "Rome", "Lima", "Kyiv", "Doha", "Bern", "Riga", "Cork" }

local function way_ms(city) return 10 + city:byte(1) % 5 * 5 end

local one_by_one = 0
for _, city in ipairs(cities) do one_by_one = one_by_one + way_ms(city) end

local asked = 0
local function ask(city)
  queue.sleep(way_ms(city))               -- an answer takes its time
  asked = asked + 1
  if asked == 4 then error("no answer") end
  return city:byte(2) % 30 .. " degrees"
end

local function run(q)
  local started = queue.now()
  q:run()
  print("faster than one by one: " .. tostring(queue.now() - started < one_by_one))
end

-- 1. A job for each piece: the queue is the pool of four, tries again what fails, and hands over what a job returns.
local weather = {}
local pool = queue.new{
  concurrency = 4,
  on_success = function(info, answer) weather[info.id] = answer end,
}
for _, city in ipairs(cities) do
  pool:push(ask, { args = { city }, id = city, retries = 2 })
end
run(pool)
for _, city in ipairs(cities) do print(city .. ": " .. weather[city]) end
print(pool:metrics().retried .. " retry")

-- 2. Workers that share a channel, for work that comes in bit by bit. The channels have little room, so whoever is
-- faster than the rest waits, and nothing piles up.
local WORKERS = 4
local work, answers = queue.channel(2), queue.channel(2)
local crew = queue.new{ concurrency = math.huge }

crew:push(function()                      -- fans out
  for i, city in ipairs(cities) do work:send({ i = i, city = city }) end
  work:close()
end)

local at_work = WORKERS
local function worker()
  while true do
    local piece, ok = work:receive()      -- whoever is free takes the next
    if not ok then break end
    piece.answer = ask(piece.city)
    answers:send(piece)
  end
  at_work = at_work - 1
  if at_work == 0 then answers:close() end    -- the last one out
end
for _ = 1, WORKERS do crew:push(worker) end

crew:push(function()                      -- fans in
  local came, ordered = {}, {}
  while true do
    local piece, ok = answers:receive()
    if not ok then break end
    came[#came + 1] = piece.city
    ordered[piece.i] = piece.city .. " " .. piece.answer
  end
  print("as they came in: " .. table.concat(came, " "))
  print("in order again:  " .. table.concat(ordered, ", "))
end)
run(crew)
