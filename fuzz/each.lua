--- `for k, v in each(t)`: pairs, for a LuaJIT (2.1.0-beta3 of 2022) where a loop over pairs that was compiled while
-- hooks are set may never end.
return function(t)
  local k, v
  return function()
    k, v = next(t, k)
    return k, v
  end
end
