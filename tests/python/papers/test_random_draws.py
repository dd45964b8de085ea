"""Are draws fixed, stratified, and counted as they fell?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab.analysis.finding import Finding
from lfnlab.cli import papers as cli
from lfnlab.errors import Unavailable, UsageError
from lfnlab.papers import draws, paper, verdicts
from lfnlab.results.runs import Results

if TYPE_CHECKING:
    from lfnlab.analysis.finding import Verdict
    from lfnlab.papers.paper import Claim, Execute

PAPERS = list(paper.papers())


@pytest.mark.parametrize("name", PAPERS)
def test_every_value_of_every_choice_is_drawn_equally_often(name: str) -> None:
    settings = paper.settings_of(name, quick=False)
    own = settings["draws"]
    found = draws.drawn(name, settings)
    assert len(found) == own["count"] == 20
    for choice, made in own["choices"].items():
        assert made["reason"]
        often = Counter(words[choice] for words, _ in found)
        assert len(often) == len(made["values"]), "two values have the same words"
        assert max(often.values()) - min(often.values()) <= 1
    assert found == draws.drawn(name, settings), "the draws are fixed"


@pytest.mark.parametrize("name", PAPERS)
def test_a_draw_changes_only_settings_that_the_paper_has(name: str) -> None:
    """A misspelt key would leave the reference point as it is."""
    settings = paper.settings_of(name, quick=False)
    optional = {"systems", "delayed_ack", "parameters", "pacing"}
    made = settings["draws"]
    for own in (made["at"], *(v for c in made["choices"].values() for v in c["values"])):
        assert set(own) <= set(settings) | optional
        for key, value in own.items():
            if isinstance(value, dict) and key != "systems":
                assert set(value) <= set(settings[key]), key


def test_a_draw_has_its_values_over_the_shorter_study() -> None:
    settings = {
        "rate": "1Gbit/s",
        "three": {"rtt": "120ms", "seconds": 9},
        "draws": {
            "count": 4,
            "at": {"three": {"seconds": 1}},
            "choices": {
                "rate": {"values": [{"rate": "1bit/s"}, {}]},
                "rtt": {"values": [{"three": {"rtt": "2ms"}}]},
            },
        },
    }
    found = draws.drawn("x", settings)
    assert sorted(one["rate"] for one, _ in found) == [
        "as chosen",
        "as chosen",
        *["rate 1bit/s"] * 2,
    ]
    for words, chosen in found:
        assert words["rtt"] == "rtt 2ms"
        assert chosen["three"] == {"rtt": "2ms", "seconds": 1}
        assert chosen["rate"] == ("1bit/s" if words["rate"] != "as chosen" else "1Gbit/s")


def test_verdicts_are_counted() -> None:
    assert draws.counted(["holds"] * 17 + ["undecided"] * 3) == "holds in 17 of 20, undecided in 3"
    assert draws.counted(["does not hold"]) == "holds in 0 of 1, does not hold in 1"


def test_draws_with_the_same_runs_count_once() -> None:
    verdicts: list[Verdict] = ["holds", "does not hold", "does not hold", "does not hold"]
    assert draws.counted(verdicts, ["a", "b", "c", "b"]) == "holds in 1 of 3, does not hold in 2"
    apart, alike = paper.once(verdicts, []), paper.once(verdicts, ["a", "b", "b", "b"])
    assert paper.overall("holds", [], apart) == "depends"
    assert paper.overall("holds", [], alike) == "holds", "one draw, thrice"


def test_a_finding_has_a_digest_of_its_runs_and_words() -> None:
    """Claims of the same runs that say the same are one observation."""

    def claim(name: str, runs: set[str], ours: str) -> Claim[Any]:
        def of(study: Any) -> Finding:
            study.used.update(runs)
            return Finding(name, "", "", ours, "holds")

        return of

    of = [claim("a", {"1", "2"}, "x"), claim("b", {"2", "1"}, "x"), claim("c", {"2"}, "x")]
    of.append(claim("d", {"1", "2"}, "y"))
    a, b, c, d = (finding.seen for finding in paper.tested(of, SimpleNamespace(used={"9"})))
    assert a == b
    assert len({a, c, d}) == 3


def test_what_was_drawn_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def study_of(settings: dict[str, Any], execute: Execute, name: str) -> Any:
        return SimpleNamespace(settings=settings, results=Results(tmp_path, name, ()), used=set())

    def x1(study: Any) -> Finding:
        return Finding("X1", "", "", "", "holds" if study.settings["n"] > 2 else "undecided")

    settings = {
        "n": 1,
        "draws": {"count": 4, "at": {}, "choices": {"n": {"values": [{"n": i} for i in range(4)]}}},
    }
    (tmp_path / "claims.py").touch()
    module = SimpleNamespace(study_of=study_of, VARIED=(x1,))
    monkeypatch.setattr(paper, "claims_of", lambda _: module)
    monkeypatch.setattr(paper, "settings_of", lambda _name, quick: settings)
    monkeypatch.setattr(paper, "papers", lambda: {"x": tmp_path})
    found = draws.draw("x", out=tmp_path)
    assert Counter(found.verdicts()["X1"]) == {"holds": 1, "undecided": 3}
    assert len(found.table().rows) == 4
    draws.accept("x", found)
    kept = paper.expected("x")["draws"]
    assert kept["verdicts"] == found.verdicts()
    assert kept["seen"] == found.seen()
    assert [one["n"] for one in kept["chosen"]] == [draw.chosen["n"] for draw in found.draws]


def test_draws_from_other_ranges_are_called_so_on_the_page() -> None:
    kept = paper.expected("westwood-10g")
    found = draws.drawn("westwood-10g", paper.settings_of("westwood-10g", quick=False))
    kept["draws"]["chosen"] = [words for words, _ in found]
    assert "from others" not in "\n".join(verdicts.draws("westwood-10g", kept))
    kept["draws"]["chosen"][0] |= {"buffer": "buffer 9bdp"}
    assert "from others" in "\n".join(verdicts.draws("westwood-10g", kept))


def test_a_paper_without_draws_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paper, "settings_of", lambda _name, quick: {})
    with pytest.raises(Unavailable, match=r"no table \[draws\]"):
        draws.draw("jgn2", out=tmp_path)


def test_draws_have_one_size(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {"quick": True},
        {"extensions": True},
        {"kernel": True},
        {"on": "linux"},
    ]
    for other in others:
        with pytest.raises(UsageError, match="--draws"):
            cli.reproduce("jgn2", draws=True, out=tmp_path, **other)
