# SPDX-License-Identifier: MIT OR Apache-2.0
"""The live line of `lfn shell` and `lfn testbed`, on a terminal that the tests made."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

FAR = Path(__file__).parent / "far.py"
LFN = (sys.executable, "-m", "lfnlab.cli")
SERVE = f"exec {sys.executable} {FAR} serve"
PATH = ("--rate", "10Mbit/s", "--rtt", "20ms", "--buffer", "20 packets")
TRANSFER = ("--serve", SERVE, "--", sys.executable, FAR, "transfer", 2_500_000)
LINE = re.compile(
    r"(out|in) [\d.]+ [kMG]?bit/s  RTT [\d.]+ ms  cwnd \d+  queue \d+  drops \d+  late [\d.]+ ms"
)
NARROW = re.compile(r"(out|in) [\d.]+[kMG]?( [\d.]+ms w\d+ q\d+( d\d+)?( l[\d.]+ms)?)?")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal(12, 100)
    yield made
    made.close()


def test_a_line_shows_the_path_and_goes(terminal: Terminal) -> None:
    program = terminal.start(*LFN, "shell", *PATH, *TRANSFER)
    assert terminal.read(lambda: bool(LINE.fullmatch(terminal.bottom()))), terminal.screen
    window = re.search(r"cwnd (\d+)", terminal.bottom())
    assert window is not None
    assert int(window[1]) > 0
    assert terminal.finish(program) == 0
    assert terminal.is_free()
    (told,) = [row for row in terminal.screen if "intact" in row]
    assert json.loads(told)["intact"]


def test_lines_of_the_program_scroll_above(terminal: Terminal) -> None:
    count = "for i in $(seq 40); do echo line $i; sleep 0.05; done; printf end"
    program = terminal.start(*LFN, "shell", *PATH, "--", "sh", "-c", count)
    assert terminal.read(lambda: "queue" in terminal.bottom())
    assert terminal.region == (0, 10)
    assert terminal.finish(program) == 0
    assert terminal.is_free()
    rows = [row for row in terminal.gone + terminal.screen if row]
    assert rows == [*(f"line {i}" for i in range(1, 41)), "end"]


def test_forty_columns_and_a_resize(terminal: Terminal) -> None:
    terminal.resize(12, 40)
    program = terminal.start(*LFN, "shell", *PATH, *TRANSFER, NO_COLOR="1")
    shown = []

    def narrow() -> bool:
        shown.append(terminal.bottom())
        return " w" in terminal.bottom()

    assert terminal.read(narrow), terminal.screen
    assert NARROW.fullmatch(terminal.bottom()), terminal.bottom()
    assert all(len(row) < 40 for row in shown)
    terminal.resize(8, 100)
    assert terminal.read(lambda: "queue" in terminal.bottom())
    assert terminal.region == (0, 6)
    assert terminal.finish(program) == 0
    assert terminal.is_free()
    # A colour or another look would be ESC [ ... m.
    assert not re.search(r"\x1b\[[\d;]*m", terminal.raw)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--no-live", "--", "sleep", "1"), {}),
        (("--", "sleep", "1"), {"TERM": "dumb"}),
        (("--", "sleep", "1"), {"LFN_FAR": "198.18.0.1"}),
        (("--", "sh"), {}),
    ],
)
def test_nothing_where_a_line_would_disturb(
    arguments: tuple[str, ...], environment: dict[str, str], terminal: Terminal
) -> None:
    program = terminal.start(*LFN, "shell", *arguments, **environment)
    if arguments[-1] == "sh":
        os.write(terminal.master, b"sleep 1; exit 3\n")
    assert terminal.finish(program) == (3 if arguments[-1] == "sh" else 0)
    assert "\x1b" not in terminal.raw


def test_an_interactive_shell_has_a_line_if_asked(terminal: Terminal) -> None:
    program = terminal.start(*LFN, "shell", "--live", "--", "sh", PS1="")
    assert terminal.read(lambda: "queue" in terminal.bottom())
    os.write(terminal.master, b"exit 3\n")
    assert terminal.finish(program) == 3
    assert terminal.is_free()


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (2, 100), (12, 19)])
def test_nothing_on_a_terminal_without_room(rows: int, columns: int, terminal: Terminal) -> None:
    terminal.resize(rows, columns)
    program = terminal.start(*LFN, "shell", "--", "sleep", "1")
    assert program.wait(60) == 0
    assert not subprocess.run(
        [*LFN, "shell", "--live", "--", "sleep", "1"], capture_output=True, timeout=60
    ).stderr


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_shell_leaves_the_terminal_as_it_was(
    stop: signal.Signals, terminal: Terminal
) -> None:
    program = terminal.start(*LFN, "shell", *PATH, "--", "sleep", "30")
    assert terminal.read(lambda: "queue" in terminal.bottom())
    mode = termios_of(terminal)
    if stop == signal.SIGINT:
        os.killpg(program.pid, stop)
    else:
        program.send_signal(stop)
    assert terminal.read(terminal.is_free, 10)
    assert program.wait(60) != 0
    terminal.drain()
    assert terminal.is_free()
    assert termios_of(terminal) == mode


def termios_of(terminal: Terminal) -> bytes:
    """The settings of a terminal, as `stty` prints them."""
    return subprocess.run(
        ["stty", "-g"], stdin=terminal.slave, capture_output=True, check=True
    ).stdout


def test_the_program_that_draws_ends_with_the_emulator(terminal: Terminal) -> None:
    """It has no name; it is the child of the emulator that is not in another PID namespace."""
    program = terminal.start(*LFN, "shell", *PATH, "--", "sleep", "30")
    assert terminal.read(lambda: "queue" in terminal.bottom())

    def children(parent: int) -> list[int]:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return list(map(int, text.split()))

    (emulator,) = children(program.pid)
    helpers = children(emulator)
    assert len(helpers) == 2
    os.kill(emulator, signal.SIGKILL)
    assert program.wait(30) == 4
    assert terminal.read(lambda: not any(Path(f"/proc/{pid}").exists() for pid in helpers), 10)
    terminal.drain()
    assert terminal.region == (0, 11)


def test_a_stopped_shell_gives_the_row_back_and_takes_it_again(terminal: Terminal) -> None:
    program = terminal.start("bash", "--norc", "--noediting", "-i", controls=True, PS1="$ ")
    lfn = shlex.join([*LFN, "shell", "--", "sleep", "60"])
    os.write(terminal.master, f"{lfn}\n".encode())
    assert terminal.read(lambda: "queue" in terminal.bottom())
    os.write(terminal.master, b"\x1a")  # Ctrl-Z
    assert terminal.read(terminal.is_free, 20)
    os.write(terminal.master, b"fg\n")
    assert terminal.read(lambda: "queue" in terminal.bottom(), 20)
    os.write(terminal.master, b"\x03")  # Ctrl-C
    assert terminal.read(terminal.is_free, 20)
    os.write(terminal.master, f"{lfn.replace('60', '2')} &\n".encode())
    assert not terminal.read(lambda: terminal.region != (0, 11), 4), "a job in the background"
    os.write(terminal.master, b"wait; exit 5\n")
    assert terminal.finish(program) == 5


def test_the_test_bed_has_a_line(terminal: Terminal, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'schema = 1\nduration = "4s"\n[link]\nrate = "10Mbit/s"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "20ms"\n'
    )
    program = terminal.start(*LFN, "testbed", scenario, "--out", tmp_path / "out", both=False)
    assert terminal.read(lambda: bool(LINE.fullmatch(terminal.bottom()))), terminal.screen
    assert terminal.finish(program) in (0, 6)
    assert terminal.region == (0, 11)
    assert not any("queue" in row for row in terminal.screen)
