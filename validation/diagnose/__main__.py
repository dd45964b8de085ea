"""``python -m validation.diagnose``: draws transfers, and scores diagnoses of them."""

from __future__ import annotations

import argparse
from pathlib import Path as FilePath

from . import score
from .transfers import CACHE, Transfer, draw


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


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m validation.diagnose", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="make the files of transfers")
    scoring = commands.add_parser("score", help="diagnose transfers, and compare with the truth")
    for command in (drawing, scoring):
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--count", type=int, default=20)
        command.add_argument("--cache", type=FilePath, default=CACHE)
    drawing.add_argument("--first", type=int, default=0)
    drawing.add_argument("--where", choices=("simulator", "linux", "emulator"), default="simulator")
    given = parser.parse_args()
    if given.command == "score":
        print(score.report(score.causes(given.seed, given.count, given.cache)))
        return
    for transfer in draw(given.seed, given.count, given.where, given.cache, given.first):
        print(line(transfer), flush=True)


if __name__ == "__main__":
    main()
