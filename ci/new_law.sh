#!/bin/sh
# A new law is a header, a line and a card, and nothing else: add two to a copy of the tree and run the
# tests that derive from the three. One is Reno under another name, as CONTRIBUTING says; the other
# comes about in docs/tutorial/law.md, every block of which is executed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t "$copy"
cd "$copy"

# Not the tree's own: Cargo would take this lfn-law for that one, and the new law would stay in it.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/new-law
# What is tested is right or wrong, not fast: half the time of the build.
CARGO_PROFILE_RELEASE_LTO=off
CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
CARGO_PROFILE_RELEASE_OPT_LEVEL=1
PATH=$copy/.venv/bin:$root/.venv/bin:$root/build/uv/bin:$PATH
export CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS
export CARGO_PROFILE_RELEASE_OPT_LEVEL PATH

sed 's/reno/demo/g; s/RENO/DEMO/g' laws/reno.h > laws/demo.h
sed 's/law reno/law demo/; s/^# Reno$/# Demo/' laws/cards/reno.md > laws/cards/demo.md
grep '^reno ' laws/REGISTRY | sed 's/^reno /demo /' >> laws/REGISTRY
python ci/blocks.py --here docs/tutorial/law.md
cargo test --quiet -p lfn-law --test cards -- --nocapture every_vector | grep '^demo: [1-9]'
