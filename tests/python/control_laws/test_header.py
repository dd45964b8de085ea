"""Does a header in a file decide what the registered law does?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lfnlab import LabError, compare, dumbbell
from lfnlab.control_laws import prototype

ROOT = Path(__file__).parents[3]
RENO = (ROOT / "laws" / "reno.h").read_text()


def copy(folder: Path, old: str = "", new: str = "") -> str:
    """A header like Reno's, with a change."""
    assert old in RENO
    (folder / "demo.h").write_text(RENO.replace(old, new, 1) if old else RENO)
    return str(folder / "demo.h")


@pytest.mark.parametrize("law", ["reno", "vegas", "htcp", "westwood", "bic", "veno", "cubic"])
def test_it_has_the_results_of_the_registered_law(law: str, tmp_path: Path) -> None:
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="0.5bdp", duration="8s", sample="off")
    laws = [str(ROOT / "laws" / f"{law}.h"), law]
    results = compare(laws, path, count=2, slow_start="classic", out=tmp_path)
    ours, theirs = (run.summary["flows"] for run in results.runs)
    assert ours[0]["law"] == f"{law}.h (prototype)"
    for a, b in zip(ours, theirs, strict=True):
        for key in ("delivered_bytes", "sent", "retransmits", "loss_events", "mean_cwnd_segments"):
            assert a[key] == b[key], key  # type: ignore[literal-required]
    # The run keeps the header.
    assert (results.runs[0].path / f"{law}.h").read_text().startswith("/* SPDX")


def test_a_change_of_the_header_changes_what_it_decides(tmp_path: Path) -> None:
    path = dumbbell(rate="20Mbit/s", rtt="20ms", buffer="0.5bdp", duration="8s", sample="off")
    gentle = copy(tmp_path, "control->cwnd >> 1;", "control->cwnd / 10 * 9;")
    results = compare([gentle, "reno"], path, out=tmp_path / "out")
    ours, theirs = (run.summary["flows"][0] for run in results.runs)
    assert ours["loss_events"] > theirs["loss_events"]
    assert prototype.find(gentle, Path()) is prototype.find(gentle, Path())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("half &= ~(", "half &= ~;(", r"demo\.h does not compile: .*demo\.h:\d+:\d+: error: "),
        ("LAW_OPS(reno);", "", r"no LAW_OPS\(NAME"),
        ("LAW_OPS(reno);", "LAW_CONTROL_OPS(reno);", "a header with on_control runs only as"),
        ('#include "law.h"', '#include "flaw.h"', "does not compile: .*flaw.h"),
        ("u32 variant;", "u32 variant; u64 large[20];", "state exceeds"),
    ],
)
def test_a_header_that_cannot_be_a_law_says_why(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=said):
        prototype.find(copy(tmp_path, old, new), Path())


def test_a_header_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"none\.h: No such file or directory; write FILE\.h"):
        prototype.find(str(tmp_path / "none.h"), Path())
    (tmp_path / "bytes.h").write_bytes(b"\xff\xfe")
    with pytest.raises(LabError, match="not UTF-8"):
        prototype.find(str(tmp_path / "bytes.h"), Path())


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(LabError, match="no-such-compiler: not found"):
        prototype.find(copy(tmp_path), Path())
