rockspec_format = "3.0"
package = "queue"
version = "scm-1"
source = {
   -- The checkout this file lies in: `luarocks make` builds it in place and fetches nothing.
   url = "git+file://.",
}
description = {
   summary = "A priority job queue and Go-grade channels for plain Lua, in one native module",
   detailed = [[
      Jobs with priorities, delays, retries and ids; channels, timers and waits; one file, no runtime.
      Written in Rust: building it takes cargo (1.88 or later), a C linker and GNU make.
   ]],
   license = "MIT",
   labels = { "queue", "scheduler", "channels", "timer", "rust" },
}
supported_platforms = { "unix" }
dependencies = {
   "lua >= 5.1, < 5.6",
}
-- make asks $(LUA) itself which Lua it is, so that LuaJIT, which LuaRocks calls 5.1, gets a build of its own:
--   luarocks --lua-version 5.1 make LUA=$(command -v luajit)
build = {
   type = "make",
   build_target = "build",
   install_target = "install",
   build_variables = {
      LUA = "$(LUA)",
      CFLAGS = "$(CFLAGS)", -- no C is compiled, but LuaRocks warns when it is not passed on
   },
   install_variables = {
      LUA = "$(LUA)",
      INST_LIBDIR = "$(LIBDIR)",
   },
}
test = {
   type = "command",
   script = "spec/run.lua",
}
