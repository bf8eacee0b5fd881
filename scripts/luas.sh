#!/bin/sh
# Prints the Luas there are, one a line, as name=interpreter. The interpreter itself is asked for its name: it is
# "luajit", or "lua" and the version ("lua5.4"), whatever its file is called. LUA picks one; without it each name is
# taken once, from the first of the usual commands that has it.

ask='print(type(jit) == "table" and "luajit" or "lua" .. _VERSION:match("%d+%.%d+"))'

if [ -n "$LUA" ]; then
    name=$("$LUA" -e "$ask" 2>/dev/null </dev/null) || { echo "LUA=$LUA is no Lua that runs." >&2; exit 1; }
    echo "$name=$LUA"
    exit
fi

seen=' '
for lua in lua5.4 luajit lua5.1 lua5.2 lua5.3 lua5.5 lua; do
    path=$(command -v "$lua") && name=$("$path" -e "$ask" 2>/dev/null </dev/null) || continue
    case $seen in *" $name "*) continue ;; esac
    seen="$seen$name "
    echo "$name=$path"
done
