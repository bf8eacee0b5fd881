#!/bin/sh
# Copies each built module to where its Lua looks for it. LuaJIT looks where Lua 5.1 does; with both present 5.1's module
# goes there, and LUA=luajit puts LuaJIT's own there instead.
set -e

luas=$(sh scripts/luas.sh)
case $INST_LIBDIR in
?*) case $luas in
    *[[:space:]]*) echo 'INST_LIBDIR is the folder of one Lua: name it with LUA=.' >&2; exit 1 ;;
    esac ;;
esac
for word in $luas; do
    name=${word%%=*}
    case $name in
    luajit) case $luas in *lua5.1=*) continue ;; esac; version=5.1 ;;
    *) version=${name#lua} ;;
    esac
    to=$DESTDIR${INST_LIBDIR:-$PREFIX/lib/lua/$version}
    mkdir -p "$to"
    # The new file takes the old one's place in one step: a Lua that runs may have the old one mapped.
    cp "${QUEUE_BUILD:-build}/$name/queue.so" "$to/.queue.so.new"
    mv -f "$to/.queue.so.new" "$to/queue.so"
    echo "$name: $to/queue.so"
done
