"""Limits of the memory of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lfnlab import _core
from lfnlab.cli.app import call
from lfnlab.errors import LabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = """\
schema = 1
duration = "60s"
[link]
rate = "100Mbit/s"
[[flow]]
law = "cubic"
rtt = "40ms"
"""


@pytest.fixture(autouse=True)
def _no_limit() -> Iterator[None]:
    yield
    _core.limit_memory(None)


def test_a_limit_is_what_was_said_and_else_what_is_free() -> None:
    free = _core.memory_limit_bytes()
    assert 10e6 < free < 1e14
    _core.limit_memory("1.5GB")
    assert _core.memory_limit_bytes() == 1_500_000_000
    _core.limit_memory(None)
    assert _core.memory_limit_bytes() > 10e6
    for wrong in ("0B", "x", "-1GB", "5", ""):
        with pytest.raises(UsageError, match="--memory"):
            _core.limit_memory(wrong)


def test_a_run_that_holds_more_than_it_may_ends_with_an_error() -> None:
    """Also where the limit falls below what it holds on the way."""

    def told(_: int, done: float) -> bool:
        if done > 0:
            _core.limit_memory("10kB")
        return True

    long = TEXT.replace("60s", "100000s")
    with pytest.raises(LabError, match=r"seed 7: ended at \S+ of 100000s: it holds .* MB; allowed"):
        _core.run_many([(long.replace("[link]", 'sample = "off"\n[link]'), "x", 7)], 1, told)
    # What it held is given back.
    _core.limit_memory("100MB")
    assert _core.run_many([(TEXT.replace("60s", "1s"), "x", 1)], 1, None)[0] is not None


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_the_command_refuses_what_will_not_fit(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(TEXT + ("[sweep.grid]\nseed = [1]\n" if command == "sweep" else ""))
    out = str(tmp_path / "out")
    assert call([command, str(file), "--out", out, "--memory", "100kB"]) == 2
    assert "of memory" in capsys.readouterr().err
    assert call([command, str(file), "--out", out, "--memory", "much"]) == 2
    assert "--memory" in capsys.readouterr().err
