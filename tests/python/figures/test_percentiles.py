"""The figure ``l4s-delay``: percentiles of the delay of both queues of a DualPI2 link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import Link, Queue, Scenario, execute
from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.figures.percentiles import PERCENTILES
from lfnlab.figures.registry import draw

if TYPE_CHECKING:
    from pathlib import Path

    from lfnlab import Results


def over(kind: Any, tmp_path: Path, *, seeds: int = 1) -> Results:
    """Prague beside CUBIC, and Prague alone."""
    path = Scenario(
        duration="6s",
        warmup="1s",
        sample="off",
        link=Link(rate="20Mbit/s", queue=Queue(kind=kind, size="600kB")),
        default_rtt="10ms",
    ).flow("prague", start="uniform(0s, 100ms)")
    cases = [Case(path.flow("cubic"), {"flows": 2}), Case(path, {"flows": 1})]
    return execute(cases, seeds=seeds, out=tmp_path / f"{kind}-{seeds}")


def test_the_percentiles_rise_and_are_those_of_the_summary(tmp_path: Path) -> None:
    results = over("dualpi2", tmp_path)
    both, alone = results.plot("l4s-delay").figure.axes
    l4s, classic = ([float(y) for y in line.get_ydata()] for line in both.lines)
    for ys in (l4s, classic):
        assert ys == sorted(ys)
    assert max(l4s) < min(classic)
    classes: Any = results.runs[0].summary["links"][0].get("classes")
    assert l4s == pytest.approx([1e3 * classes["l4s"][key] for key in PERCENTILES.values()])
    assert len(alone.lines) == 1  # no Classic packets


def test_few_seeds_are_dots_and_one_run_can_be_chosen(tmp_path: Path) -> None:
    results = over("dualpi2", tmp_path, seeds=2)
    both, _ = results.plot("l4s-delay").figure.axes
    assert len(both.lines) == 2 + 2 * len(PERCENTILES)
    (one,) = draw(results, "l4s-delay", results.runs[0]).figure.axes
    assert len(one.lines) == 2


def test_another_queue_has_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no queue of the kind dualpi2"):
        over("fq-codel", tmp_path).plot("l4s-delay")
