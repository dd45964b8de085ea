"""``python -m validation.diagnose``: draws transfers, and scores diagnoses of them.

Files of transfers stay in the cache, so a score that was ended goes on with those that are there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from lfnlab.errors import LabError

from . import large, laws, score
from .transfers import CACHE, Transfer, draw

LAST = FilePath(__file__).parents[1] / "reference" / "diagnose.json"
#: Left out of the kept scores.
DETAILS = ("kind", "next", "path", "shares")
PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "causes": lambda given: score.causes(given.seed, given.count, given.cache),
    "laws": lambda given: laws.of_laws(given.seed, given.cache, given.most),
    "what-if": lambda given: laws.what_if(given.seed, given.cache, given.most or laws.JUDGED),
    "capture": lambda given: large.compare(given.cache),
}


def line(transfer: Transfer) -> str:
    """The causes, the law, the path, and the folder of the files."""
    path = transfer.path
    causes = transfer.cause + (f" ({transfer.second})" if transfer.second else "")
    folder = next(iter(transfer.files.values())).parent
    return (
        f"{transfer.number:4} {causes:32} {transfer.law:9} {path.rate_bps / 1e6:8.4g} Mbit/s "
        f"{path.rtt_s * 1e3:6.4g} ms {path.buffer_packets:6} packets {transfer.duration_s:6.4g} s "
        f"{folder}"
    )


def kept(result: Any) -> Any:
    """The result without the rows that are right, and without what draws and answers repeat."""
    if isinstance(result, dict):
        return {key: kept(value) for key, value in result.items() if key not in DETAILS}
    if not isinstance(result, list):
        return result
    if not all(isinstance(row, dict) for row in result):
        return result
    right = [row.get("right") or row.get("verdict") == "right" for row in result]
    return [kept(row) for row, is_right in zip(result, right, strict=True) if not is_right]


def record(part: str, seed: int, result: dict[str, Any]) -> None:
    """Keep the result of a part, with date and commit."""
    known = json.loads(LAST.read_text()) if LAST.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=LAST.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    known[part] = {"date": date, "commit": commit, "seed": seed, **kept(result)}
    LAST.write_text(json.dumps(known, indent=1) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m validation.diagnose", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="make the files of transfers")
    scoring = commands.add_parser("score", help="diagnose transfers, and compare with the truth")
    for command, count in ((drawing, 20), (scoring, 200)):
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--count", type=int, default=count)
        command.add_argument("--cache", type=FilePath, default=CACHE)
    drawing.add_argument("--first", type=int, default=0)
    drawing.add_argument("--where", choices=("simulator", "linux", "emulator"), default="simulator")
    scoring.add_argument("--part", choices=tuple(PARTS), action="append")
    scoring.add_argument("--most", type=int, help="so many cases of laws and what-if alone")
    scoring.add_argument("--record", action="store_true", help=f"write {LAST.name}")
    given = parser.parse_args()
    try:
        run(given)
    except (LabError, OSError) as error:
        raise SystemExit(f"validation.diagnose: {error}") from None


def run(given: argparse.Namespace) -> None:
    """Draw, or score."""
    if given.command == "draw":
        for transfer in draw(given.seed, given.count, given.where, given.cache, given.first):
            print(line(transfer), flush=True)
        return
    for part in given.part or PARTS:
        result = PARTS[part](given)
        if part == "causes":
            print(score.report(result))
        elif part == "laws":
            print(laws.report(result))
        else:
            print(json.dumps({key: value for key, value in result.items() if key != "rows"}))
        if given.record:
            record(part, given.seed, result)


if __name__ == "__main__":
    main()
