#!/bin/sh
# Runs examples/tour.lua on every Lua, each with the module that was built for it.
set -e

for word in $(sh scripts/luas.sh); do
    name=${word%%=*} lua=${word#*=}
    printf '\n== examples/tour.lua on %s ==\n' "$name"
    "$lua" -e "package.cpath = './${QUEUE_BUILD:-build}/$name/?.so;' .. package.cpath" examples/tour.lua </dev/null
done
