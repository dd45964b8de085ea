"""Whole stacks in scenarios: their rows, their place beside other flows, and what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lfnlab import LabError, Scenario, compare, dumbbell
from lfnlab.control_laws import foreign, stacks

SOURCE = Path(__file__).parent / "window.c"
PATH = dumbbell(rate="10Mbit/s", rtt="40ms", buffer="50 packets", duration="4s", sample="100ms")


def made(folder: Path, old: str = "", new: str = "") -> Path:
    """The stack of a fixed window of 20 packets of 1000 bytes, with other words in it."""
    text = SOURCE.read_text()
    assert not old or text.count(old) == 1
    source, built = folder / "window.c", folder / "window.so"
    source.write_text(text.replace(old, new) if old else text)
    command = ["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra"]
    subprocess.run([*command, f"-I{foreign.SKELETONS}", "-o", built, source], check=True)
    return built


def test_a_window_has_the_goodput_of_its_round_trip(tmp_path: Path) -> None:
    """20 packets of 1000 bytes in 40 ms and the bits of a packet and of its answer."""
    run = compare([str(made(tmp_path))], PATH, out=tmp_path / "out").runs[0]
    (flow,) = run.summary["flows"]
    rtt_s = 0.04 + (1054 + 54) * 8 / 10e6
    assert flow["goodput_bps"] == pytest.approx(20 * 8000 / rtt_s, rel=0.02)
    assert (flow["transport"], flow["law"]) == ("stack", "window (prototype)")
    assert flow["mean_cwnd_segments"] == pytest.approx(20)
    assert flow["srtt_s"] is None
    rows = run.table("flows")
    assert rows["cwnd_seg"].to_list() == [20.0] * len(rows)
    assert rows["delivered_bytes"].is_sorted()
    assert rows["delivered_bytes"][-1] > 1.6e6
    text = (run.path / "scenario.toml").read_text()
    assert re.search(r'law = "window@[0-9a-f]{12}"', text)
    assert Scenario.from_toml(text).to_toml() == text


def test_it_shares_a_link_with_tcp_and_ends_by_its_size(tmp_path: Path) -> None:
    law = str(made(tmp_path))
    scenario = PATH.flow("cubic").flow(law, size="50kB", start="1s")
    run = compare(["reno"], scenario, out=tmp_path / "out").runs[0]
    tcp, stack = (one for one in run.summary["flows"] if one["law"] != "reno")
    assert tcp["goodput_bps"] > 2e6
    assert stack["size_bytes"] == stack["delivered_bytes"] == 50_000
    assert stack["ended_s"] == pytest.approx(1 + stack["completion_s"])
    # No sooner than its window allows.
    assert stack["completion_s"] > 50 / 20 * 0.04


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("LFN_STACK_VERSION,", "7,", "version 7; controller.h, version 1, or stack.h, version 1"),
        (".forget = forget,", "", "a function is NULL"),
        ('"window"', '"a b"', 'name "a b"; allowed'),
        (": DATA + 40;", ": 1501;", "a datagram of 1501 bytes, ECN 0; allowed: 1 to 1500 bytes"),
        ("datagram->ecn = 0", "datagram->ecn = 4", "ECN 4; allowed: 1 to 1500 bytes, ECN 0 to 3"),
        (
            "< DATA + 40",
            "< 9000",
            "create at 0 s: packets of 1500 bytes; the stack cannot have them",
        ),
    ],
)
def test_a_wrong_stack_ends_its_run(tmp_path: Path, old: str, new: str, wrong: str) -> None:
    with pytest.raises(LabError, match=re.escape(wrong)):
        compare([str(made(tmp_path, old, new))], PATH, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ('transport = "tcp"', "is a whole stack; allowed: a law, or transport"),
        ("ecn = true", "a whole stack has nothing of that kind"),
        ('receive_window = "9 packets"', "a whole stack has its own"),
    ],
)
def test_keys_of_tcp_are_refused(tmp_path: Path, settings: str, wrong: str) -> None:
    text = PATH.flow(str(made(tmp_path))).to_toml().replace("{ law", f"{{ {settings}, law")
    with pytest.raises(LabError, match=re.escape(wrong)):
        Scenario.from_toml(text)


def test_a_law_is_no_stack() -> None:
    text = PATH.flow("cubic").to_toml().replace("{ law", '{ transport = "stack", law')
    with pytest.raises(LabError, match="cubic is no whole stack; allowed: such as"):
        Scenario.from_toml(text)


def test_whole_stacks_that_are_built_fill_a_link(tmp_path: Path) -> None:
    """Each of them, and two runs of one seed are equal, which the experiment checks."""
    whole = [law for one in stacks.stacks() if one.is_whole for law in one.laws]
    here = [law for law in whole if stacks.built(law).is_file()]
    if not here:
        pytest.skip("WHOLE STACKS NOT TESTED: make stacks has built none")
    path = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="5s")
    for run in compare(here, path, out=tmp_path / "out").runs:
        (flow,) = run.summary["flows"]
        assert 7e6 < flow["goodput_bps"] < 10e6, flow["law"]
        assert run.summary["links"][0]["drops"] > 0, flow["law"]
        assert flow["retransmits"] > 0, flow["law"]
