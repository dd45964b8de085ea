"""A search for a law that does not break, and its trial on held-out paths.

$ python -m studies.law search           points of the law `grammar`, by family, on eight paths
$ python -m studies.law elastic          whether a sender sees elastic traffic without a queue
$ python -m studies.law judge            the law beside CUBIC on held-out paths
$ python -m studies.law judge --set fat  on the long fat ones; --laws names rivals
$ python -m studies.law attack           the law on paths of the space of lfn attack
$ python -m studies.law linux            the law and CUBIC on Linux in virtual time, twelve paths
$ python -m studies.law page             docs/ebb.md from the tables

``docs/ebb.md`` has the results. A part that is run again goes on from the runs in ``--out``.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
from pathlib import Path

import polars as pl

from studies.law import attacked, elastic, judge, linux, page, search

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def main() -> None:
    """Runs one part, and adds its CPU time to the account."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.law",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("build/law"), help="where runs are stored")
    parser.add_argument("--tables", type=Path, default=REFERENCE, help="where the tables are")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--trials", type=int, default=search.TRIALS, help="of each family")
    asked = parser.add_subparsers(dest="part", required=True)
    asked.add_parser("search")
    asked.add_parser("elastic")
    trial = asked.add_parser("judge")
    trial.add_argument("--set", choices=judge.SETS, default="mixed")
    trial.add_argument("--laws", default="ebb", help="names with commas, or rivals")
    trial.add_argument("--first", type=int, default=80, help="number of the first path")
    trial.add_argument("--paths", type=int, default=120, help="of these so many numbers on")
    trial.add_argument("--each", type=int, default=1, help="only each so manyth of them")
    trial.add_argument(
        "--most-bps", type=float, default=math.inf, help="only paths up to this rate"
    )
    trial.add_argument("--seeds", type=int, default=3)
    hurt = asked.add_parser("attack")
    hurt.add_argument("--paths", type=int, default=attacked.COUNT)
    asked.add_parser("linux")
    asked.add_parser("page")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    _run(chosen)
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = sum(one.ru_utime + one.ru_stime for one in used)
    if chosen.part != "page":
        _account(chosen.tables / "law_cpu.csv", chosen.part, cpu_s)


def _run(chosen: argparse.Namespace) -> None:
    tables = chosen.tables
    if chosen.part == "page":
        page.write(tables)
    elif chosen.part == "attack":
        found = attacked.attacked("ebb", chosen.paths, chosen.jobs, chosen.out / "attack.jsonl")
        text = json.dumps(found, indent=1) + "\n"
        (tables / "law_attack.json").write_text(text, encoding="utf-8")
    elif chosen.part == "elastic":
        elastic.elasticities().write_csv(tables / "law_elastic.csv")
    elif chosen.part == "search":
        search.search(
            chosen.out / "search", tables / "law_search.jsonl", chosen.jobs, chosen.trials
        )
    elif chosen.part == "linux":
        linux.compared(chosen.out / "linux", chosen.jobs).write_csv(tables / "law_linux.csv")
    else:
        judge.judge(
            judge.named(chosen.laws, tables / "law_search.jsonl"),
            chosen.set,
            range(chosen.first, chosen.first + chosen.paths, chosen.each),
            chosen.seeds,
            chosen.out / "judge",
            tables / "law_judge.csv",
            chosen.jobs,
            chosen.most_bps,
        )


def _account(file: Path, part: str, cpu_s: float) -> None:
    """Adds CPU time to what earlier calls of the part took."""
    row = pl.DataFrame({"part": [part], "cpu_s": [round(cpu_s, 1)]})
    rows = pl.concat([pl.read_csv(file), row]) if file.exists() else row
    rows.group_by("part", maintain_order=True).agg(pl.col("cpu_s").sum().round(1)).write_csv(file)


if __name__ == "__main__":
    main()
