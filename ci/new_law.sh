#!/bin/sh
# A new law is a header, a line and a card, and nothing else: add one to a copy of the tree, as
# CONTRIBUTING says, and run the tests that derive from the three. The law is Reno under another
# name.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
# Beside the tree's own builds, which share their dependencies with it.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
export CARGO_TARGET_DIR
copy=$CARGO_TARGET_DIR/new-law
rm -rf "$copy"
mkdir -p "$copy"
cd "$root"
git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock crates laws |
	xargs -0 cp --parents -t "$copy"
cd "$copy"

sed 's/reno/demo/g; s/RENO/DEMO/g' laws/reno.h > laws/demo.h
sed 's/law reno/law demo/; s/^# Reno$/# Demo/' laws/cards/reno.md > laws/cards/demo.md
grep '^reno ' laws/REGISTRY | sed 's/^reno /demo /' >> laws/REGISTRY

cargo test --quiet -p lfn-law --lib --test cards --test fuzz --test sanitize
cargo test --quiet -p lfn-law --test cards -- --nocapture every_vector | grep '^demo: [1-9]'
