"""CPU seconds of a run of each experiment of the papers, and of all runs: what seeds cost.

$ python -m benches.papers [NAME...] [--sample N]
$ python -m benches.papers [NAME...] --whole DIR

Of each experiment some runs are timed, evenly spaced over laws and seeds, results written. All runs
cost what these do for each predicted event. Runs that two studies share count once.

With --whole the reference points run in one go, paper after paper, on all cores. The results of a
paper stay in DIR/NAME, where ``lfn paper NAME --out DIR/NAME`` goes on.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.table import markdown, markdown_row
from lfnlab.experiment.run import execute
from lfnlab.papers import draws, paper

if TYPE_CHECKING:
    from lfnlab.experiment.plan import Case

#: Factors that an experiment varies.
VARIED = ("law", "other", "rtt", "c")
#: Of wall time and of this process's CPU, in seconds.
CLOCKS = time.monotonic, time.process_time


def studies(name: str) -> dict[str, list[Case]]:
    """The cases of a paper: of its reference point, of its variants, of its draws."""
    module, settings = paper.claims_of(name), paper.settings_of(name, quick=False)
    found: dict[str, list[Case]] = {
        "reference point": module.cases(settings),
        "variants": [],
        "draws": [],
    }

    def record(kind: str) -> Callable[..., Any]:
        return lambda cases, title: found[kind].extend(cases)

    shorter = paper.nested(settings, settings.get("shorter", settings.get("smaller", {})))
    for own in settings["variants"].values():
        module.study_of(paper.nested(shorter, own), record("variants"), "")
    for _, chosen in draws.drawn(name, settings):
        module.study_of(chosen, record("draws"), "")
    return found


def experiment(case: Case) -> str:
    """The factors of a case, other than its law and the like, in words."""
    return ", ".join(f"{k} {v}" for k, v in case.factors.items() if k not in VARIED and v != "")


def cpu_s(case: Case) -> float:
    """CPU seconds of one run and its results."""
    with tempfile.TemporaryDirectory(prefix="lfn-papers-") as out:
        begun_s = time.process_time()
        execute([case], out=out, jobs=1, title="")
        return time.process_time() - begun_s


def cost_s(cases: Sequence[Case], sample: int) -> float:
    """CPU seconds of all cases, by the cost of some for each event."""
    events = [case.scenario.predict()["events"] for case in cases]
    chosen = sorted({i * (len(cases) - 1) // max(1, sample - 1) for i in range(sample)})
    timed_s = sum(cpu_s(cases[i]) for i in chosen)
    return timed_s * sum(events) / sum(events[i] for i in chosen)


def whole(names: Sequence[str], out: Path) -> None:
    """Run the reference points of these papers, and print minutes of wall time and of CPU."""
    print(*markdown(("paper", "runs", "minutes", "CPU minutes"), []), sep="\n")
    done: list[tuple[int, float, float]] = []
    for name in names:
        if (directory := out / name).exists():
            raise SystemExit(f"{directory} exists: its runs would cost nothing; name a new DIR")
        cases = studies(name)["reference point"]
        begun = [clock() for clock in CLOCKS]
        results = execute(cases, out=directory, title=name)
        minutes, cpu = ((now() - was) / 60 for now, was in zip(CLOCKS, begun, strict=True))
        done.append((len(results.runs), minutes, cpu))
        row = (name, str(len(results.runs)), f"{minutes:.1f}", f"{cpu:.1f}")
        print(markdown_row(row), flush=True)
    runs, minutes, cpu = (sum(column) for column in zip(*done, strict=True))
    print(markdown_row(("all", str(runs), f"{minutes:.1f}", f"{cpu:.1f}")))


def main() -> None:
    """Time, and print tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.papers", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="papers; default all")
    parser.add_argument("--sample", type=int, default=4, help="runs timed of each experiment")
    parser.add_argument("--whole", type=Path, metavar="DIR", help="run all reference points")
    asked = parser.parse_args()
    if asked.whole:
        whole(asked.names or list(paper.papers()), asked.whole)
        return
    columns = ("paper", "experiment", "runs", "CPU s a run", "all, CPU s")
    print(*markdown(columns, []), sep="\n")
    totals = []
    for name in asked.names or paper.papers():
        seen: set[str] = set()
        spent_s: list[float] = []
        for kind, cases in studies(name).items():
            new = {case.scenario.to_toml(): case for case in cases}
            groups: dict[str, list[Case]] = {}
            for text in sorted(new.keys() - seen):
                groups.setdefault(experiment(new[text]), []).append(new[text])
            seen |= new.keys()
            spent_s.append(0.0)
            for about, group in groups.items():
                group.sort(key=lambda case: case.scenario.to_toml())
                all_s = cost_s(group, asked.sample)
                spent_s[-1] += all_s
                if kind == "reference point":
                    each = f"{all_s / len(group):.2f}"
                    row = (name, about, str(len(group)), each, f"{all_s:.0f}")
                    print(markdown_row(row), flush=True)
        totals.append((name, *(f"{seconds / 60:.1f}" for seconds in spent_s)))
    heading = ("paper", "reference point, CPU minutes", "variants", "draws")
    print("", *markdown(heading, totals), sep="\n")


if __name__ == "__main__":
    main()
