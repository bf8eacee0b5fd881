#!/bin/sh
# Installs what `make demo`, `make test` or `make bench` needs and does not find, and says what before it does.
#
#   install-deps.sh demo    a linker and two Luas
#   install-deps.sh test    those, the other Luas, busted, luacheck, the loops that the specs run in, and Redis for an
#                           example
#   install-deps.sh bench   a linker, two Luas, and the peers
#
# Where it cannot install it says in one line what is missing, and fails only if nothing can be built without it.

what=$1

has() { command -v "$1" >/dev/null 2>&1; }

# A compiler without the C library's start files links nothing.
links() { has cc && echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - 2>/dev/null; }

# One of the Luas has this module.
module() {
    for word in $luas; do
        "${word#*=}" -e "require '$1'" >/dev/null 2>&1 </dev/null && return
    done
    return 1
}

# Its client is plain Lua: what is there for one Lua runs on the others.
redis_client() { module redis || ls /usr/share/lua/5.*/redis.lua >/dev/null 2>&1; }

# The name by which scripts/luas.sh knows a Lua, whatever its command is called.
lua() { case $luas in *"$1="*) return 0 ;; *) return 1 ;; esac; }

has cargo || {
    echo 'Rust is missing (1.88 or later): https://rustup.rs tells how to get it.' >&2
    exit 1
}
luas=$(sh scripts/luas.sh) || exit 1

missing=
need() { missing="$missing $*"; }

links || need cc
if [ -z "$LUA" ]; then
    lua lua5.4 || need lua5.4
    lua luajit || need luajit
fi
# The Lua libraries that it takes; busted runs the specs, the others are met by the module as loops or as peers.
case $what in
test) libraries='busted luv cqueues socket copas' ;;
bench) libraries='luv cqueues binaryheap' ;;
*) libraries= ;;
esac
for name in $libraries; do module $name || need $name; done
if [ "$what" = test ]; then
    if [ -z "$LUA" ]; then
        for version in lua5.1 lua5.2 lua5.3; do lua $version || need $version; done
    fi
    has luacheck || need luacheck
    redis_client || need redis
    has redis-server || need redis-server
    for tool in rustfmt clippy; do
        cargo "${tool#rust}" --version >/dev/null 2>&1 || ! has rustup || {
            echo "Adding to the Rust toolchain: $tool"
            rustup component add $tool
        }
    done
fi
[ -n "$missing" ] || exit 0

# What the package manager calls it; nothing where it has no such package.
for manager in apt-get dnf apk pacman brew none; do
    has $manager && break
done
package() {
    case $manager:$1 in
    apt-get:cc) echo gcc libc6-dev ;;
    apt-get:lua5.* | apt-get:luajit) echo "$1" ;;
    apt-get:luacheck) echo lua-check ;;
    apt-get:redis-server) echo redis-server ;;
    apt-get:*) echo "lua-$1" ;;
    dnf:cc) echo gcc ;;
    dnf:lua5.4) echo lua ;;
    dnf:luajit) echo luajit ;;
    apk:cc) echo gcc musl-dev ;;
    apk:lua5.[1-4] | apk:luajit) echo "$1" ;;
    pacman:cc) echo gcc ;;
    pacman:lua5.4) echo lua54 ;;
    pacman:lua5.[1-3]) echo "$1" | tr -d . ;;
    pacman:luajit) echo luajit ;;
    brew:lua5.4) echo lua@5.4 ;;
    brew:luajit) echo luajit ;;
    dnf:redis-server | apk:redis-server | pacman:redis-server | brew:redis-server) echo redis ;;
    esac
}

root=
if [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then
    # Without a terminal nobody can type a password.
    if has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then root=sudo; else root=none; fi
fi
as_root() { if [ -n "$root" ]; then $root "$@"; else "$@"; fi; }

# A Debian package starts its service at once and at every boot, but here a Redis is wanted only while an example runs.
# A policy-rc.d that is there already has the say.
apt_install='
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        trap "exit 1" HUP INT TERM
        printf "#!/bin/sh\nexit 101\n" >$policy && chmod +x $policy
    fi
    apt-get install -y -q --no-install-recommends "$@" || exit
    case " $* " in
    *" redis-server "*)
        update-rc.d redis-server disable
        ! command -v systemctl >/dev/null || systemctl disable -q redis-server ;;
    esac || :'

install() {
    case $manager in
    apt-get) as_root env DEBIAN_FRONTEND=noninteractive sh -c "$apt_install" sh "$@" ;;
    dnf) as_root dnf install -y "$@" ;;
    apk) as_root apk add "$@" ;;
    pacman) as_root pacman -S --needed --noconfirm "$@" ;;
    brew) brew install "$@" ;;
    esac
}

# One by one where the lot is refused, so that a package this release does not have leaves the others.
install_all() {
    install "$@" </dev/null && return
    for one in "$@"; do
        install "$one" </dev/null || echo "Could not be installed: $one" >&2
    done
}

packages=
for thing in $missing; do packages="$packages $(package "$thing")"; done
packages=$(echo $packages)

if [ -n "$packages" ] && [ "$root" != none ]; then
    echo "Installing with ${root:+$root }$manager: $packages"
    if [ $manager = apt-get ]; then as_root apt-get update -q </dev/null; fi
    install_all $packages
fi

# What is still missing, after all that.
luas=$(sh scripts/luas.sh)
still=
for thing in $missing; do
    case $thing in
    cc) links ;;
    lua*[0-9] | luajit) lua "$thing" ;;
    luacheck | redis-server) has "$thing" ;;
    redis) redis_client ;;
    *) module "$thing" ;;
    esac || still="$still $thing"
done
[ -n "$still" ] || exit 0

hint=$(for thing in $still; do package "$thing"; done | tr '\n' ' ')
case $manager in
apt-get | none) ;;
*) case $what in
    test) hint="$hint (and for each Lua: luarocks install busted luacheck luv cqueues luasocket copas redis-lua)" ;;
    bench) hint="$hint (and for each Lua: luarocks install luv cqueues binaryheap)" ;;
    esac ;;
esac
echo "Missing:$still. Install, as root: ${hint:-with whatever this system has}" >&2

# The rest can be done without; what needs it says so.
links || exit 1
[ -n "$luas" ] || exit 1
