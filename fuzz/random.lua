--- Numbers from a seed, the same on every Lua: math.random differs between them.
-- Two generators of Park and Miller's kind, combined as L'Ecuyer does; every product fits into a double.

local Random = {}
Random.__index = Random

local A, B = 2147483563, 2147483399

function Random.new(seed)
  local r = setmetatable({ a = seed % (A - 1) + 1, b = (seed * 7 + 3) % (B - 1) + 1 }, Random)
  -- Seeds next to each other are far apart after a few steps.
  for _ = 1, 16 do r:upto(2) end
  return r
end

--- An integer from 1 to n.
function Random:upto(n)
  self.a = self.a * 40014 % A
  self.b = self.b * 40692 % B
  return (self.a - self.b) % (A - 1) % n + 1
end

--- True once in n times.
function Random:chance(n) return self:upto(n) == 1 end

function Random:of(list) return list[self:upto(#list)] end

--- One of a list of { weight, value }.
function Random:weighted(list)
  local sum = 0
  for _, entry in ipairs(list) do sum = sum + entry[1] end
  local at = self:upto(sum)
  for _, entry in ipairs(list) do
    at = at - entry[1]
    if at <= 0 then return entry[2] end
  end
end

return Random
