#!/bin/sh
# A new law is a header, a line and a card, and nothing else: add one to a copy of the tree, as
# CONTRIBUTING says, and run the tests that derive from the three. The law is Reno under another
# name.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock crates laws |
	xargs -0 cp --parents -t "$copy"
cd "$copy"

sed 's/reno/demo/g; s/RENO/DEMO/g' laws/reno.h > laws/demo.h
sed 's/law reno/law demo/; s/^# Reno$/# Demo/' laws/cards/reno.md > laws/cards/demo.md
grep '^reno ' laws/REGISTRY | sed 's/^reno /demo /' >> laws/REGISTRY

# Not the tree's own: Cargo would take this lfn-law for that one, and the new law would stay in it.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/new-law
export CARGO_TARGET_DIR
cargo test --quiet -p lfn-law --lib --test cards --test fuzz --test sanitize
cargo test --quiet -p lfn-law --test cards -- --nocapture every_vector | grep '^demo: [1-9]'
