# Two commands: `make demo` sets up and runs the main job, `make test` runs every test.
# They need Python 3.11 or newer with pip, cargo, a C compiler and make; uv comes from pip if it is
# not there. The parts of `make test` run alone too: make lint, test-rust, test-python, test-kernel,
# test-emulator, instructions, site, blocks, new-law, new-parts.
ifdef PAIRED
# The jobserver of MAKEFLAGS is closed to programs that are not make; each rustc would warn of that.
SHELL := /usr/bin/env
.SHELLFLAGS := -u MAKEFLAGS -u MFLAGS sh -c
else
.NOTPARALLEL:
endif
.PHONY: demo test lint style clippy extension package msrv platforms rust-tests test-rust test-python test-kernel test-emulator instructions site reference blocks new-law new-parts soak tools linux stacks browser wheel

UV := $(or $(shell command -v uv),build/uv/bin/uv)
RUN := $(UV) run --no-sync
# What a sync does not name stays: the demo needs fewer packages than the tests.
SYNC := $(UV) sync --locked --inexact
# Parts side by side, and what they print part by part.
PAIR := $(MAKE) PAIRED=1 --jobs=2 --output-sync
TRIPLE := $(MAKE) PAIRED=1 --jobs=3 --output-sync

demo: $(UV)
	$(SYNC) --no-dev
	$(RUN) lfn demo

# What fails fast comes first. In each pair one part leaves a core idle; a third begins when one has ended. Parts that may
# wait are nice to those whose tests tell time.
test: tools style
	$(PAIR) clippy extension
	$(PAIR) test-kernel rust-tests
	$(TRIPLE) test-emulator test-rust instructions new-law
	$(MAKE) test-python
	$(PAIR) site new-parts
	$(MAKE) blocks

lint: style clippy

# mypy reads the types of gymnasium, whose classes ours extend.
style: $(UV)
	cargo fmt --check
	$(SYNC) --no-install-project --extra gym
	$(RUN) ruff format --check
	$(RUN) ruff check
	PYTHONPATH=python $(RUN) lint-imports --no-cache --no-logo
	$(RUN) mypy

clippy:
	cargo clippy --locked --workspace --all-targets -- -D warnings

# The package, with all that tests need of Python's.
extension: $(UV)
	$(SYNC) --all-extras

# Builds the tests that `test-rust` runs.
rust-tests:
	nice cargo test --locked --workspace --exclude lfn-python --no-run

# Property tests draw the same cases in every run; leave the seed out to search for others. Tests over real sockets wait
# more than they compute, so more of them run than there are cores.
test-rust:
	RUST_TEST_THREADS=6 PROPTEST_RNG_SEED=1 cargo test --locked --workspace --exclude lfn-python

test-python: extension
	$(RUN) python -m mypy.stubtest lfnlab._core
	$(RUN) pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder tests/python tests/test_*.py validation

# The laws in this machine's kernel, and the path emulator: they wait more than they compute. What Cargo builds for them
# has its own place, since it would wait for `rust-tests`. Never side by side: the test bed takes the laws that the kernel has.
test-kernel: extension
	CARGO_TARGET_DIR=target/kernel $(RUN) pytest tests/kernel

test-emulator: extension
	CARGO_TARGET_DIR=target/kernel $(RUN) pytest tests/emulator

# Counts for minutes, on one core.
instructions: extension
	nice $(RUN) pytest benches

# The pages of docs/, into build/site/index.html, with their generated parts, and the tests of their search and looks.
site: $(UV)
	$(SYNC) --group docs
	$(RUN) sphinx-build --quiet --fail-on-warning --keep-going --jobs auto -c docs/site . build/site
	$(RUN) pytest tests/site

# The committed ones among the generated parts of pages; a test compares them.
reference: $(UV)
	$(SYNC)
	$(RUN) python docs/site/reference.py

# The crates that others can use, in target/package, each built from what is packed. Publishes nothing.
CRATES := units keys header law path tcp udt sim scenario
package:
	cargo package $(CRATES:%=-p lfn-%)

# Everything, tests too, with the oldest Rust that Cargo.toml promises; needs rustup.
msrv:
	cargo +$(shell sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml) check --locked --workspace --all-targets

# The simulator and the package, type-checked for macOS, Windows, FreeBSD and Linux on ARM.
platforms: $(UV)
	ci/platforms.sh $(abspath $(UV))

# What the code blocks of README, docs/ and papers/ show, each paper with --quick and its verdicts among it.
blocks: $(UV)
	$(SYNC) --all-extras
	$(RUN) python ci/blocks.py

# A new queue, key, router protocol, law, parameter of a law, traffic model, column and metric in a copy of the tree; counts their files
# and lines.
new-parts: $(UV)
	$(SYNC)
	nice ci/new_parts.sh

new-law: $(UV)
	$(SYNC)
	nice ci/new_law.sh

# New cases of what `make test` draws alike each time: property tests, figures, hostile packets, memory,
# damages of a store, kills of shell, test bed and sweep. `make soak SEED=N` draws those of N again.
ifeq ($(MAKECMDGOALS),soak)
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
$(info SEED=$(SEED))
endif
soak: $(UV)
	$(SYNC) --all-extras
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=2000 cargo test --locked --workspace --exclude lfn-python
	LFN_SEED=$(SEED) LFN_FUZZ_PACKETS=10000000 cargo test --locked --release -p lfn-udt --test fuzz
	LFN_SEED=$(SEED) LFN_FUZZ_PACKETS=1000000 LFN_KILLS=50 cargo test --locked --release -p lfn-transfer --test hostile --test kills
	LFN_SEED=$(SEED) LFN_MEMORY_RUNS=500 cargo test --locked -p lfn-scenario --test memory
	LFN_SEED=$(SEED) LFN_MEMORY_RUNS=500 $(RUN) pytest tests/python/test_memory.py
	LFN_SEED=$(SEED) LFN_RANDOM_DRAWS=10000 cargo test --locked -p lfn-scenario --test random
	LFN_SEED=$(SEED) LFN_BOUNDS_DRAWS=5000 cargo test --locked -p lfn-scenario --test bounds
	LFN_SEED=$(SEED) LFN_RELATIONS_DRAWS=3000 cargo test --locked --release -p lfn-scenario --test relations
	LFN_SEED=$(SEED) LFN_UDT_DRAWS=1000 cargo test --locked -p lfn-sim --test sim udt_trouble
	$(RUN) pytest --hypothesis-seed=$(SEED) tests/python/scenario/test_scenario.py tests/python/metrics/test_metrics.py tests/python/figures/test_report.py
	LFN_SEED=$(SEED) LFN_FIGURES=200 $(RUN) pytest --numprocesses 2 tests/python/figures/test_figures.py
	LFN_SEED=$(SEED) LFN_DAMAGES=1000 $(RUN) pytest --numprocesses 2 tests/python/cli/test_damage.py
	LFN_SEED=$(SEED) LFN_SHELL_KILLS=100 LFN_TESTBED_KILLS=100 $(RUN) pytest tests/emulator -k kill
	LFN_SEED=$(SEED) $(RUN) python -m benches.sweep kill
	@echo "SEED=$(SEED) held; write the date into ci/soak.csv"

tools:
	ci/tools.sh

# Linux's TCP in virtual time, for --on linux and validation: linux/README.md. Tests that need it are skipped without.
# LAWS=FILE.h... builds headers from anywhere in too.
linux:
	linux/build

# The congestion controllers of deployed stacks, as shared objects in build/stacks: docs/stacks.md. STACK=NAME builds one.
stacks:
	nice stacks/build $(STACK)

# The simulator of the web page, a committed file, after a change of its sources.
browser:
	crates/browser/build

# dist/: the wheel and the sdist; tried on each Python that is here. TARGET=aarch64-unknown-linux-gnu: also the wheel of
# that system, built with zig and not tried.
wheel: $(UV)
	ci/wheel.sh $(abspath $(UV)) $(TARGET)

build/uv/bin/uv:
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target build/uv uv
