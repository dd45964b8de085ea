"""Does an evaluation answer every criterion, and find what is known of the laws?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import LabError, ScenarioError
from lfnlab.cli.app import call
from lfnlab.evaluate import CRITERIA, QUESTIONS, Answer, Evaluation, evaluate, subject
from lfnlab.evaluate.scenarios import Place
from lfnlab.figures.evaluation import page

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[3]
SECTIONS = """
5.1.1 Protection Against Congestion Collapse
5.1.2 Protection Against Bufferbloat
5.1.3 Protection Against High Packet Loss
5.1.4 Fairness Within the Proposed Congestion Control Algorithm
5.1.5 Short Flows
5.2 Mixed Algorithm Behavior
5.2.1 Existing General-Purpose Congestion Control
5.2.2 Real-Time Congestion Control
5.2.3 Short and Long Flows
5.3.1 Differences with Congestion Control Principles
5.3.2 Incremental Deployment
6.1 Paths with Tail-Drop Queues
6.2 Tunnel Behavior
6.3 Wired Paths
6.4 Wireless Paths
7.1 Active Queue Management (AQM)
7.2 Operation with the Envelope Set by Network Circuit Breakers
7.3 Paths with Varying Delay
7.4 Internet of Things and Constrained Nodes
7.5 Paths with High Delay
7.6 Misbehaving Nodes
7.7 Extreme Packet Reordering
7.8 Transient Events
7.9 Sudden Changes in the Path
7.10 Multipath Transport
7.11 Data Centers
"""
"""Numbered sections of RFC 9743 from 5 to 7 with a criterion (5.1 and 5.3 are headings)."""
BARS = ("5.1.3", "5.1.4", "5.2")
KNOWN = {
    "bbr": "loss",
    "vegas": "starves",
    "scalable": "starves-other",
    "htcp-be": "share",
}
"""A law, and the question at which others have found it wanting."""


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Evaluation]:
    """A quick evaluation of the sections with the bars; laws share a store."""
    out, made = tmp_path_factory.mktemp("evaluate"), {}

    def of(law: str) -> Evaluation:
        if law not in made:
            made[law] = evaluate(law, sections=BARS, quick=True, out=out)
        return made[law]

    return of


def test_every_numbered_criterion_has_an_answer() -> None:
    sections = SECTIONS.strip().splitlines()
    assert [f"{criterion.section} {criterion.title}" for criterion in CRITERIA] == sections
    for criterion in CRITERIA:
        assert criterion.asks, criterion
        # What is missing is said beside figures, not in their place.
        assert criterion.questions or criterion.not_applicable, criterion
        assert not (criterion.questions and criterion.not_applicable), criterion
        assert set(criterion.questions) <= set(QUESTIONS), criterion
    asked = {name for criterion in CRITERIA for name in criterion.questions}
    assert asked == set(QUESTIONS), "a question that no criterion asks"


@pytest.mark.parametrize(("law", "name"), KNOWN.items())
def test_it_finds_by_itself_what_is_known_of_a_law(
    law: str, name: str, evaluated: Callable[[str], Evaluation]
) -> None:
    found = {finding.answers[0].question.name: finding for finding in evaluated(law).findings}
    assert name in found
    if law == "htcp-be":
        beside = found[name].answers[0]
        assert beside.beside == "reno"
        assert beside.figure(law).mean == pytest.approx(0.90, abs=0.01)
        assert "90" in str(found[name])


@pytest.mark.parametrize("law", ["reno", "cubic"])
def test_it_clears_the_standard_laws_of_each(
    law: str, evaluated: Callable[[str], Evaluation]
) -> None:
    made = evaluated(law)
    assert not {finding.answers[0].question.name for finding in made.findings} & {*KNOWN.values()}
    other = {"reno": "cubic", "cubic": "reno"}[law]
    assert [one.label for one in made.comparators] == [other]


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ("udt/cubic", "flow[0].ecn: UDT has nothing of that kind; allowed: "),
        ("vcp", "flow[0].ecn: ECN under a law of VCP; allowed: "),
    ],
)
def test_a_refusal_names_its_key(law: str, said: str, tmp_path: Path) -> None:
    made = evaluate(law, sections=["7.1"], quick=True, out=tmp_path)
    why_not = [answer.why_not for answer in made.answers if answer.question.name == "marks"]
    assert [why[law].startswith(said) for why in why_not] == [True]


def test_short_flows_over_udt_are_refused_by_their_key() -> None:
    question, udt = QUESTIONS["short"], subject("udt")
    with pytest.raises(ScenarioError) as error:
        question.build(udt, question.places[0], udt)
    assert error.value.key == "traffic[0].law"


def test_a_breaker_ends_flows_of_a_law_that_goes_on_losing_packets(tmp_path: Path) -> None:
    made = evaluate("copa", sections=["7.2"], out=tmp_path)
    ended = [one for one in made.answers if one.question.name == "ended"]
    assert [one.said for one in ended][:1] == ["finding"]
    assert ended[0].figure("reno").mean == ended[0].figure("cubic").mean == 0.0
    assert "Flows that a circuit breaker ended: " in page(made)


def test_findings_come_by_their_size(evaluated: Callable[[str], Evaluation]) -> None:
    sizes = [finding.answers[0].size for finding in evaluated("bbr").findings]
    assert len(sizes) > 2
    assert sizes == sorted(sizes, reverse=True)
    assert all(size > 1 for size in sizes)


def answer(own: list[float], reno: list[float], name: str = "loss") -> Answer:
    values = {"mine": dict(enumerate(own)), "reno": dict(enumerate(reno))}
    return Answer(QUESTIONS[name], Place("1Gbit/s", "40ms", "1bdp"), "mine", values)


@pytest.mark.parametrize(
    ("own", "reno", "said"),
    [
        ([0.05, 0.051, 0.049], [0.01, 0.011, 0.009], "finding"),
        # The comparator is as bad.
        ([0.05, 0.051, 0.049], [0.05, 0.049, 0.051], "beyond"),
        ([0.01, 0.011, 0.009], [0.001, 0.001, 0.001], "within"),
        # The mean is 2.5 times the bound, and its interval covers the bound.
        ([0.01, 0.02, 0.12], [0.001, 0.001, 0.001], "not decided"),
        # One run has no interval.
        ([0.5], [0.001], "not decided"),
        ([], [0.001], "no figure"),
    ],
)
def test_a_statement_needs_an_interval_on_one_side(
    own: list[float], reno: list[float], said: str
) -> None:
    assert answer(own, reno).said == said


def test_less_can_be_worse() -> None:
    assert answer([0.1, 0.11, 0.09], [0.9, 0.91, 0.92], "newcomer").said == "finding"
    assert answer([0.9, 0.91, 0.92], [0.1, 0.11, 0.09], "newcomer").said == "within"
    assert answer([0.0, 0.0, 0.0], [0.9, 0.91, 0.92], "newcomer").size == 1000.0


def test_reports_never_say_that_a_law_passes(evaluated: Callable[[str], Evaluation]) -> None:
    made = evaluated("bbr")
    text = f"{page(made)} {json.dumps(made.to_json())}"
    assert not re.search(r"\bpass(es|ed)?\b|\bfail(s|ed)\b the|complian", text)
    for criterion in made.criteria:
        assert f'id="s{criterion.section}"' in page(made)


def test_a_report_has_every_criterion_with_its_answer(tmp_path: Path, lfn: Lfn) -> None:
    out = tmp_path / "e"
    arguments = ["evaluate", "reno", "--quick", "--section", "7", "--out", str(out)]
    printed = lfn(*arguments)
    made = json.loads((out / "evaluation.json").read_text())
    assert made["criteria"][0]["section"] == "7.1"
    for one in made["criteria"]:
        assert one["answers"] or one["not_applicable"] or one["not_covered"]
        assert f"\n{one['section']} " in printed
        for found in one["answers"]:
            assert found["said"] != "no figure", found
            assert {"reno", "cubic"} == set(found["figures"])
            assert all(math.isfinite(value["mean"]) for value in found["figures"].values())
    html = (out / "report.html").read_text()
    assert "Not covered: senders and routers that do not comply, and attackers." in html
    # Again, from the store, and the same bytes.
    kept = {file.name for file in (out / "runs").iterdir()}
    assert call(arguments) == 0
    assert json.loads((out / "evaluation.json").read_text()) == made
    assert {file.name for file in (out / "runs").iterdir()} == kept


BROKEN = """
from lfnlab import Law


class Mine(Law):
    def __init__(self):
        self.acks = 0

    def on_ack(self, n, ack):
        self.acks += 1
        if ack.srtt_s > 0.3:
            raise ValueError("no such path")
        self.cwnd += n / self.cwnd

    def on_loss(self, loss):
        self.ssthresh = max(self.cwnd / 2, 2)
"""


def test_a_class_that_raises_in_the_middle_costs_that_figure_alone(
    tmp_path: Path, lfn: Lfn
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BROKEN)
    made = evaluate(f"{file}:Mine", sections=["6.3", "7.5"], quick=True, out=tmp_path / "out")
    wired, far = (made.of(criterion) for criterion in made.criteria)
    assert [one.said for one in wired] == ["within"]
    assert [one.said for one in far] == ["no figure"]
    assert "no such path" in far[0].words
    assert far[0].figure("reno").n > 0
    assert "no such path" in page(made)
    arguments = ["--section", "7.5", "--quick", "--out", str(tmp_path / "again")]
    assert re.search(
        r"(?m)^7\.5 no figure: .*no such path", lfn("evaluate", f"{file}:Mine", *arguments, code=1)
    )


def test_a_law_of_routers_has_its_router_and_says_so(tmp_path: Path) -> None:
    made = evaluate("evcp", sections=["6.3", "7.1"], quick=True, out=tmp_path)
    assert any("needs routers of VCP" in note for note in made.notes())
    routers = {
        run.factors["law"]: run.scenario.link.router
        for run in made.results.runs
        if run.scenario.link
    }
    assert routers["evcp"] is not None
    assert routers["evcp"].kind == "vcp"
    assert routers["reno"] is None
    (marks,) = (one for one in made.answers if one.question.name == "marks")
    assert marks.said == "no figure"
    assert "the same bits of the IP header" in marks.words


@pytest.mark.parametrize(("law", "label"), [("udt", "udt"), ("udt/cubic", "udt/cubic")])
def test_udt_laws_run_over_udt(law: str, label: str, tmp_path: Path) -> None:
    made = evaluate(law, sections=["6.3", "5.1.5"], quick=True, out=tmp_path)
    assert made.law.label == label
    assert [one.said for one in made.answers if one.question.name == "wired"] == ["within"]
    flows = [run.summary["flows"][0] for run in made.results.runs if run.factors["law"] == label]
    assert {(flow["law"], flow["transport"]) for flow in flows} == {(label, "udt")}
    short = [one for one in made.answers if one.question.name == "short"]
    assert [one.said for one in short] == ["no figure"]
    assert any("over UDT" in note for note in made.notes())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cubik"], 'no law "cubik"; did you mean "cubic"?'),
        (["cubic:lunix"], "lunix"),
        (["./none.py:Mine"], "none.py"),
        (["reno", "--section", "8"], '--section: "8"; allowed: 5.1.1, '),
        (["reno", "--section", "5.3.1"], "nothing to run: 5.3.1 has no figures; not applicable"),
        (["bbr", "--beside", "cubic"], "cubic is a comparator already"),
        (["bbr", "--beside", "vegas,vegas"], "vegas is a comparator already"),
        (["bbr", "--beside", "vegass"], 'did you mean "vegas"'),
        (["bbr", "--jobs", "0"], "jobs"),
        ([""], "law"),
        (["udt/udt/cubic"], "udt/cubic"),
    ],
)
def test_bad_requests_are_one_line(
    arguments: list[str], said: str, tmp_path: Path, lfn: Lfn
) -> None:
    assert said in lfn.refuses("evaluate", *arguments, "--quick", "--out", tmp_path / "out")


def test_a_header_that_does_not_compile_is_refused_with_the_compilers_line(
    tmp_path: Path, lfn: Lfn
) -> None:
    text = (ROOT / "laws" / "reno.h").read_text().replace("half &= ~(", "half &= ~;(")
    (tmp_path / "mine.h").write_text(text)
    assert call(["evaluate", str(tmp_path / "mine.h"), "--quick"]) == 2
    assert re.search(r"mine\.h does not compile: .*mine\.h:\d+:\d+: error: ", lfn.said().err)


def test_a_header_in_a_file_is_evaluated_as_the_registered_law(tmp_path: Path) -> None:
    file = tmp_path / "mine.h"
    file.write_text((ROOT / "laws" / "reno.h").read_text())
    made = evaluate(str(file), sections=["7.4"], quick=True, out=tmp_path / "out")
    (thin,) = made.answers
    assert thin.values["mine.h (prototype)"] == thin.values["reno"]
    assert thin.said != "no figure"


def test_a_directory_that_is_no_store_is_left_alone(tmp_path: Path, lfn: Lfn) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert "neither empty nor a results directory" in lfn.err(
        "evaluate", "reno", "--quick", "--out", tmp_path, code=3
    )
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_unknown_law_is_a_law_error() -> None:
    with pytest.raises(LabError, match="renno"):
        subject("renno")
