"""Paths of the test cases, and the changes on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lfnlab.scenario.builder import Scenario, dumbbell
from lfnlab.scenario.elements import Application, Change, Policer
from lfnlab.suite.bbr.seen import CRUISE, DOWN, DRAIN, REFILL, RTT_S, UP, Seen

LAW = "bbr3"
BUSY_BPS = 97e6
"""Payload that an application writes; the link carries 95.6 Mbit/s of it."""


def path(
    rate: str = "100Mbit/s",
    buffer: str = "4bdp",
    duration: str = "8s",
    sample: str = "1ms",
    rtt: str = "40ms",
    **settings: Any,
) -> Scenario:
    """A dumbbell with one flow."""
    return dumbbell(rate=rate, rtt=rtt, buffer=buffer, duration=duration, sample=sample).flow(
        LAW, **settings
    )


def at(t_s: float) -> str:
    """A time of a scenario."""
    return f"{t_s:.6f}s"


def changed(path: Scenario, *changes: Change) -> Scenario:
    """A path with changes, in order of time."""
    return path.with_changes(*sorted(changes, key=lambda change: float(str(change.at)[:-1])))


def begins(seen: Seen, state: int, after_s: float = 0.0, number: int = 0) -> float:
    """When a stay in a state begins; the end of the run if there is none."""
    found = [
        phase for phase in seen.phases if phase.state == state and seen.t_s[phase.start] > after_s
    ]
    i = found[number].start if number < len(found) else len(seen.t_s) - 2
    return float(seen.t_s[i])


def limited(**more: Any) -> Scenario:
    """A flow that its application limits: 400 packets fit the send buffer, less than 2 BDP."""
    return path(send_buffer="400 packets", **more)


def lossy(from_s: float, to_s: float, probability: float) -> tuple[Change, Change]:
    """Losses between two times."""
    return (
        Change(at=at(from_s), link="forward", loss=probability),
        Change(at=at(to_s), link="forward", loss=0.0),
    )


def slower_drain(scout: Seen, path: Scenario) -> Scenario:
    """The link has less than half of its rate from the beginning of Drain."""
    return changed(
        path, Change(at=at(begins(scout, DRAIN) + 0.001), link="forward", rate="45Mbit/s")
    )


def losses_to_probe_bw(path: Scenario) -> Scenario:
    """An application-limited flow leaves Startup at losses only."""
    return path.with_changes(*lossy(1.0, 1.3, 0.05))


def loss_in_limited_up(scout: Seen, path: Scenario) -> Scenario:
    """Losses in UP."""
    up_s = begins(scout, UP, 2.0)
    return path.with_changes(*lossy(up_s + 0.2, up_s + 0.4, 0.1))


def later_minimum() -> Scenario:
    """A path whose RTT falls by 1 ms after 2 s, so that no probe of the RTT comes before 7 s."""
    return path().with_changes(
        Change(at="0s", link="forward", delay="1ms"), Change(at="2s", link="forward", delay="0ms")
    )


def slower_down(scout: Seen, path: Scenario) -> Scenario:
    """The link has a tenth less from the beginning of DOWN."""
    down_s = begins(scout, DOWN, begins(scout, UP))
    return path.with_changes(Change(at=at(down_s + 0.001), link="forward", rate="90Mbit/s"))


def busy(duration: str) -> Scenario:
    """An application that writes a little more than the link carries."""
    return path(duration=duration, application=Application(rate=f"{BUSY_BPS:.0f}bit/s"))


def pausing(path: Scenario, on_s: float, off_s: float) -> Scenario:
    """It writes for a while, and pauses."""
    application = Application(rate=f"{BUSY_BPS:.0f}bit/s", on=at(on_s), off=at(off_s))
    return replace(path, flows=tuple(replace(flow, application=application) for flow in path.flows))


def written_until(seen: Seen, i: int) -> float:
    """For how long the application wrote all that was sent until a sample."""
    bits = seen.delivered[i] * 8 + seen.inflight[i] * seen.segment_bits
    return float(bits / BUSY_BPS)


def idle(scout: Seen, path: Scenario) -> Scenario:
    """Nothing to send from 3 s on, for 6 s."""
    on_s = written_until(scout, scout.at(3.0))
    return pausing(path, on_s, 9.0 - on_s)


def pause_in_refill(scout: Seen, path: Scenario) -> Scenario:
    """Nothing to send from the beginning of the first REFILL on, for a round trip and a half."""
    refill_s = begins(scout, REFILL)
    on_s = written_until(scout, scout.at(refill_s))
    return pausing(path, on_s, refill_s + 1.5 * RTT_S - on_s)


def policed() -> Scenario:
    """100 Mbit/s and a burst of a BDP, on a link of 1 Gbit/s that has room for all."""
    made = path(rate="1Gbit/s", duration="40s")
    policer = Policer(rate="100Mbit/s", burst="500kB")
    assert made.link is not None
    return replace(made, link=replace(made.link, policer=policer))


def gated(from_s: float, to_s: float) -> list[Change]:
    """ACKs that arrive in bursts: their link is down for 18 of every 20 ms."""
    changes = []
    for i in range(int((to_s - from_s) / 0.02)):
        t_s = from_s + 0.02 * i
        changes.append(Change(at=at(t_s), link="reverse", down=True))
        changes.append(Change(at=at(t_s + 0.018), link="reverse", down=False))
    return changes


def gate_in_cruise(scout: Seen, path: Scenario) -> Scenario:
    """Aggregation from CRUISE on."""
    cruise_s = begins(scout, CRUISE, 1.0)
    return changed(path, *gated(cruise_s + 0.01, cruise_s + 1.5))


def faster(scout: Seen, path: Scenario) -> Scenario:
    """Ten times the rate."""
    return path.with_changes(Change(at="5s", link="forward", rate="100Mbit/s"))


def slower(scout: Seen, path: Scenario) -> Scenario:
    """A tenth of the rate."""
    return path.with_changes(Change(at="5s", link="forward", rate="10Mbit/s"))


def overtaken(scout: Seen, path: Scenario) -> Scenario:
    """Packets of 3 ms arrive 15 ms late, and others overtake them."""
    up_s = begins(scout, UP, 1.0) + 2 * RTT_S
    return path.with_changes(
        Change(at=at(up_s), link="forward", delay="15ms"),
        Change(at=at(up_s + 0.003), link="forward", delay="0ms"),
    )


def held(scout: Seen, path: Scenario) -> Scenario:
    """The link holds everything for 600 ms."""
    up_s = begins(scout, UP, 1.0) + 2 * RTT_S
    return path.with_changes(
        Change(at=at(up_s), link="forward", down=True),
        Change(at=at(up_s + 0.6), link="forward", down=False),
    )


def loss_in_up(scout: Seen, path: Scenario) -> Scenario:
    """Losses in the second stay in UP."""
    up_s = begins(scout, UP, begins(scout, DOWN, 2.0))
    return path.with_changes(*lossy(up_s + 0.001, up_s + 0.06, 0.1))
