#!/bin/sh
# A new queue is a file of its own and four lines in two files, a new key of it one declaration: add BLUE and then a
# key to a copy of the tree as CONTRIBUTING.md says, make what follows, and count what was changed by hand.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
cd "$copy"

# Not the tree's own: Cargo would take this lfn-path for that one.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/new-queue
export CARGO_TARGET_DIR
PATH=$root/.venv/bin:$PATH
git init --quiet .
git add .
git -c user.name=ci -c user.email=ci@localhost commit --quiet --message before

# Prints the changes by hand since the last commit, and fails where they are more than so many files, or more than so
# many lines outside the new file.
count() {
    what=$1 files=$2 lines=$3
    git add .
    git diff --cached --numstat | awk -v what="$what" -v files="$files" -v lines="$lines" '
        { n++; if (!($3 ~ /blue\.rs$/)) outside += $1 + $2 }
        END {
            print what ": " n " files, " outside + 0 " lines outside the queue'"'"'s own"
            exit n > files || outside > lines
        }'
}

# What follows from the declarations.
derive() {
    LFN_REGENERATE=1 cargo test --quiet --locked -p lfn-scenario --lib
    python ci/elements.py
    git add .
    git -c user.name=ci -c user.email=ci@localhost commit --quiet --message derived
}

cp ci/blue.rs crates/path/src/blue.rs
sed -i 's/^mod aqm;$/mod aqm;\nmod blue;/' crates/path/src/lib.rs
sed -i 's|^use crate::codel::|use crate::blue::{Blue, BlueConfig};\n&|' crates/path/src/aqm.rs
sed -i 's|^    /// Proportional-integral controller|    /// Drop probability from overflows and idle times (Feng and others 2002).\n    Blue = "blue": BlueConfig => Blue;\n&|' crates/path/src/aqm.rs
count "a new queue" 3 5
derive
grep -q '"blue"' docs/reference/scenario.schema.json
grep -q 'freeze: str | None' python/lfnlab/scenario/elements.py

sed -i 's|^        /// Decrease of the probability while the link is idle|        /// Probability at the beginning.\n        first: f64 = 0.0, in Span::at_least(0.0).at_most(1.0);\n&|; s/probability: 0.0, changed/probability: self.first, changed/' crates/path/src/blue.rs
count "a new key" 2 5
derive
grep -q 'first: float | None' python/lfnlab/scenario/elements.py
cargo test --quiet --locked -p lfn-scenario --test any_text --test bad
