"""Open questions of the EVCP paper, and its aims that are missed.

$ python -m studies.evcp fluid     two flows at 1 Gbit/s and 100 ms against the fluid model (30 s)
$ python -m studies.evcp search    N1, N2 and S for the shortest convergence (1 min)
$ python -m studies.evcp aqm       does active queue management break the joint decrease? (2 min)
$ python -m studies.evcp aims      the paper's scenarios under VCP, EVCP and XCP (15 min)

``docs/router.md`` has the results.
"""

from __future__ import annotations

import argparse

from studies.evcp import dumbbells, questions


def main() -> None:
    """Runs one question."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.evcp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", default="study-results", help="where runs are stored")
    asked = parser.add_subparsers(dest="question", required=True)
    for name in ("fluid", "search", "aqm"):
        asked.add_parser(name)
    dumbbells.add_options(asked.add_parser("aims"))
    chosen = parser.parse_args()
    if chosen.question == "fluid":
        if not questions.judge_fluid(chosen.out):
            raise SystemExit("the packets do not follow the fluid")
    elif chosen.question == "search":
        questions.search(chosen.out)
    elif chosen.question == "aqm":
        questions.aqm(chosen.out)
    else:
        dumbbells.show(chosen)


if __name__ == "__main__":
    main()
