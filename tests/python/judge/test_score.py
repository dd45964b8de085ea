"""Does a score tell laws apart as they are, and say the same whenever it is made?"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from lfnlab import Ack, Change, JudgePath, LabError, Law, Loss, Score, dumbbell, score
from lfnlab.errors import LawError, ScenarioError, UsageError
from lfnlab.evaluate.scenarios import link
from lfnlab.judge import read, scores
from lfnlab.scenario.elements import GilbertElliott

THIN = JudgePath("10Mbit/s", "20ms", "1bdp")
WIDE = JudgePath("20Mbit/s", "50ms", "0.5bdp", name="wide")
PATHS = (THIN, WIDE)
AXES = ("goodput-0-0", "queue-p95", "goodput-1e-3-0", "share-cubic", "refill-outage", "newcomer")


class Hopeless(Law):
    """Two packets a round trip, 0.5 to 1.2 Mbit/s on these paths."""

    def on_sample(self, ack: Ack) -> None:
        self.cwnd = self.ssthresh = 2

    def on_ack(self, n: float, ack: Ack) -> None:
        pass

    def on_loss(self, loss: Loss) -> None:
        self.ssthresh = 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scores")


@pytest.fixture(scope="module")
def made(store: Path) -> Score:
    return score("cubic", paths=PATHS, against=["bbr3"], seeds=3, axes=AXES, out=store)


def test_a_law_beside_itself_has_half(made: Score) -> None:
    share = made["share-cubic"].median
    assert share.low < 0.5 < share.high


def test_a_law_does_not_differ_from_itself(made: Score) -> None:
    rows = made.compare(made)
    assert {row.said for row in (*rows.rows, *rows.by_path)} == {"equal"}
    assert {row.difference.mean for row in rows.by_path} == {0.0}


def test_order_changes_nothing(made: Score, store: Path) -> None:
    other, own = scores(["bbr3", "cubic"], paths=PATHS[::-1], seeds=[3, 1, 2], axes=AXES, out=store)
    assert own.frame().equals(made.frame())
    assert other.frame().equals(made.against[0].frame())
    assert str(replace(own, against=(other,))) == str(made)


def test_the_same_runs_without_a_store_give_the_same_bytes(made: Score) -> None:
    again = score("cubic", paths=PATHS, seeds=3, axes=AXES)
    assert json.dumps(again.to_json()) == json.dumps(replace(made, against=()).to_json())


def test_what_is_known_of_two_laws(made: Score) -> None:
    said = {row.axis.name: row.said for row in made.compare(made.against[0]).rows}
    # BBR holds its rate at a random loss of 1e-3; CUBIC does not. Signs are those of each axis.
    assert said["goodput-1e-3-0"] == "worse"
    assert made["goodput-1e-3-0"].median.mean < made.against[0]["goodput-1e-3-0"].median.mean


def test_a_hopeless_law_is_worst_on_goodput(made: Score, store: Path) -> None:
    hopeless = score(Hopeless, paths=PATHS, seeds=3, axes=["goodput-0-0", "newcomer"], out=store)
    for path in made.paths:
        own = hopeless.on("goodput-0-0", path).mean
        assert own < 0.13
        assert all(own < one.on("goodput-0-0", path).mean for one in (made, *made.against))
    assert hopeless["goodput-0-0"].worst_path == "wide"


def test_a_frame_has_every_value(made: Score) -> None:
    frame = made.frame()
    assert frame.height == len(PATHS) * len(AXES) * 3
    assert frame["value"].null_count() == 0
    wide = frame.filter(path="wide", axis="queue-p95")["value"]
    assert wide.max() <= 0.026, "half of an RTT of 50 ms is the whole buffer"


def test_refill_is_after_the_outage_and_within_the_run(made: Score) -> None:
    values = made.frame().filter(axis="refill-outage")["value"]
    assert values.min() > 0
    assert values.max() <= 20.0


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"law": "cubik"}, LawError, "cubic"),
        ({"against": ["cubic"]}, LawError, "cubic is named twice"),
        ({"paths": []}, ScenarioError, "paths: none"),
        ({"paths": [THIN, THIN]}, ScenarioError, "two paths are called"),
        ({"paths": [JudgePath("10", "20ms", "1bdp")]}, ScenarioError, "link.rate"),
        ({"paths": ["thin"]}, ScenarioError, "allowed: a JudgePath or a Scenario"),
        ({"paths": {"thin": "thin"}}, ScenarioError, "allowed: a JudgePath or a Scenario"),
        ({"paths": {3: THIN}}, ScenarioError, "paths: the name 3; allowed: a text"),
        ({"seeds": 2.5}, ScenarioError, "seeds: 2.5; allowed: a whole number"),
        ({"axes": []}, UsageError, "axes: none; allowed: goodput-0-0"),
        ({"seeds": 0}, ScenarioError, "seeds"),
        ({"seeds": [1, 1]}, ScenarioError, "seeds"),
        ({"axes": ["speed"]}, UsageError, '"speed"; allowed: goodput-0-0'),
        ({"objective": "v0"}, UsageError, '"v0"; allowed: v1'),
    ],
)
def test_errors_name_what_is_wrong(
    settings: dict[str, object], kind: type[LabError], said: str
) -> None:
    with pytest.raises(kind) as error:
        score(**({"law": "cubic", "paths": [THIN], "seeds": 1} | settings))  # type: ignore[arg-type]
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_path_with_flows_is_no_path() -> None:
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp").flow("reno")
    with pytest.raises(ScenarioError, match="without flows"):
        score("cubic", paths=[path], seeds=1)


def test_a_path_that_cannot_be_is_refused_by_its_name() -> None:
    paths = [JudgePath("5Mbit", "20ms", "1bdp"), JudgePath("5Mbit/s", "20ms", "1bdp")]
    with pytest.raises(ScenarioError, match=r'path "5Mbit 20ms 1bdp"') as error:
        score("cubic", paths=paths, axes=["cov"], seeds=1)
    assert error.value.key == "link.rate"


def test_a_probe_that_a_path_cannot_have_says_why() -> None:
    """Its own bursts of loss, and its own schedule, stay; what would need others has no value."""
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="10s")
    bursts = link(path, loss=GilbertElliott(p=1e-3, r=0.5))
    step = path.with_changes(Change(at="5s", link="forward", rate="5Mbit/s"))
    axes = ["goodput-0-0", "goodput-1e-3-0", "refill-loss"]
    made = score("reno", paths={"bursts": bursts, "step": step}, seeds=1, axes=axes)
    known = {(path, axis) for path, axis in made.frame().drop_nulls()["path", "axis"].iter_rows()}
    assert known == {("bursts", "goodput-0-0"), ("step", "goodput-0-0"), ("step", "goodput-1e-3-0")}
    assert made.missing == {
        ("goodput-1e-3-0", "bursts"): "link.loss: its own loss comes in bursts; "
        "no further loss can be added",
        ("refill-loss", "bursts"): "link.loss: its own loss comes in bursts; none can be put back",
        ("refill-loss", "step"): "schedule: it has a schedule of its own; none can be added",
    }


@pytest.mark.parametrize(
    ("law", "axis", "said"),
    [
        ("xcp", "goodput-dualpi2", "link.router: found beside the queue dualpi2, whose two"),
        ("vcp", "queue-codel", "flow[0].ecn: ECN under a law of VCP; allowed: one of both"),
        ("udt/cubic", "goodput-codel", "flow[0].ecn: UDT has nothing of that kind; allowed"),
    ],
)
def test_a_refusal_names_its_key(law: str, axis: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        score(law, paths=[THIN], seeds=1, axes=[axis])
    assert str(error.value).startswith(f"nothing to run: {said}")


def test_a_trace_of_a_constant_rate_is_that_rate(tmp_path: Path) -> None:
    """An opportunity a millisecond is 12 Mbit/s of packets of 1500 bytes."""
    file = tmp_path / "constant.trace"
    file.write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    rate = dumbbell(rate="12.112Mbit/s", rtt="20ms", buffer="20 packets")  # with 14 of framing
    paths = {"rate": rate, "trace": link(rate, rate=None, trace=str(file))}
    made = score("cubic", paths=paths, seeds=1, axes=["goodput-0-0", "refill-loss"])
    for axis in ("goodput-0-0", "refill-loss"):
        assert made.value(axis, "trace", 1) == pytest.approx(made.value(axis, "rate", 1), rel=0.02)
    a_packet = 12_000 / (12e6 * 30)
    assert made.value("goodput-0-0", "trace", 1) <= 1 + a_packet


def test_a_number_of_seeds_counts_from_one_whatever_seed_a_path_has() -> None:
    path = replace(dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp"), seed=7)
    made = score("cubic", paths={"seven": path}, seeds=2, axes=["cov"])
    assert made.seeds == (1, 2)
    assert made.frame()["value"].null_count() == 0


def test_a_law_that_raises_has_no_value_and_says_why() -> None:
    class Broken(Hopeless):
        def on_loss(self, loss: Loss) -> None:
            raise ArithmeticError("as it should")

    made = score("cubic", against=[Broken], paths=[THIN], seeds=1, axes=["goodput-1e-3-0"])
    assert "Broken (prototype) has no value of goodput-1e-3-0: " in str(made)
    assert "as it should" in str(made)


def test_scores_of_other_paths_are_not_compared(made: Score) -> None:
    with pytest.raises(UsageError, match="compare: paths"):
        made.compare(replace(made, paths=("wide",)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version = "v1"', "", "version: missing"),
        ("least_s = 40.0", "least_s = nan", "time.least_s: found nan"),
        ("warmup = 0.25", "warmup = 0.25\nend = 1", "time.end: unknown key"),
        ("background = 3", "background = 4", "background: found 4"),
        ("[0.4, 0.6]", "[0.6, 0.4]", "bounds.share-reno: found [0.6, 0.4]"),
        ('queues = ["codel"', 'queues = ["drop-tail"', 'marks.queues: "drop-tail"'),
        ("{ loss = 0.0, background = 0 },", "", "one of them without loss and background"),
        ('beside = ["reno", "cubic"]', 'beside = ["renno"]', 'share.beside: "renno"; no law'),
        ('law = "cubic"', 'law = "cubik"', 'short.law: "cubik"; no law "cubik"'),
        ('buffer = "2bdp"', 'buffer = "2bpd"', 'marks.buffer: "bpd"'),
        ("share-reno = [0.4", "share-renno = [0.4", 'bounds.share-renno: no axis "share-renno"'),
    ],
)
def test_a_wrong_objective_names_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (files("lfnlab.judge") / "objectives" / "v1.toml").read_text()
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(ScenarioError) as error:
        read(file)
    assert str(error.value).startswith(str(file))
    assert said in str(error.value)


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    """An objective that was published never changes: a score names its version."""
    text = (files("lfnlab.judge") / "objectives" / "v1.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(f"# mine\n{text}")
    assert read(file).hash == read("v1").hash == "603468b68696"
    file.write_text(text.replace("ratio = 4.0", "ratio = 5.0"))
    assert read(file).hash != read("v1").hash
