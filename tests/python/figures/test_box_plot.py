"""Boxes are of the rows that they say."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.patches import PathPatch

from lfnlab.errors import UsageError
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.figures.draw import Request, draw
from lfnlab.scenario.builder import dumbbell

if TYPE_CHECKING:
    from pathlib import Path

    from lfnlab import Results


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two laws, two RTTs, eight flows each, two seeds."""
    cases = []
    for seed in (1, 2):
        path = dumbbell(
            rate="50Mbit/s", rtt="20ms", buffer="1bdp", duration="3s", loss=1e-3, seed=seed
        )
        for law in ("cubic", "reno"):
            for rtt in ("20ms", "60ms"):
                path = path.flow(law, rtt=rtt, count=8)
        cases.append(Case(path))
    return execute(cases, out=tmp_path_factory.mktemp("many"), title="many flows")


@pytest.mark.parametrize("log", [None, "y"])
def test_boxes_have_the_quartiles_of_their_flows(many: Results, log: str | None) -> None:
    flows = [flow for run in many.runs for flow in run.summary["flows"]]
    request = Request(kind="box", x="rtt_s", y="goodput_bps", by="law", log=log)  # type: ignore[arg-type]
    drawing = draw([many.root], request)
    assert "64 rows" in drawing.says
    (axes,) = drawing.figure.axes
    drawn = {
        tuple(np.round(np.sort(patch.get_path().vertices[:, 1])[[0, -1]], 6))
        for patch in axes.patches
        if isinstance(patch, PathPatch)
    }
    expected = set()
    for law in ("cubic", "reno"):
        for rtt_s in (0.02, 0.06):
            own = [f["goodput_bps"] / 1e6 for f in flows if (f["law"], f["rtt_s"]) == (law, rtt_s)]
            assert len(own) == 16
            expected.add(tuple(np.round(np.percentile(own, (25, 75)), 6)))
    assert drawn == expected


def test_a_box_of_laws_is_the_default(many: Results) -> None:
    (axes,) = draw([many.root], Request(kind="box")).figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["cubic", "reno"]
    assert axes.get_ylabel() == "goodput (Mbit/s)"


def test_few_rows_are_a_box_too(many: Results) -> None:
    request = Request(kind="box", where=("flow=0", "seed=1"))
    (axes,) = draw([many.root], request).figure.axes
    assert sum(isinstance(patch, PathPatch) for patch in axes.patches) == 1


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request(kind="box", log="x"), "boxes stand on names"),
        (Request(kind="box", y="law"), "holds text"),
        (Request(kind="box", x="cwnd_seg", y="rtt_s"), "at most 60 boxes"),
    ],
)
def test_what_no_box_shows_is_refused(many: Results, request_: Request, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        draw([many.root], request_)


def test_boxes_of_two_results_stand_beside_each_other(many: Results, tmp_path: Path) -> None:
    path = dumbbell(rate="50Mbit/s", rtt="20ms", buffer="1bdp", duration="2s")
    other = execute([Case(path.flow("cubic", count=8))], out=tmp_path / "other", title="other")
    (axes,) = draw([many.root, other.root], Request(kind="box", x="law")).figure.axes
    ends = sorted(
        (float(xs.min()), float(xs.max()))
        for patch in axes.patches
        if isinstance(patch, PathPatch)
        for xs in [patch.get_path().vertices[:, 0]]
    )
    assert len(ends) == 3
    assert all(before[1] < after[0] for before, after in pairwise(ends))
