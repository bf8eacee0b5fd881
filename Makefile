# queue: one loadable module per Lua, each in build/<lua>/queue.so.
#
# What takes more than a line or two is a script in scripts/. GNU make, 3.81 or later.

# The Lua to build for, by name or by path; empty: every one that is found.
LUA    ?=
# Where modules are built, and where `install` puts them: in $(PREFIX)/lib/lua/<version>, or wherever INST_LIBDIR says.
BUILD   = build
PREFIX ?= /usr/local
DESTDIR     ?=
INST_LIBDIR ?=
# Tools that cost minutes to compile live outside the build folder, so that `clean` keeps them.
TOOLS  ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/queue-tools

EMMYLUA = 0.25.1

CARGO  ?= cargo
TARGET  = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
LIBRARY = $(TARGET)/release/libqueue.$(if $(filter Darwin,$(shell uname)),dylib,so)
SOURCES := Cargo.toml Cargo.lock build.rs $(shell find src -type f)

# Words such as lua5.4=/usr/bin/lua5.4.
LUAS    := $(shell LUA='$(LUA)' sh scripts/luas.sh)
MODULES := $(foreach lua,$(LUAS),$(BUILD)/$(firstword $(subst =, ,$(lua)))/queue.so)

# What the scripts and the specs go by.
export LUA CARGO MAKE
export QUEUE_BUILD = $(BUILD)

# Features alternate in one target folder, so that the dependencies they share are compiled once. Cargo links again when
# the feature changes, and the copy is taken at once: never two at a time. The last step is a rename, because a Lua that
# runs may have the old file mapped.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: build demo test bench install clean lint rustfmt clippy luacheck types loom coverage stress fuzz valgrind help

build: $(MODULES) ## build the module for every Lua found, or for LUA=…; the default
	@test -n '$(MODULES)' || { echo 'No Lua was found: LUA=/path/to/lua names one, "make demo" installs two.' >&2; exit 1; }

$(BUILD)/%/queue.so: $(SOURCES)
	$(CARGO) build --release --locked --lib --features $(subst .,,$*)
	@mkdir -p $(@D)
	@cp $(LIBRARY) $@.new && mv -f $@.new $@

demo: ## install what is missing (a linker, Lua), build, and run examples/tour.lua on every Lua
	@sh scripts/install-deps.sh demo
	@$(MAKE) --no-print-directory build
	@sh scripts/tour.sh

test: ## install what is missing, build, and run every test; ends with "N passed, N failed"
	@sh scripts/install-deps.sh test
	@sh scripts/test.sh

# ROUNDS=2 for a shorter run, ROWS=channel for the rows that have this in their name (see bench/work/), LUA=luajit for one
# Lua: such a run shows its tables and leaves docs/ alone.
bench: ## install what is missing, build, and measure: writes docs/benchmark.md; ROUNDS=2 or ROWS=jobs: shows a part
	@sh scripts/install-deps.sh bench
	@$(MAKE) --no-print-directory build
	@ROUNDS='$(ROUNDS)' ROWS='$(ROWS)' sh scripts/bench.sh

install: build ## copy the module below PREFIX=/usr/local (for one Lua: LUA=…; for packagers: DESTDIR=, INST_LIBDIR=)
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' INST_LIBDIR='$(INST_LIBDIR)' sh scripts/install.sh

lint: rustfmt clippy luacheck ## rustfmt, clippy and luacheck; a warning is an error

rustfmt:
	$(CARGO) fmt --check

# The core alone, with its tests; then the face, on the two Luas that differ most.
clippy:
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --features lua54 -- -D warnings
	$(CARGO) clippy --locked --features luajit -- -D warnings

luacheck:
	luacheck -q .

# Examples are held to everything but what the checker cannot know: which Lua runs them, and who yields. Specs do what no
# program would, on purpose, so there only the calls are checked, not the fields, and their scripts not at all.
types: $(TOOLS)/bin/emmylua_check ## check the examples and specs against types/queue.lua (compiles its checker once, for minutes)
	$< -c .emmyrc.json --warnings-as-errors types examples
	$< -c spec/.emmyrc.json -i '**/scripts/**' --warnings-as-errors types spec

$(TOOLS)/bin/emmylua_check:
	$(CARGO) install --locked --root $(TOOLS) --version $(EMMYLUA) emmylua_check

# A model checker's locks take the place of the standard library's, so all is compiled for it apart.
loom: ## every interleaving of the core's threads, within the bounds that tests/loom.rs names
	RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=$(TARGET)/loom $(CARGO) test --locked --release --test loom

coverage: ## the lines of src/core that the Rust tests never reach (takes LLVM's tools: rustup component add llvm-tools)
	@sh scripts/coverage.sh

# QUEUE_SEED=n repeats one seed, QUEUE_SEEDS=n takes so many.
stress: ## threads that race, for many rounds; MINUTES=20: with the models and the fuzzer, on fresh seeds or FROM=seed
	@MINUTES='$(MINUTES)' FROM='$(FROM)' sh scripts/stress.sh

# SECONDS for each Lua, and the seed of the first program, which is a fresh one without FROM. The shell has a SECONDS too.
ifeq ($(origin SECONDS),command line)
FUZZ = --seconds $(SECONDS)
else
FUZZ = --seconds 60
endif

fuzz: ## random programs on lua5.4 and luajit, or LUA=…; SECONDS=n for each, FROM=seed repeats a run
	@for lua in $(if $(LUA),'$(LUA)',lua5.4 luajit); do \
	    $(MAKE) --no-print-directory build LUA="$$lua" && "$$lua" fuzz/run.lua $(FUZZ) $(if $(FROM),--from $(FROM)) || exit 1; done

valgrind: ## the specs under valgrind's memcheck (LUA=lua5.4): any error, or a block definitely lost, fails
	@sh scripts/valgrind.sh

clean: ## remove what was built
	rm -rf $(BUILD) $(TARGET)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile
