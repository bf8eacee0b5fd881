#!/bin/sh
# The specs under valgrind's memcheck. Line tables make its reports readable; they live in folders of their own, so that
# the modules everybody else uses stay as they are.
set -e

LUA=${LUA:-lua5.4} QUEUE_BUILD=${QUEUE_BUILD:-build}/valgrind CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/valgrind
export LUA QUEUE_BUILD CARGO_TARGET_DIR

command -v valgrind >/dev/null || { echo 'valgrind is missing: install it first.' >&2; exit 1; }
CARGO_PROFILE_RELEASE_DEBUG=line-tables-only "${MAKE:-make}" --no-print-directory build LUA="$LUA" BUILD="$QUEUE_BUILD"

# What was freed stays in memory for a while, to catch who still uses it: 4 MB, as some specs look at how much there is.
QUEUE_SPEC_SLOW=20 exec valgrind -q --freelist-vol=4000000 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    --error-exitcode=9 "$LUA" spec/run.lua </dev/null
