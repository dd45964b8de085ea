"""A search for a law that does not break, and its trial on held-out paths.

$ python -m studies.law search    points of the law `grammar`, by family, on eight paths
$ python -m studies.law judge     the law beside its rivals on held-out paths
$ python -m studies.law attack    the law on 3,000 paths of the space of lfn attack
$ python -m studies.law page      docs/ebb.md from both tables

``docs/ebb.md`` has the results.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import polars as pl

from studies.law import attacked, judge, page, search

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.law",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("build/law"), help="where runs are stored")
    parser.add_argument("--jobs", type=int, help="runs at a time")
    parser.add_argument("--trials", type=int, default=search.TRIALS, help="of each family")
    asked = parser.add_subparsers(dest="part", required=True)
    asked.add_parser("search")
    trial = asked.add_parser("judge")
    trial.add_argument("--laws", default=",".join(judge.FIXED), help="names, with commas")
    trial.add_argument("--first", type=int, default=40, help="number of the first path")
    trial.add_argument("--paths", type=int, default=20, help="how many")
    trial.add_argument("--seeds", type=int, default=3)
    hurt = asked.add_parser("attack")
    hurt.add_argument("--paths", type=int, default=attacked.COUNT)
    asked.add_parser("page")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    table, trial_table = REFERENCE / "law_search.jsonl", REFERENCE / "law_judge.csv"
    if chosen.part == "page":
        page.write(table, trial_table, REFERENCE / "law_attack.json")
    elif chosen.part == "attack":
        found = attacked.attacked("ebb", chosen.paths, chosen.jobs)
        text = json.dumps(found, indent=1) + "\n"
        (REFERENCE / "law_attack.json").write_text(text, encoding="utf-8")
    elif chosen.part == "search":
        search.search(chosen.out / "search", table, chosen.jobs, chosen.trials)
    else:
        rows = judge.judge(
            chosen.laws.split(","),
            chosen.out / "judge",
            chosen.seeds,
            chosen.first,
            chosen.paths,
            chosen.jobs,
        )
        rows.write_csv(trial_table)
        with pl.Config(tbl_rows=-1, tbl_cols=-1):
            print(judge.summary(rows))


if __name__ == "__main__":
    main()
