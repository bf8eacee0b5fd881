--- Random programs over the whole of the module: those that once found something, and fresh ones.
local H = require("spec.helper")
local eq = H.eq

--- Runs fuzz/run.lua on this Lua, in processes of its own: what crashes or hangs there is one failure here.
local function fuzz(...)
  local r = H.run("../../fuzz/run.lua", "--quiet", ...)
  eq(r.code, 0, r.out .. r.err)
  return tonumber(r.out:match("(%d+) programs in %d+ s, 0 failures"))
end

describe("random programs", function()
  it("that once found something", function()
    eq(fuzz("--kept"), #require("fuzz.seeds"))
  end)

  it("of today", function()
    H.between(fuzz("--count", H.count(300), "--seconds", 8), 10, 300, "programs")
  end)
end)
