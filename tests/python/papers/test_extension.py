"""Do the extensions of the papers answer their questions, and the laws in Python what they say?"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from lfnlab import dumbbell
from lfnlab.cli import app as cli
from lfnlab.errors import Unavailable
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute
from lfnlab.papers import extension, paper
from lfnlab.testbed import run as testbed

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab.papers.extension import Extension
    from lfnlab.results.runs import Results


#: Their laws need what Linux does not have: VCP's routers, a law's blocks.
WITHOUT_KERNEL = {"cw-hstcp", "evcp"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Extension]:
    """Every extension, tiny: numbers that mean nothing, every step taken."""
    out = tmp_path_factory.mktemp("extensions")
    return {
        name: extension.extend(name, quick=True, out=out / name) for name in extension.extended()
    }


def test_every_paper_has_an_extension(found: dict[str, Extension]) -> None:
    assert list(found) == list(paper.papers())


def test_every_question_has_an_answer_and_every_cell_a_number(found: dict[str, Extension]) -> None:
    for name, one in found.items():
        assert one.answers, name
        for answer in one.answers.values():
            assert any(digit.isdigit() for digit in answer)
            assert "nan" not in answer
        for heading, table in one.tables.items():
            assert table.rows, heading
            for row in table.rows:
                assert len(row) == len(table.headings)
                cells = row[table.keys :]
                assert all(any(digit.isdigit() for digit in cell) for cell in cells), heading


def test_what_is_kept_answers_the_same_questions(found: dict[str, Extension]) -> None:
    for name, one in found.items():
        kept = paper.expected(name)["extensions"]
        assert list(kept["answers"]) == list(one.answers)
        assert kept["command"] == f"lfn paper {name} --extensions"


def test_the_shares_of_two_protocols_add_up(found: dict[str, Extension]) -> None:
    tables = [table for name, table in found["jgn2"].tables.items() if "Share" in name]
    assert tables
    for table in tables:
        for i, row in enumerate(table.rows):
            for j, cell in enumerate(row[1:]):
                if i != j:
                    assert int(cell) + int(table.rows[j][i + 1]) == pytest.approx(100, abs=1)


def test_the_decrease_in_python_is_that_of_the_header(
    found: dict[str, Extension], tmp_path: Path
) -> None:
    laws: Any = importlib.import_module("papers_westwood_10g.laws")

    class Plain(laws.WestwoodDecrease):  # type: ignore[misc]
        name = "westwood-plain"

        def on_ack(self, n: int, ack: Any) -> None:
            self.cwnd += n / self.cwnd

    path = dumbbell(rate="20Mbit/s", rtt="40ms", buffer="1bdp", duration="60s")
    runs = execute([Case(path.flow(law)) for law in ("westwood", Plain)], out=tmp_path).runs
    header, prototype = (run.table("events") for run in runs)
    assert header.filter(pl.col("kind") == 0).height > 3
    assert header["kind"].to_list() == prototype["kind"].to_list()
    for column in ("t_s", "ssthresh_seg"):
        assert prototype[column].to_list() == pytest.approx(header[column].to_list(), rel=1e-3)


def test_the_kernel_stands_beside_the_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a kernel: what the test bed gives is played by the simulator."""

    def bed(cases: Any, plans: Any, *, out: Path, title: str) -> Results:
        found = execute(cases, out=out, title=title)
        for run in found.runs:
            run.summary["invalid"] = "it was late"
        return found

    monkeypatch.setattr(testbed, "plans", lambda cases, file: None)
    monkeypatch.setattr(testbed, "run", bed)
    for name in extension.extended():
        if name in WITHOUT_KERNEL:
            with pytest.raises(Unavailable, match="has no cases for Linux"):
                extension.on_kernel(name, quick=True, out=tmp_path / name)
            continue
        one = extension.on_kernel(name, quick=True, out=tmp_path / name)
        (answer,) = one.answers.values()
        assert answer.startswith("0 of ")
        assert "it was late" in answer
        (table,) = one.tables.values()
        for row in table.rows:
            assert row[-1].startswith("0 of ")
            for cell in row[table.keys : -1]:
                here, there = cell.split(" | ")
                assert here == there


def test_only_full_extensions_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Extension]
) -> None:
    assert cli.call(["paper", "jgn2", "--extensions", "--quick", "--accept"]) == cli.USAGE
    assert cli.call(["paper", "evcp", "--kernel", "--out", str(tmp_path)]) == cli.UNAVAILABLE
    home = tmp_path / "papers" / "x"
    home.mkdir(parents=True)
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    monkeypatch.setattr(paper, "directory_of", lambda name: home)
    extension.accept("x", "extensions", found["jgn2"])
    kept = paper.expected("x")["extensions"]
    assert kept["hash"] == paper.hash_of(found["jgn2"].results)
    assert len(kept["figures"]) == len(found["jgn2"].figures)
    assert all((tmp_path / "docs" / "figures" / file).is_file() for file in kept["figures"])


def test_a_package_refuses_to_accept_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lfn: Lfn
) -> None:
    monkeypatch.setattr(paper.presets, "SHARED", paper.presets.root())
    out = tmp_path / "out"
    assert "accepted in a clone" in lfn.err(
        "paper", "evcp", "--accept", "--out", out, code=cli.UNAVAILABLE
    )
    assert not out.exists()
