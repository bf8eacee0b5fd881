-- One source for every Lua: what any of them has is allowed.
std = "max"
max_line_length = 140
exclude_files = { "build", "target", "lua_modules", ".luarocks" }

-- A spec lets go of a value with `x = nil`, which looks like a value nobody reads.
files["spec"] = { std = "+busted", ignore = { "311" } }
-- Declarations for editors: functions without bodies, names nobody reads.
files["types"] = { unused = false }
