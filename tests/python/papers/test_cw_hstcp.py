"""CW-HSTCP's claim C6 in packets: the same window whatever the RTT.

That it holds exactly where losses come together is tested on the law itself, in
``crates/law/tests/model/cw_hstcp.rs``.
"""

from __future__ import annotations

from pathlib import Path

from lfnlab import Scenario
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute


def paper(law: str) -> str:
    """The paper's dumbbell with its background, at a fifth of the rate."""
    text = """
schema = 1
compat = "ns2"
duration = "320s"
warmup = "20s"
[link]
rate = "200Mbit/s"
delay = "20ms"
queue.size = "500 packets"
[background]
level = 1
long_flows = 0
"""
    flows = [(law, 80), (law, 140), (law, 200), *[("reno", 100)] * 4]
    for name, rtt_ms in flows:
        text += f'[[flow]]\nlaw = "{name}"\nrtt = "{rtt_ms}ms"\n'
        text += 'start = "uniform(0s, 20s)"\npacket = "1000B"\n'
    return text


def windows(law: str, out: Path) -> list[float]:
    """Mean window of each of the three flows, segments."""
    (run,) = execute([Case(Scenario.from_toml(paper(law), "c6.toml"))], out=out, jobs=1).runs
    return [flow["mean_cwnd_segments"] for flow in run.summary["flows"][:3]]


def test_windows_are_as_near_as_the_papers(tmp_path: Path) -> None:
    # Its shares of 32.22, 26.61, 19.36 % (table 3) are windows of 1 : 1.44 : 1.50.
    found = windows("cw-hstcp", tmp_path)
    assert max(found) < 1.5 * min(found), found
    short, _, long = windows("hstcp:ns2", tmp_path)
    assert short > 4 * long
