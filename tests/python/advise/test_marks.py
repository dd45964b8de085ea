"""``lfn advise --queue``: who may have ECN in a queue that marks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab.advise import Path as Way
from lfnlab.advise import marking
from lfnlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command import Lfn

RATE = ("--rate", "20Mbit/s", "--rtt", "20ms")


@pytest.fixture(name="ask")
def _ask(tmp_path: Path, lfn: Lfn) -> Callable[[str], dict[str, Any]]:
    """The answer for a queue, with what each sender is."""

    def ask(queue: str) -> dict[str, Any]:
        out = tmp_path / queue
        told = lfn("advise", *RATE, "--queue", queue, "--json", "--out", str(out))
        found: dict[str, Any] = json.loads(told)
        found["is"] = {each["sender"]: each["verdict"] for each in found["senders"]}
        return found

    return ask


def test_an_l4s_queue_is_for_prague_and_not_for_dctcp(ask: Callable[[str], dict[str, Any]]) -> None:
    found = ask("dualpi2")
    assert found["advice"] == "prague, fallback"
    assert any("tcp_ecn=3" in line for line in found["type"])
    assert found["is"]["prague"] == "fair"
    assert found["is"]["dctcp"] == "unsafe"
    waits = {each["sender"]: each["p99_queue_s"] for each in found["senders"]}
    assert waits["prague"] < 0.2 * waits["cubic"]


def test_in_a_classic_queue_prague_is_safe_with_its_fallback_only(
    ask: Callable[[str], dict[str, Any]],
) -> None:
    found = ask("codel")
    assert found["advice"].startswith("cubic")
    unsafe = {name for name, verdict in found["is"].items() if verdict == "unsafe"}
    assert unsafe == {"prague", "dctcp"}


def test_queues_of_their_own_make_all_fair(ask: Callable[[str], dict[str, Any]]) -> None:
    assert set(ask("fq-codel")["is"].values()) == {"fair"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((*RATE, "--queue", "drop-tail"), '--queue: "drop-tail"; allowed: dualpi2, codel'),
        ((*RATE, "--queue", "red", "--law", "cubic"), "--law: not with --queue"),
        (("--rtt", "20ms", "--queue", "red"), "--rate: not given"),
        (("--rate", "fast", "--rtt", "1s", "--queue", "pie"), '--rate: "fast"; allowed: a number'),
        (("--rate", "1Tbit/s", "--rtt", "1s", "--queue", "pie"), "is too much to simulate"),
    ],
)
def test_what_cannot_be_asked_is_refused(args: tuple[str, ...], says: str, lfn: Lfn) -> None:
    assert says in lfn.refuses("advise", *args)


def test_the_packets_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 32"):
        marking(Way("1Tbit/s", "100ms", "1GB"), "pie", out=tmp_path / "none")
