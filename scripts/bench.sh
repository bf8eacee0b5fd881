#!/bin/sh
# Runs the benchmark on each of its Luas and writes docs/benchmark.md and its pictures. A run of a part, be it of the
# rows (ROWS=text), the rounds (ROUNDS=n) or the Luas (LUA=), writes to build/bench/ instead: pages tell of whole runs.
set -e

work=${QUEUE_BUILD:-build}/bench
mkdir -p "$work"
if [ -n "$LUA$ROWS$ROUNDS" ]; then folder=$work; else folder=docs; fi

results= writer=
for word in $(sh scripts/luas.sh); do
    name=${word%%=*} lua=${word#*=}
    case $name:$LUA in lua5.4:* | luajit:* | *:?*) ;; *) continue ;; esac
    "$lua" bench/run.lua "$work/$name.lua" ${ROUNDS:+"rounds=$ROUNDS"} ${ROWS:+"rows=$ROWS"} </dev/null
    results="$results $work/$name.lua" writer=${writer:-$lua}
done
[ -n "$results" ] || { echo 'The benchmark wants lua5.4 or luajit, and finds neither.' >&2; exit 1; }
"$writer" bench/write.lua "$folder" $results
