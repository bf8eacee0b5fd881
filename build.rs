//! Link flags of the loadable module.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target == "macos" {
        // The Lua symbols come from the interpreter that loads the module.
        for flag in ["-undefined", "dynamic_lookup"] {
            println!("cargo::rustc-cdylib-link-arg={flag}");
        }
    } else if env::var_os("CARGO_CFG_UNIX").is_some() {
        // `lua_close` unloads C modules, and a timer thread may still be inside this one.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
