"""``lfn score``: a law on a committed objective. Heavy modules wait until it is called."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lfnlab import _core
from lfnlab.cli.options import Jobs, Json, Memory, Names, Out  # noqa: TC001 - cyclopts reads them
from lfnlab.cli.progress import bar
from lfnlab.errors import UsageError
from lfnlab.printable import say

if TYPE_CHECKING:
    from lfnlab.judge import JudgePath

OK, FAILED = 0, 1


def score(
    law: str,
    /,
    *,
    against: Names = (),
    path: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    axis: Names = (),
    seeds: int | None = None,
    objective: str = "v1",
    out: Out = Path("lfn-score"),
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Score a law on a committed objective: goodput, fairness, queues, recovery, marks.

    Each axis has its median over the paths and its worst path, with 95 % intervals over the seeds.
    Other laws stand beside it, told apart seed by seed. Examples:

        lfn score htcp-be --against cubic
        lfn score ./mine.py:Mine --against cubic,bbr3 --out mine
        lfn score cubic --axis goodput-0-0,share-reno --path "100Mbit/s 40ms 1bdp"

    It writes `score.json` into the results directory. docs/score.md defines the axes.

    Args:
        law: NAME, NAME:VARIANT, udt/NAME for a law over UDT, FILE.h, or FILE.py:CLASS.
        against: Other laws, with commas between.
        path: RATE RTT BUFFER of a drop-tail bottleneck, repeatable; default the objective's paths.
        axis: Axes to measure, with commas between; default all.
        seeds: Number of seeds, from 1 on; default the objective's.
        objective: Version of the objective, or a file in TOML.
        out: Results directory; a repeated score runs what is missing.
    """
    from lfnlab.judge import score as made_of
    from lfnlab.results.store import Store

    _core.limit_memory(memory)
    with bar() as progress:
        made = made_of(
            law,
            against=against,
            paths=[_path(text) for text in path] or None,
            seeds=seeds,
            objective=objective,
            axes=axis or None,
            out=out,
            jobs=jobs,
            progress=progress,
            failed=progress.failed,
        )
    text = json_format.dumps(made.to_json(), indent=1, allow_nan=False, ensure_ascii=False)
    Store(out).write("score.json", f"{text}\n")
    say(text if json else made)
    return FAILED if progress.failures else OK


def _path(text: str) -> JudgePath:
    from lfnlab.judge import JudgePath

    parts = text.split(maxsplit=2)
    if len(parts) != 3:
        raise UsageError(f'--path: "{text}"; write for example --path "100Mbit/s 40ms 1bdp"')
    return JudgePath(*parts)
