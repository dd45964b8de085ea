#!/bin/sh
# What a new part costs: adds a queue and a key of it, a router protocol and its law, a parameter of a law in C, a traffic
# model, a key of a flow, a sampled column, a metric, an importer and an option of a command to a copy of the tree as
# CONTRIBUTING.md says, counts what was changed by hand, makes what follows, and runs them.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t "$copy"
cp python/lfnlab/_core.abi3.so "$copy/python/lfnlab/"
cd "$copy"

# Not the tree's own: Cargo would take this lfn-path for that one.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/new-parts
export CARGO_TARGET_DIR
PATH=$root/.venv/bin:$PATH
git init --quiet .
git add .
git -c user.name=ci -c user.email=ci@localhost commit --quiet --message before

# Prints the changes by hand since the last count, and fails where they are more than so many files, or more than five
# lines outside the part's own files.
count() {
    what=$1 own=$2 files=$3
    git add .
    git diff --cached --numstat | awk -v what="$what" -v own="$own" -v files="$files" '
        { n++; if (!index(" " own " ", " " $3 " ")) outside += $1 + $2 }
        END {
            print what ": " n " files (at most " files "), " outside + 0 " lines outside its own"
            exit n > files || outside > 5
        }'
    git -c user.name=ci -c user.email=ci@localhost commit --quiet --message "$what"
}

# add FILE PATTERN LINE...: writes the lines above the first line that matches.
add() {
    file=$1 pattern=$2
    shift 2
    grep -q "$pattern" "$file" || { echo "$file has no line $pattern"; exit 1; }
    printf '%s\n' "$@" > new-lines
    number=$(grep -n "$pattern" "$file" | head -1 | cut -d: -f1)
    sed -i "$((number - 1))r new-lines" "$file"
    rm new-lines
}

cp ci/blue.rs crates/path/src/blue.rs
add crates/path/src/lib.rs '^mod codel;' 'mod blue;'
add crates/path/src/aqm.rs '^use crate::codel::' 'use crate::blue::{Blue, BlueConfig};'
add crates/path/src/aqm.rs '^    /// Proportional-integral controller' \
    '    /// Drop probability from overflows and idle times (Feng and others 2002).' '    Blue = "blue": BlueConfig => Blue;'
count "a queue" crates/path/src/blue.rs 3

add crates/path/src/blue.rs '^        /// Decrease of the probability' \
    '        /// Probability at the beginning.' '        first: f64 = 0.0, in Span::at_least(0.0).at_most(1.0);'
sed -i 's/probability: 0.0, changed/probability: self.first, changed/' crates/path/src/blue.rs
count "a key of a queue" "" 2

cp ci/phantom_header.rs crates/header/src/phantom.rs
add crates/header/src/lib.rs '^pub mod rcp;' 'pub mod phantom;'
add crates/header/src/lib.rs '^    Rcp = "rcp"' '    Phantom = "phantom": phantom::Phantom;'
cp ci/phantom_router.rs crates/path/src/router/phantom.rs
add crates/path/src/router.rs '^mod rcp;' 'mod phantom;'
add crates/path/src/router.rs '^    /// The fair rate of the flows' \
    '    /// A multiple of the unused rate, for the law `phantom`.' \
    '    Phantom = "phantom": phantom::PhantomConfig => phantom::PhantomRouter;'
count "a router protocol" "crates/header/src/phantom.rs crates/path/src/router/phantom.rs" 4

cp ci/phantom_law.rs crates/law/src/end_host/phantom.rs
add crates/law/src/end_host.rs '^pub(crate) mod rcp;' 'pub(crate) mod phantom;'
add laws/REGISTRY '^rcp ' 'phantom code=rust header=phantom variants=paper targets=sim slow_start=classic family=router signal=router,loss source="Afek, Mansour, Ostfeld, SIGCOMM 1996"'
cp ci/phantom.md laws/cards/phantom.md
count "its law" "crates/law/src/end_host/phantom.rs laws/cards/phantom.md" 4

sed -i '/^const-rate /s/ targets=/ parameters=c\/4\/1\/100\/whole targets=/' laws/REGISTRY
add laws/const-rate.h '^	u32 variant;' '	u64 c;'
add laws/const-rate.h '^	s->variant = ' '	s->c = config->parameters[0] / LAW_PARAMETER_ONE;'
sed -i 's/CONST_RATE_C \*/s->c */' laws/const-rate.h
printf '\n```law\nlaw const-rate:c=8\nstart cwnd=100 rtt=1s\nack\nexpect cwnd 100.08 +-0.0001\n```\n' >> laws/cards/const-rate.md
count "a parameter of a law in C" "laws/const-rate.h laws/cards/const-rate.md" 3

cp ci/periodic.rs crates/sim/src/traffic/periodic.rs
add crates/sim/src/traffic.rs '^pub mod requests;' 'pub mod periodic;'
add crates/sim/src/traffic/parameters.rs '^    /// Web traffic as a link sees it' \
    '    /// Flows of one size that begin at equal intervals.' '    Periodic = "periodic": super::periodic::Periodic;'
count "a traffic model" crates/sim/src/traffic/periodic.rs 3

add crates/scenario/src/model/traffic.rs '^        /// Selective acknowledgement.' \
    '        /// Longest retransmission timeout, also after back-off (RFC 6298). Default 120s.' \
    '        max_rto: Option<Time> = None, in Time::from_s(1)..=DELAY_MAX;'
add crates/scenario/src/config.rs '^                sack: tcp.sack,' \
    '                max_rto: tcp.max_rto.unwrap_or(sender.max_rto),'
count "a key of a flow" "" 2

add crates/sim/src/tables.rs '^        /// Congestion state of the sender.' \
    '        /// Retransmission timeouts since the flow began.' '        timeouts: u64, "";'
sampling=crates/sim/src/engine/sampling.rs
add $sampling '^        retransmits: flows' \
    '        timeouts: flows.iter_mut().map(|flow| flow.sender.stats(now).timeouts).sum(),'
add $sampling '^        retransmits: senders' \
    '        timeouts: senders.clone().map(|sender| sender.sender_stats().timeouts).sum(),'
count "a sampled column" "" 2

cat >> python/lfnlab/metrics/shares.py <<'END'


def quartile_ratio(goodputs: ArrayLike) -> float:
    """Goodput that a quarter of the flows do not reach over that which a quarter exceed.

    Formula: Q1 / Q3
    Unit: 1
    Source: Hyndman and Fan 1996, type 7
    """
    low, high = np.quantile(np.asarray(goodputs, dtype=float), (0.25, 0.75))
    return float(low / high) if high > 0 else math.nan
END
add python/lfnlab/metrics/shares.py '^    "reno_ratio",' '    "quartile_ratio",'
add python/lfnlab/analysis/measure/rows.py '^        Metric("cov",' \
    '        Metric("quartiles", metrics.quartile_ratio, _of_goodputs(metrics.quartile_ratio)),'
count "a metric" python/lfnlab/metrics/shares.py 2

cp ci/counters.py python/lfnlab/formats/counters.py
add python/lfnlab/cli/importing.py '^    "iperf3": """' \
    '    "counters": """Store counters of an interface, to plot with simulated flows.' '' \
    '    Args:' '        file: CSV of the columns t_s,bytes.' '    """,'
count "an importer" python/lfnlab/formats/counters.py 2

add python/lfnlab/cli/laws.py '^    bibtex: Annotated' '    family: str | None = None,'
add python/lfnlab/cli/laws.py '^        bibtex: Print' '        family: Only laws of this family.'
add python/lfnlab/cli/laws.py '^    if picture is not None and name' \
    '    chosen = tuple(law for law in chosen if family in (None, law.family))'
count "an option of a command" "" 1

# What follows from the declarations, and the parts at work.
cp ci/new_parts.rs crates/scenario/tests/new_parts.rs
LFN_REGENERATE=1 cargo test --quiet --locked -p lfn-scenario --lib --test any_text --test bad --test new_parts
cargo test --quiet --locked -p lfn-law --test cards
python ci/elements.py
for line in 'factor: float | None' 'freeze: str | None' 'first: float | None' 'every: str | None' 'max_rto: str | None'; do
    grep -q "$line" python/lfnlab/scenario/elements.py
done
PYTHONPATH=python python -c '
from lfnlab import Periodic, metrics
from lfnlab.analysis.measure import METRICS
assert METRICS["quartiles"].documentation["Formula"] == "Q1 / Q3"
assert metrics.quartile_ratio([1, 2, 3, 4, 5]) == 0.5
assert Periodic(size="1MB").every is None
'
export PYTHONPATH=python
printf 't_s,bytes\n0,10\n1,1010\n3,9010\n' > counted.csv
python -m lfnlab.cli import counters counted.csv --out measured > imported
grep -q '^flow 0  tcp  forward  0.024 Mbit/s$' imported
python -m lfnlab.cli plot measured --y goodput_bps > plotted && grep -q '1 trace' plotted
python -m lfnlab.cli import counters README.md 2> refused && exit 1
test $? = 2 && grep -q 'README.md: no CSV of the columns t_s,bytes' refused
python -m lfnlab.cli laws --help > page && grep -q 'Only laws of this family' page
python -m lfnlab.cli laws --family router > router && grep -q '^rcp ' router && ! grep -q '^reno ' router
