"""Is a steered sender the sender of a scenario, and does it say what it refuses?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lfnlab import (
    Ack,
    Choice,
    Controller,
    ControllerAck,
    ControllerConfig,
    Law,
    LawError,
    Loss,
    Range,
    Scenario,
    ScenarioError,
    dumbbell,
    execute,
)
from lfnlab.env import OBSERVED, Sender
from lfnlab.errors import UsageError
from lfnlab.evaluate.scenarios import link

if TYPE_CHECKING:
    from lfnlab.results.summary import Summary

PATH = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="1bdp", duration="3s", sample="off")
WINDOW, RATE_BPS = 30, 8e6


class Held(Law):
    """A window that ACKs leave as it is."""

    def __init__(self) -> None:
        self.cwnd = self.ssthresh = WINDOW

    def on_sample(self, ack: Ack) -> None:
        self.cwnd = self.ssthresh = WINDOW

    def on_ack(self, n: float, ack: Ack) -> None:
        pass

    def on_loss(self, loss: Loss) -> None:
        self.ssthresh = WINDOW


class Paced(Controller):
    """A pacing rate that ACKs and losses leave as it is."""

    def __init__(self, config: ControllerConfig) -> None:
        self.window_bytes = 2**26 * config.packet_bytes
        self.pacing_bytes_per_s = RATE_BPS / 8

    def ack(self, ack: ControllerAck) -> None:
        self.pacing_bytes_per_s = RATE_BPS / 8


def run(scenario: Scenario, out: Path) -> Summary:
    return execute(scenario, out=out).runs[0].summary


def episode(sender: Sender, actions: Sequence[float], seed: int = 1) -> np.ndarray:
    sender.reset(seed=seed)
    rows, at = [], 0
    while True:
        seen = sender.step(np.full(sender.count, actions[at % len(actions)]))
        rows.append(seen.array)
        at += 1
        if seen.over.all():
            return np.array(rows)


def test_a_constant_window_is_that_of_a_scenario(tmp_path: Path) -> None:
    """The handshake ends within the first step; from then on both senders have the window."""
    sender = Sender(PATH, step="7ms")
    episode(sender, [float(WINDOW)])
    ours = sender.finish()
    theirs = run(PATH.flow(Held), tmp_path)
    own, other = ours["flows"][0], theirs["flows"][0]  # type: ignore[index]
    for key in ("delivered_bytes", "sent", "goodput_bps", "srtt_s", "min_rtt_s", "retransmits"):
        assert own[key] == other[key], key  # type: ignore[literal-required]
    assert ours["hash"] == theirs["hash"]


def test_a_constant_rate_under_loss_is_that_of_a_scenario(tmp_path: Path) -> None:
    path = link(PATH, loss=0.01)
    sender = Sender(path, step="10ms", control="rate")
    sender.reset(seed=1)
    seed = sender.episode_seeds[0]
    while not sender.step([RATE_BPS]).over.all():
        pass
    ours, theirs = sender.finish(), run(path.flow(Paced).with_seed(seed), tmp_path)
    assert ours["flows"][0]["retransmits"] > 0
    own, other = ours["flows"][0], theirs["flows"][0]  # type: ignore[index]
    for key in ("delivered_bytes", "sent", "goodput_bps", "retransmits"):
        assert own[key] == other[key], key  # type: ignore[literal-required]
    assert ours["hash"] == theirs["hash"]


@pytest.mark.parametrize("step", ["10ms", "0.5rtt", "20acks", "1s"])
def test_the_length_of_steps_changes_no_constant_action(step: str) -> None:
    sender = Sender(PATH, step=step)
    episode(sender, [float(WINDOW)])
    whole = Sender(PATH, step="3s")
    episode(whole, [float(WINDOW)])
    assert sender.finish()["hash"] == whole.finish()["hash"]


def test_the_same_actions_give_the_same_bytes_on_any_number_of_threads() -> None:
    path = link(PATH, loss=1e-3).with_background(1)
    draw = {
        "link.rate": Range("10Mbit/s", "40Mbit/s", "log"),
        "flow[0].rtt": Choice(["10ms", "30ms"]),
    }
    actions = [20.0, 60.0, 5.0]
    made = [
        episode(Sender(path, draw=draw, count=3, step="20ms", threads=threads), actions)
        for threads in (1, 1, 2)
    ]
    assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()
    other = episode(Sender(path, draw=draw, count=3, step="20ms"), actions, seed=2)
    assert other.tobytes() != made[0].tobytes()


def test_environments_and_episodes_differ_and_a_seed_brings_them_back() -> None:
    draw = {"link.rate": Range("10Mbit/s", "40Mbit/s")}
    sender = Sender(PATH, draw=draw, count=4)
    drawn = []
    for seed in (5, None, 5):
        sender.reset(seed=seed)
        drawn.append([point["link.rate"] for point in sender.points])
    assert len({*drawn[0], *drawn[1]}) == 8
    assert drawn[0] == drawn[2]


def test_an_environment_does_not_depend_on_its_neighbours() -> None:
    many = Sender(PATH, draw={"link.rate": Range("10Mbit/s", "40Mbit/s")}, count=3)
    one = Sender(PATH, draw={"link.rate": Range("10Mbit/s", "40Mbit/s")}, count=1)
    assert np.array_equal(episode(many, [30.0])[:, :1], episode(one, [30.0]))


def test_observations_add_up() -> None:
    sender = Sender(PATH, step="10ms")
    rows = episode(sender, [80.0, 10.0])[:, 0]
    names = list(OBSERVED)
    total = {name: rows[:, names.index(name)].sum() for name in names}
    flow = sender.finish()["flows"][0]
    assert total["sent"] == flow["sent"]
    assert total["retransmits"] == flow["retransmits"]
    assert total["delivered"] * 1448 >= flow["delivered_bytes"]
    assert total["step_s"] == pytest.approx(3.0)
    rtt = rows[:, names.index("srtt_s")]
    assert rtt[-1] >= rows[-1, names.index("min_rtt_s")] >= 0.02
    inflight, cwnd = (rows[:, names.index(name)] for name in ("inflight", "cwnd"))
    assert np.all(inflight[cwnd == 80.0][5:] <= 80.0)


def test_marks_are_seen() -> None:
    assert PATH.link is not None
    assert PATH.link.queue is not None
    queue = replace(PATH.link.queue, kind="codel", size="4bdp", ecn=True)
    sender = Sender(link(PATH, queue=queue), ecn=True, step="100ms")
    rows = episode(sender, [150.0])
    assert rows[:, 0, list(OBSERVED).index("marks")].sum() > 10


def test_a_step_of_acks_ends_with_them() -> None:
    sender = Sender(PATH, step="20acks")
    sender.reset(seed=1)
    sender.step([20.0])
    seen = sender.step([20.0])
    assert 20 <= seen["delivered"][0] <= 22, "an ACK tells at most two segments"


def test_cross_traffic_takes_its_part() -> None:
    sender = Sender(PATH.flow("reno"), step="100ms")
    episode(sender, [1.0])
    rates = [flow["goodput_bps"] for flow in sender.finish()["flows"]]
    assert rates[0] > 15e6 > 1e6 > rates[1] > 1e5


def test_the_mask_leaves_the_others_where_they_are() -> None:
    sender = Sender(PATH, count=2, step="100ms")
    sender.reset(seed=1)
    sender.step([20.0, 20.0], only=[True, False])
    seen = sender.step([20.0, 20.0])
    assert seen["time_s"].tolist() == pytest.approx([0.2, 0.1])


def test_a_reset_of_one_says_of_the_others_whether_they_are_over() -> None:
    sender = Sender(PATH, count=3, step="3s")
    assert sender.reset(seed=1, only=[True, True, False]).over.tolist() == [False, False, True]
    windows = [20.0] * 3
    assert sender.step(windows, only=[True, False, False]).over.tolist() == [True, False, True]
    assert sender.reset(only=[False, False, True]).over.tolist() == [True, False, False]
    sender.finish(1)
    assert sender.reset(only=[True, False, False]).over.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ([20.0], r"cwnd: an array of shape (1); allowed: (2,)"),
        ([[20.0, 20.0]], r"cwnd: an array of shape (1, 2); allowed: (2,)"),
        ([20.0, float("nan")], "cwnd: NaN for environment 1; allowed: from 1 to"),
        ([-1.0, 20.0], "cwnd: -1 for environment 0"),
        ([float("inf"), 20.0], "cwnd: inf for environment 0"),
        ([0.5, 20.0], "cwnd: 0.5 for environment 0"),
    ],
)
def test_a_wrong_action_is_refused_and_changes_nothing(action: list[float], said: str) -> None:
    sender = Sender(PATH, count=2)
    sender.reset(seed=1)
    with pytest.raises(UsageError) as error:
        sender.step(action)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert sender.step([20.0, 20.0])["time_s"].tolist() == pytest.approx([0.01, 0.01])


def test_a_wrong_rate_and_both_are_refused() -> None:
    rate = Sender(PATH, control="rate")
    rate.reset(seed=1)
    with pytest.raises(UsageError, match="rate: 0 for environment 0"):
        rate.step([0.0])
    both = Sender(PATH, control="both")
    both.reset(seed=1)
    with pytest.raises(UsageError, match=r"allowed: \(1, 2\)"):
        both.step([20.0])
    assert both.step([[20.0, 1e6]])["pacing_bps"][0] == 1e6


def test_a_step_needs_an_episode() -> None:
    sender = Sender(PATH, step="2s")
    with pytest.raises(UsageError, match="environment 0 has not begun"):
        sender.step([20.0])
    with pytest.raises(UsageError, match="environment 0 has not begun"):
        sender.finish()
    sender.reset(seed=1)
    assert not sender.step([20.0]).over[0]
    assert sender.step([20.0]).over[0]
    with pytest.raises(UsageError, match="environment 0 is over, at 3 s; call reset first"):
        sender.step([20.0])
    sender.reset()
    sender.step([20.0])


def test_threads_that_share_environments_do_not_wait_for_each_other_for_ever() -> None:
    sender = Sender(replace(PATH, duration="400s"), step="20s", count=8)
    sender.reset(seed=1)
    windows, refused = np.full(sender.count, 50.0), []

    def advance() -> None:
        for _ in range(10):
            try:
                sender.step(windows)
            except UsageError as error:
                refused.append(str(error))

    threads = [Thread(target=advance, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all("another thread" in said or "is over" in said for said in refused)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"count": 0}, "count: 0"),
        ({"threads": True}, "threads: True"),
        ({"step": "fast"}, "step: 'fast'"),
        ({"step": "0s"}, "step: '0s'"),
        ({"step": "1.5acks"}, "step: '1.5acks'"),
        ({"control": "window"}, 'control: "window"'),
        ({"draw": {"link.rate": "10Mbit/s"}}, "draw: link.rate"),
        ({"draw": {"flow[*].law": Choice(["cubic", "htcp"])}}, "draw: flow[*].law"),
        ({"draw": {"flow[0].parallel": Choice([2])}}, "draw: flow[0].parallel"),
        ({"draw": {"seed": Choice([1, 2])}}, "draw: seed: each episode has its own"),
        ({"path": "path.toml"}, "path: 'path.toml'; allowed: a Scenario"),
        ({"path": PATH.flow("steered")}, 'path: a flow of "steered"'),
        ({"parallel": 2}, "parallel: the steered flow is one TCP connection"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        Sender(**({"path": PATH} | settings))  # type: ignore[arg-type]
    assert said in str(error.value)


def test_a_path_that_cannot_be_is_refused_at_its_reset() -> None:
    sender = Sender(PATH, draw={"link.speed": Choice([1])})
    with pytest.raises(ScenarioError, match=r"link\.speed"):
        sender.reset(seed=1)
    with pytest.raises(LawError, match=r"Held@.*; allowed as cross traffic: laws of the registry"):
        Sender(PATH.flow(Held)).reset(seed=1)
    for seed in (-1, 1.5, 2**63):
        with pytest.raises(UsageError, match="seed"):
            sender.reset(seed=seed)  # type: ignore[arg-type]
