"""A search for a law that does not break, and its trial on held-out paths.

$ python -m studies.law search    points of the law `grammar`, by family, on eight paths
$ python -m studies.law judge     the law beside its rivals on 200 held-out paths

``docs/ebb.md`` has the results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from studies.law import search

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
    for name in ("search",):
        asked.add_parser(name)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.part == "search":
        table = REFERENCE / "law_search.jsonl"
        search.search(chosen.out / "search", table, chosen.jobs, chosen.trials)


if __name__ == "__main__":
    main()
