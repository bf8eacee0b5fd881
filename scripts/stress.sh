#!/bin/sh
# The random tests, over and over with fresh seeds, for so many MINUTES: threads that race each other, the models of the
# core, and the fuzzer on lua5.4 and luajit, or on LUA. FROM is the first seed. Without MINUTES it is the threads alone,
# 1,000 rounds from seed 0 on.
#
# A failure does not end it: what failed is shown, with the seed that runs it again, and the exit code is 1.

CARGO=${CARGO:-cargo} MAKE=${MAKE:-make}

rust() { $CARGO test --locked --release "$@"; }

if [ -z "$MINUTES" ]; then
    export QUEUE_FROM="${FROM:-0}"
    rust --test stress -- --ignored --nocapture
    exit
fi
case $MINUTES in
*[!0-9]*) echo "MINUTES=$MINUTES is no whole number." >&2 && exit 2 ;;
esac

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# All is built before the clock runs; the tests last, as a module takes the place of their library.
luas=$(sh scripts/luas.sh) || exit 1
[ -n "$LUA" ] || luas=$(echo "$luas" | grep '^lua5\.4=\|^luajit=')
for word in $luas; do
    "$MAKE" --no-print-directory build LUA="${word#*=}" || exit 1
done
rust --no-run || exit 1

# As the fuzzer makes them: numbers that every Lua can hold.
seed=${FROM:-$(($(date +%s) % 1000000 * 1000))}
# More seeds than a test takes at once; the seconds that one has before the next gets its turn, and that the fuzzer has.
stride=10000 share=20 long_share=60
begun=$(date +%s)
runs=0 failed=0

elapsed() { echo $(($(date +%s) - begun)); }
is_over() { [ "$(elapsed)" -ge $((MINUTES * 60)) ]; }

# run COMMAND…: shows what the command says where it fails.
run() {
    runs=$((runs + 1))
    "$@" >"$log" 2>&1 </dev/null && return
    failed=$((failed + 1))
    cat "$log"
    return 1
}

# tell NAME SEED RUNS: one line for what has just been run.
tell() { printf '%6d s  %-16s from seed %d, %d runs; %d failed so far\n' "$(elapsed)" "$1" "$2" "$3" "$failed"; }

# again NAME ARGUMENT…: a test of Rust's, from `seed` on, and from later ones until its share of the time is over.
again() {
    is_over && return
    name=$1 times=0 QUEUE_FROM=$seed until=$(($(elapsed) + share))
    export QUEUE_FROM
    shift
    until is_over; do
        times=$((times + 1))
        run rust --test "$name" "$@" && [ "$(elapsed)" -lt "$until" ] || break
        QUEUE_FROM=$((QUEUE_FROM + stride))
    done
    tell "$name" "$seed" $times
}

echo "$MINUTES minutes, from seed $seed on; FROM=$seed begins there again"
until is_over; do
    again stress -- --ignored
    for file in tests/channel_threads.rs tests/*_model.rs; do
        again "$(basename "$file" .rs)"
    done
    for word in $luas; do
        is_over && break
        run "${word#*=}" fuzz/run.lua --seconds $long_share --from "$seed"
        tell "fuzz, ${word%%=*}" "$seed" 1
    done
    seed=$((seed + 100 * stride))
done
echo "$runs runs in $(elapsed) s, $failed failed"
[ "$failed" = 0 ]
