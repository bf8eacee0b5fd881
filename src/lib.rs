//! stub
#[cfg(any(feature = "lua54", feature = "lua53", feature = "lua52", feature = "lua51", feature = "luajit", feature = "lua55"))]
#[mlua::lua_module]
fn queue(lua: &mlua::Lua) -> mlua::Result<mlua::Table> {
    let t = lua.create_table()?;
    t.set("VERSION", "0.1.0")?;
    t.set("_VERSION", "queue 0.1.0")?;
    Ok(t)
}
