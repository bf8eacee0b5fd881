--- Programs that once found something, each with what it was. `make test` runs them on every Lua.
return {}
