#!/bin/sh
# Which lines of src/core the Rust tests reach: a table with a line for each file, then every line that was never
# reached. A file's own tests do not count. It takes stable Rust and LLVM's two tools for profiles.
#
# All is built once more, in a folder of its own: coverage/ below the usual one.

CARGO=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}/coverage
case $target in /*) ;; *) target=$PWD/$target ;; esac

about=$(${RUSTC:-rustc} -vV) || exit 1
host=$(echo "$about" | sed -n 's/^host: //p')
llvm=$(echo "$about" | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
own=$(${RUSTC:-rustc} --print sysroot)/lib/rustlib/$host/bin

# tool NAME: the one that came with this Rust, or else the system's, of the version that Rust has.
tool() {
    for path in "$own/$1" "$1-$llvm" "/usr/lib/llvm-$llvm/bin/$1" "$1"; do
        path=$(command -v "$path") || continue
        case $("$path" --version 2>/dev/null) in
        *"LLVM version $llvm."*) echo "$path" && return ;;
        esac
    done
    return 1
}
profdata=$(tool llvm-profdata) && cov=$(tool llvm-cov) || {
    echo "llvm-profdata and llvm-cov $llvm are missing:" \
        "rustup component add llvm-tools, or the system's llvm-$llvm (Debian: apt-get install llvm-$llvm)." >&2
    exit 1
}

# Optimized a little, as the models run for long; that moves no line.
export CARGO_TARGET_DIR="$target" RUSTFLAGS="$RUSTFLAGS -Cinstrument-coverage" CARGO_PROFILE_DEV_OPT_LEVEL=1
export LLVM_PROFILE_FILE="$target/profiles/%m-%p.profraw"

tests() { $CARGO test --locked --lib --tests "$@"; }

rm -rf "$target/profiles"
mkdir -p "$target/profiles" || exit 1
tests --no-fail-fast || exit 1

# Each file with tests is a program of its own, which knows what lines it could reach.
programs=$(tests --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/-object \1/p')
"$profdata" merge --sparse -o "$target/profile" "$target/profiles" || exit 1
# shellcheck disable=SC2086 # words, on purpose
"$cov" export --format=lcov --instr-profile="$target/profile" ${programs#-object } src/core >"$target/lcov.info" ||
    exit 1

awk '
    # Reads a file, and returns the number of the line where its tests begin.
    function read(path,    number, line, tests) {
        while ((getline line <path) > 0) {
            text[path, ++number] = line
            if (!tests && line ~ /^#\[cfg\((all\()?test[,)]/) tests = number
        }
        close(path)
        return tests ? tests : number + 1
    }
    function short(path) { sub(/.*\/src\//, "src/", path); return path }
    function row(name, all, reached) {
        return sprintf("%-30s %6d %8d %8.1f %%", name, all, all - reached, 100 * reached / all)
    }
    /^SF:/ { path = substr($0, 4); tests = read(path); lines = reached = 0 }
    /^DA:/ {
        split(substr($0, 4), part, ",")
        if (part[1] + 0 >= tests) next
        lines++
        if (part[2] + 0 > 0) reached++
        else missed[++misses] = short(path) ":" part[1] ": " text[path, part[1] + 0]
    }
    /^end_of_record/ && lines {
        rows = rows row(short(path), lines, reached) "\n"
        all += lines
        all_reached += reached
    }
    END {
        printf "\n%-30s %6s %8s %10s\n", "", "lines", "missed", "reached"
        fflush()
        printf "%s", rows | "sort"
        close("sort")
        print row("all", all, all_reached)
        if (misses) print "\nnever reached:"
        fflush()
        for (i = 1; i <= misses; i++) print missed[i] | "sort -t: -k1,1 -k2,2n"
    }
' "$target/lcov.info"
