# Two commands: `make demo` sets up and runs the main job, `make test` runs every test.
# They need Python 3.11 or newer with pip, cargo, a C compiler and make; uv comes from pip if it is
# not there. The parts of `make test` run alone too: make lint, test-rust, test-python, site,
# blocks, new-law.
.NOTPARALLEL:
.PHONY: demo test lint test-rust test-python site blocks new-law tools linux

UV := $(or $(shell command -v uv),build/uv/bin/uv)
RUN := $(UV) run --no-sync
# What a sync does not name stays: the demo needs fewer packages than the tests.
SYNC := $(UV) sync --locked --inexact

demo: $(UV)
	$(SYNC) --no-dev
	$(RUN) lfn demo

# What fails fast comes first.
test: tools lint test-rust test-python site blocks new-law

lint: $(UV)
	cargo fmt --check
	$(SYNC) --no-install-project
	$(RUN) ruff format --check
	$(RUN) ruff check
	$(RUN) mypy
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Property tests draw the same cases in every run; leave the seed out to search for others.
test-rust:
	PROPTEST_RNG_SEED=1 cargo test --locked --workspace --exclude lfn-python

test-python: $(UV)
	$(SYNC) --all-extras
	$(RUN) python -m mypy.stubtest lfnlab._core
	$(RUN) pytest --numprocesses 2 --dist loadfile tests/python tests/test_house.py validation benches
	$(RUN) pytest tests/kernel tests/emulator

# The pages of docs/, into build/site/index.html.
site: $(UV)
	$(SYNC) --group docs
	$(RUN) sphinx-build --quiet --fail-on-warning --keep-going --jobs auto -c docs/site . build/site

# What the code blocks of README, docs/ and papers/ show, each paper with --quick and its verdicts among it.
blocks: $(UV)
	$(SYNC) --all-extras
	$(RUN) python ci/blocks.py

new-law: $(UV)
	$(SYNC)
	ci/new_law.sh

tools:
	ci/tools.sh

# Linux's TCP in virtual time, for validation alone: linux/README.md. No test needs it.
linux:
	linux/build

build/uv/bin/uv:
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target build/uv uv
