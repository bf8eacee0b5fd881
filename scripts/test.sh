#!/bin/sh
# Every test there is, one step after the other; a step that fails does not stop the next. The last line sums them up, and
# the exit code is 0 when nothing failed.

MAKE=${MAKE:-make} CARGO=${CARGO:-cargo}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0

# run TITLE COMMAND…: shows what the command says as it says it, keeps it in $work/log and its exit code in $rc.
run() {
    printf '\n== %s ==\n' "$1"
    shift
    { "$@" </dev/null 2>&1; echo $? >"$work/rc"; } | tee "$work/log"
    rc=$(cat "$work/rc")
}

# count PASSED FAILED: adds to the sums. A step that ended badly and names no failure is one, and so is one that ran nothing.
count() {
    passed=$((passed + $1)) failed=$((failed + $2))
    if [ "$rc" != 0 ] && [ "$2" = 0 ]; then
        echo "(ended with exit code $rc)"
        failed=$((failed + 1))
    elif [ "$1" = 0 ] && [ "$2" = 0 ]; then
        echo '(no test ran)'
        failed=$((failed + 1))
    fi
}

# One command that either works or does not.
check() {
    run "$@"
    if [ "$rc" = 0 ]; then count 1 0; else count 0 1; fi
}

# Rust's tests, in as many binaries as there are files.
rust_tests() {
    run "$@"
    count $(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$work/log")
}

# A suite that hangs has failed. The slowest takes some four minutes on two slow cores.
limit=$(command -v timeout >/dev/null 2>&1 && echo timeout 1200)

# tally NAME: what spec/run.lua said last, "NAME…: N passed, N failed", as two numbers.
tally() {
    awk -v name="$1" 'index($0, name) == 1 && /: [0-9]+ passed, [0-9]+ failed/ {
        sub(/.*: /, ""); p = $1; f = $3 } END { print p + 0, f + 0 }' "$work/log"
}

# A suite is named by a word such as lua5.4=/usr/bin/lua5.4; gc: before that is one with a collector that never rests.
title() {
    name=${1%%=*}
    case $1 in gc:*) echo "specs on ${name#gc:}, the collector at work all the time" ;; *) echo "specs on $name" ;; esac
}

suite() (
    case $1 in gc:*) export QUEUE_SPEC_GC=1 ;; esac
    $limit "${1#*=}" spec/run.lua
)

# Some specs are about real time, and another process may take the machine away from one of them: a suite with a few
# failures is run once more, alone, and that run counts. What is broken fails both times.
settle() {
    name=${1%%=*} name=${name#gc:}
    result=$(tally "$name")
    case ${result#* } in
    [1-3]) run "$(title "$1"), once more, for ${result#* } failed" suite "$1" && result=$(tally "$name") ;;
    esac
    count $result
}

# specs FIRST [SECOND]: a suite sleeps for half of its time, so two run side by side. What the second says is shown when
# both are over.
specs() {
    if [ -n "$2" ]; then
        { suite "$2" </dev/null 2>&1; echo $? >"$work/second.rc"; } >"$work/second" &
    fi
    run "$(title "$1")" suite "$1"
    wait
    settle "$1"
    [ -n "$2" ] || return
    run "$(title "$2")" second
    settle "$2"
}

second() {
    cat "$work/second"
    return "$(cat "$work/second.rc")"
}

# Without its linters a newcomer's Rust still builds and tests.
for tool in fmt:rustfmt clippy:clippy; do
    if $CARGO ${tool%:*} --version >/dev/null 2>&1; then
        check ${tool#*:} "$MAKE" --no-print-directory ${tool#*:}
    else
        printf '\n== %s ==\nskipped: this Rust does not have it\n' ${tool#*:}
    fi
done
check luacheck "$MAKE" --no-print-directory luacheck
rust_tests 'cargo test' "$CARGO" test --locked --no-fail-fast
rust_tests 'loom' "$MAKE" --no-print-directory loom
check build "$MAKE" --no-print-directory build

# Each Lua; then the two that are most used once more, with the collector at its most aggressive.
luas=$(sh scripts/luas.sh)
set -- $luas $(echo "$luas" | sed -n '/^lua5\.4=/s/^/gc:/p; /^luajit=/s/^/gc:/p')
while [ $# -gt 0 ]; do
    specs "$1" "${2-}"
    shift
    [ $# -eq 0 ] || shift
done

printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
