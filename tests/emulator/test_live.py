# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lines that `lfn shell` and `lfn testbed` print of their path on a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FAR = Path(__file__).parent / "far.py"
LFN = (sys.executable, "-m", "lfnlab.cli")
SERVE = f"exec {sys.executable} {FAR} serve"
PATH = ("--rate", "10Mbit/s", "--rtt", "20ms", "--buffer", "20 packets")
TRANSFER = ("--serve", SERVE, "--", sys.executable, FAR, "transfer", 4_000_000)
LINE = re.compile(
    r"(out|in) [\d.]+ Mbit/s(  RTT [\d.]+ ms  cwnd \d+)?  queue \d+  drops \d+  late [\d.]+ ms"
)


class Terminal:
    """A pseudo-terminal at a program's stderr, and its text."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.text = ""

    def start(self, *command: object, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(map(str, command)),
            stdin=self.slave,
            stdout=subprocess.DEVNULL,
            stderr=self.slave,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
        )

    def read(self, until: Callable[[], bool], most_s: float = 60.0) -> bool:
        """Read until something holds; whether it does."""
        end_s = time.monotonic() + most_s
        while not until() and time.monotonic() < end_s:
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536).decode()
        return until()

    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if LINE.fullmatch(line)]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    os.close(made.master)
    os.close(made.slave)


def test_a_line_shows_the_path(terminal: Terminal) -> None:
    program = terminal.start(*LFN, "shell", *PATH, *TRANSFER)
    assert terminal.read(lambda: any("cwnd" in line for line in terminal.lines())), terminal.text
    assert terminal.read(lambda: program.poll() is not None)
    assert program.wait() == 0
    window = re.search(r"cwnd (\d+)", terminal.text)
    assert window is not None
    assert int(window[1]) > 0
    # A busy machine makes the run invalid, and its last line says so.
    said = [line for line in terminal.text.splitlines() if line]
    assert [line for line in said if not line.startswith("lfn: INVALID")] == terminal.lines()


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--no-live", "--", "sleep", "2"), {}),
        (("--", "sleep", "2"), {"TERM": "dumb"}),
        (("--", "sleep", "2"), {"LFN_FAR": "198.18.0.1"}),
        (("--", "sh"), {}),
    ],
)
def test_nothing_where_a_line_would_disturb(
    arguments: tuple[str, ...], environment: dict[str, str], terminal: Terminal
) -> None:
    program = terminal.start(*LFN, "shell", *arguments, **environment)
    if arguments[-1] == "sh":
        os.write(terminal.master, b"sleep 2; exit 3\n")
    assert terminal.read(lambda: program.poll() is not None)
    assert program.wait() == (3 if arguments[-1] == "sh" else 0)
    assert not terminal.lines()


def test_an_interactive_shell_has_lines_if_asked(terminal: Terminal) -> None:
    program = terminal.start(*LFN, "shell", "--live", "--", "sh", PS1="")
    assert terminal.read(lambda: len(terminal.lines()) > 1)
    os.write(terminal.master, b"exit 3\n")
    assert program.wait(60) == 3


def test_nothing_where_stderr_is_no_terminal() -> None:
    command = [*LFN, "shell", "--live", "--", "sleep", "2"]
    assert not subprocess.run(command, capture_output=True, timeout=60, check=True).stderr


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_program_that_prints_ends_with_the_emulator(
    stop: signal.Signals, terminal: Terminal
) -> None:
    """It has no name; it is the child of the emulator that is not in another PID namespace."""
    program = terminal.start(*LFN, "shell", *PATH, "--", "sleep", "30")
    assert terminal.read(lambda: bool(terminal.lines()))

    def children(parent: int) -> list[int]:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return list(map(int, text.split()))

    (emulator,) = children(program.pid)
    helpers = children(emulator)
    assert len(helpers) == 2
    if stop == signal.SIGINT:
        os.killpg(program.pid, stop)
    else:
        os.kill(emulator, stop)
    assert program.wait(30) != 0
    assert terminal.read(lambda: not any(Path(f"/proc/{pid}").exists() for pid in helpers))


def test_the_test_bed_has_a_line(terminal: Terminal, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'schema = 1\nduration = "4s"\n[link]\nrate = "10Mbit/s"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "20ms"\n'
    )
    program = terminal.start(*LFN, "testbed", scenario, "--out", tmp_path / "out")
    assert terminal.read(lambda: len(terminal.lines()) > 1)
    assert terminal.read(lambda: program.poll() is not None)
    assert program.wait() in (0, 6)
