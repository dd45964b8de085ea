"""Does `lfn theory` print and draw what the equations say, and name mistakes?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import law, laws
from lfnlab.cli import app as cli
from lfnlab.figures import theory as figures
from lfnlab.figures.drawing import Drawing
from lfnlab.theory.fluid import Bottleneck, synchronised
from marks import faults

if TYPE_CHECKING:
    from command import Lfn
    from matplotlib.figure import Figure

approx = pytest.approx


def test_response_prints_both_means(lfn: Lfn) -> None:
    arguments = ("response", "--law", "reno,scalable", "--loss", "1e-3,1e-5")
    lines = lfn("theory", *arguments).splitlines()
    assert lines[0].split() == ["law", "p", "=", "0.001", "p", "=", "1e-05", "sawtooth", "by"]
    assert lines[2].split() == ["scalable", "74.889", "74.512", "7488.9", "7451.2", "equations"]
    found = json.loads(lfn("theory", *arguments, "--json"))
    assert found["mean_window_segments"]["reno"]["closed"] == approx([38.73, 387.3], rel=1e-4)


def test_recovery_sawtooth_and_padhye_in_json(lfn: Lfn) -> None:
    found = json.loads(lfn("theory", "recovery", "--rate", "10Gbit/s", "--rtt", "100ms", "--json"))
    assert found["window_segments"] == approx(83_333, rel=1e-5)
    assert found["recovery_s"]["reno"] == approx(4167, rel=1e-3)
    found = json.loads(
        lfn(
            "theory", "sawtooth", "--law", "reno", "--rate", "1Gbit/s", "--buffer", "0bdp", "--json"
        )
    )
    assert found["laws"]["reno"]["utilization"] == approx(0.75, rel=1e-4)
    found = json.loads(lfn("theory", "padhye", "--loss", "1e-2", "--ack", "2", "--json"))
    assert found["padhye_pps"] == approx([79.43], abs=0.006)


def test_vector_in_json(lfn: Lfn) -> None:
    options = ("--law", "reno,reno+scalable", "--start", "3000,1000", "--losses", "30", "--json")
    found = json.loads(lfn("theory", "vector", *options))
    (reno,) = found["laws"]["reno"]
    assert reno["shares"] == approx([0.2, 0.8], abs=1e-3)
    assert reno["exponent"] == approx(2, rel=1e-3)
    assert len(reno["loss_s"]) == len(reno["window_before_segments"]) == 30
    (mixed,) = found["laws"]["reno+scalable"]
    assert mixed["shares"][0] < 0.1
    equal = ("vector", "--law", "reno", "--rtt", "50ms,50ms", "--losses", "8", "--json")
    assert json.loads(lfn("theory", *equal))["laws"]["reno"][0]["exponent"] is None


def test_fairness_leaves_out_what_has_no_sawtooth(lfn: Lfn) -> None:
    found = json.loads(lfn("theory", "fairness", "--law", "reno,westwood", "--json"))
    assert found["laws"]["reno"]["synchronised"]["exponent"] == approx(2, rel=1e-3)
    assert found["laws"]["westwood"] == {
        "by": "equations",
        "synchronised": None,
        "independent_exponent": approx(1),
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("response", "--law", "reno,cubic", "--loss", "1e-3,1e-5"),
        ("recovery",),
        ("sawtooth", "--law", "cubic,scalable,htcp", "--rate", "100Mbit/s"),
        ("vector", "--law", "reno", "--losses", "20"),
        ("vector", "--law", "hstcp", "--losses", "20", "--axes", "rate"),
        ("padhye",),
    ],
)
def test_figures_are_written(arguments: tuple[str, ...], tmp_path: Path, lfn: Lfn) -> None:
    for form, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        file = tmp_path / f"figure.{form}"
        assert lfn("theory", *arguments, "--out", str(file)).endswith(f"figure: {file}\n")
        assert file.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    "arguments",
    [
        ("response", "--law", "ALL", "--loss", "1e-2,1e-4,1e-6"),
        ("response", "--law", "reno", "--loss", "1e-3,1e-5"),
        ("recovery", "--law", "ALL"),
        ("sawtooth", "--law", "ALL", "--rate", "100Mbit/s"),
        ("sawtooth", "--law", "reno", "--rate", "1Gbit/s", "--buffer", "0bdp"),
        ("vector", "--law", "reno,hstcp,scalable,cubic,bic,htcp", "--losses", "20"),
        ("vector", "--law", "reno", "--losses", "20", "--axes", "rate"),
        ("padhye",),
    ],
    ids=" ".join,
)
def test_figures_hold_what_they_draw(
    arguments: tuple[str, ...], tmp_path: Path, lfn: Lfn, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    save = Drawing.save
    monkeypatch.setattr(Drawing, "save", lambda d, file: drawn.append(d.figure) or save(d, file))
    known = ",".join(law.name for law in laws())
    lfn(
        "theory", *[known if a == "ALL" else a for a in arguments], "--out", str(tmp_path / "f.png")
    )
    (figure,) = drawn
    assert list(faults(figure)) == []


def test_figures_have_the_laws_colours_and_units() -> None:
    path = Bottleneck(125_000.0, (0.12, 0.06), 0.0)
    courses = {"reno": [synchronised(["reno"] * 2, path, [3000, 1000], 20)]}
    figure = figures.vectors(courses, path, "rate")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "throughput of flow 1, RTT 120 ms (% of link)"
    assert axes.get_ylabel() == "throughput of flow 2, RTT 60 ms (% of link)"
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["efficiency"].get_xydata().tolist() == [[approx(100), 0], [0, approx(100)]]
    assert lines["equal throughput"].get_xydata()[1] == approx([50, 50])
    assert lines["window ∝ 1/RTT (Reno)"].get_xydata()[1] == approx([20, 80])
    end = lines["after the last loss"]
    assert (end.get_color(), end.get_marker()) == (law("reno").color, law("reno").marker)
    assert figures.look("cw-hstcp") == (law("cw-hstcp").color, law("cw-hstcp").marker)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("response", "--law", "vega"), 'no law "vega"; did you mean "vegas"?'),
        (("response", "--law", "reno,"), 'no law ""'),
        (("sawtooth", "--law", "hstcp:ns3"), 'law hstcp has no variant "ns3"'),
        (("response", "--loss", "2"), '--loss: "2" is not a rate from 1e-12 to below 1'),
        (("response", "--loss", "1e-3,x"), '--loss: "x"'),
        (("response", "--kept", "1"), "--kept: 1 is not between 0 and 1"),
        (("response", "--rtt", "100"), '--rtt: "100" is not a number and a unit; allowed units: s'),
        (("recovery", "--rate", "1Mbit/s"), "--rate and --rtt: the path holds 8.33 packets"),
        (("sawtooth", "--rate", "0Gbit/s"), '--rate: "0Gbit/s" is not above 0'),
        (("sawtooth", "--buffer", "1 mile"), '--buffer: "1 mile"'),
        (("sawtooth", "--rate", "1kbit/s"), "--rate, --rtt, --buffer: path and buffer hold"),
        (("sawtooth", "--law", "westwood", "--buffer", "0bdp"), "buffer: with 0 packets"),
        (("vector", "--rtt", "60ms"), '--rtt: "60ms" is not two times'),
        (("vector", "--start", "9"), '--start: "9" is not two windows'),
        (("vector", "--start", "90000,1"), '--start: "90000,1" is not two windows of at least 2'),
        (("vector", "--start", "90000,90000"), "more than path and buffer hold"),
        (("vector", "--law", "reno+x"), 'no law "x"'),
        (("vector", "--losses", "1"), "--losses"),
        (("vector", "--axes", "log"), "--axes"),
        (("fairness", "--rtt", "60ms,60ms"), '--rtt: "60ms,60ms" are equal'),
        (("padhye", "--rto", "0ms"), '--rto: "0ms" is not above 0'),
        (
            ("padhye", "--out", "figure.gif"),
            '--out: "figure.gif"; allowed endings: .png, .pdf, .svg',
        ),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], says: str, lfn: Lfn) -> None:
    assert says in lfn.refuses("theory", *arguments)


def test_a_figure_that_cannot_be_written(tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "none" / "figure.png"
    assert "cannot write" in lfn.err("theory", "padhye", "--out", file, code=cli.STORE)
