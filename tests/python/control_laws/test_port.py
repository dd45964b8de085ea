"""Vectors that a law in Python records for its header."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab import Ack, LabError, Law, LawError, Loss, _core
from lfnlab.cli import app as cli
from lfnlab.control_laws.port import vectors
from lfnlab.results import output

if TYPE_CHECKING:
    from command import Lfn

SOURCE = """\
import lfnlab


class Half(lfnlab.Law):
    def on_ack(self, n, ack):
        self.cwnd += min(1 / self.cwnd, 1) * n

    def on_loss(self, loss):
        self.ssthresh = max(self.cwnd / 2, 2)
"""


class Half(Law):
    def on_ack(self, n: int, ack: Ack) -> None:
        self.cwnd += min(1 / self.cwnd, 1) * n

    def on_loss(self, loss: Loss) -> None:
        self.ssthresh = max(self.cwnd / 2, 2)


def unmet(text: str, law: str) -> list[str]:
    """The expectations of a text that a law of the registry does not meet, executed on it."""
    failures = []
    for block in re.findall(r"(?ms)^```law\n(.*?)^```", text):
        lines = [line.partition("#")[0].strip() for line in block.splitlines()][1:]
        try:
            _core.drive(law, lines, ())
        except _core.LabError as error:
            failures.append(str(error))
    return failures


def test_a_statement_that_is_none_is_named() -> None:
    with pytest.raises(
        LabError, match=r'^statement 2, "jump 3": no statement "jump 3"; allowed: ack'
    ):
        _core.drive("reno", ["start cwnd=10", "jump 3"], ())
    with pytest.raises(
        LabError, match=r'^statement 1, "start cwnd=10": no field "alpha"; allowed: '
    ):
        _core.drive("reno", ["start cwnd=10"], ["alpha"])


def test_reno_meets_what_reno_in_python_recorded() -> None:
    text = vectors(Half, "half", 1e-3)
    assert text.count("```law\nlaw half  # ") == 10
    assert text.count("expect cwnd") == 48
    assert not unmet(text, "reno")


def test_another_law_does_not_meet_them() -> None:
    failures = unmet(vectors(Half, "half", 1e-3), "scalable")
    assert len(failures) >= 8
    assert re.search(r"expect cwnd [^:]*: cwnd: expected [\d.]+ \+-0.1%, found [\d.]+", failures[0])


def test_what_a_law_decides_besides_its_window_is_recorded() -> None:
    class Paced(Half):
        def on_ack(self, n: int, ack: Ack) -> None:
            super().on_ack(n, ack)
            assert ack.srtt_s is not None
            self.pacing_bps = self.cwnd * self.mss_bytes * 8 / ack.srtt_s

    text = vectors(Paced, "paced", 1e-6)
    # 10.1 segments of 1448 bytes in 100 ms.
    assert "\nack\nexpect cwnd 10.1 +-0.0001%\nexpect pacing_Bps 146248 +-0.0001%\n" in text


def test_the_command_writes_a_part_of_a_card(tmp_path: Path, lfn: Lfn) -> None:
    file, out = tmp_path / "half.py", tmp_path / "vectors.md"
    file.write_text(SOURCE)
    assert lfn("port", f"{file}:Half", "--out", out) == f"{out}\n"
    said = lfn("port", f"{file}:Half")
    assert said + f"<!-- {output.MARK} -->\n" == out.read_text()
    assert "\nlaw half-reno  # " in lfn("port", f"{file}:Half", "--name", "half-reno")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["reno"], cli.USAGE, "reno is not a law in a file; write FILE.py:CLASS or FILE.h"),
        (["{file}:Nosuch"], cli.USAGE, "no law 'Nosuch'; it has Half"),
        (["{file}:Half", "--name", "Half"], cli.USAGE, "'Half' is not a name for a header"),
        (["{file}:Half", "--tolerance", "0"], cli.USAGE, "tolerance: 0; allowed: above 0"),
        (["{file}:Half", "--out", "{file}/x"], cli.STORE, "Not a directory"),
    ],
)
def test_mistakes(arguments: list[str], code: int, said: str, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "half.py"
    file.write_text(SOURCE)
    assert cli.call(["port", *(part.format(file=file) for part in arguments)]) == code
    assert said in lfn.said().err


def test_what_it_raises_names_callback_and_time() -> None:
    class Late(Half):
        def on_loss(self, loss: Loss) -> None:
            raise RuntimeError("not yet")

    with pytest.raises(_core.PrototypeError, match=r"Late.on_loss at 1.* s: RuntimeError: not yet"):
        vectors(Late, "late", 1e-3)
    with pytest.raises(LawError, match="is not a law"):
        vectors(int, "int", 1e-3)  # type: ignore[arg-type]
