# SPDX-License-Identifier: MIT OR Apache-2.0
"""A terminal for programs under test: a pseudo-terminal, and what its screen shows.

It knows what the live line uses (ECMA-48 and DEC's VT100), and fails on anything else.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable

PART = re.compile(
    r"\x1b\[(?P<numbers>[\d;]*)(?P<control>[A-Za-z])|\x1b(?P<escape>[D78])|(?P<text>[^\x1b])"
)


class Terminal:
    """A screen of so many rows and columns, and the program on it."""

    def __init__(self, rows: int, columns: int) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.screen = [""] * rows
        self.gone: list[str] = []
        """Rows that scrolled away at the top."""
        self.row = self.column = 0
        self.saved = (0, 0)
        self.region = (0, rows - 1)
        self.raw = ""
        self._rest = ""

    def resize(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def start(
        self, *command: object, both: bool = True, controls: bool = False, **environment: str
    ) -> subprocess.Popen[bytes]:
        """A program with its stderr here, and with ``both`` its stdin and stdout too.

        With ``controls`` it is the program to which the terminal sends the signals of its keys.
        """
        mine: int = self.slave
        other = mine if both else subprocess.DEVNULL
        return subprocess.Popen(
            list(map(str, command)),
            stdin=other,
            stdout=other,
            stderr=mine,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(mine, termios.TIOCSCTTY, 0)) if controls else None,
        )

    def read(self, until: Callable[[], bool], limit_s: float = 60) -> bool:
        """Take what is written until a condition holds; whether it did."""
        end_s = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > end_s:
                return False
            if select.select([self.master], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self._take(os.read(self.master, 65536).decode())
        return True

    def finish(self, program: subprocess.Popen[bytes]) -> int:
        """Wait for the program's end, and take its last words."""
        assert self.read(lambda: program.poll() is not None)
        self.drain()
        return program.returncode

    def drain(self) -> None:
        while select.select([self.master], [], [], 0.3)[0]:
            self._take(os.read(self.master, 65536).decode())

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)

    def bottom(self) -> str:
        return self.screen[self.rows - 1]

    def is_free(self) -> bool:
        """Whether all rows scroll, and the last one is empty."""
        return self.region == (0, self.rows - 1) and not self.bottom()

    def _take(self, text: str) -> None:
        self.raw += text
        text = self._rest + text
        at = 0
        while at < len(text):
            found = PART.match(text, at)
            if found is None:
                assert len(text) - at < 20, f"an unknown sequence: {text[at : at + 20]!r}"
                break
            self._apply(found)
            at = found.end()
        self._rest = text[at:]

    def _apply(self, found: re.Match[str]) -> None:
        if (control := found["control"]) is not None:
            numbers = [int(number or 0) for number in found["numbers"].split(";")]
            match control:
                case "A":
                    self.row = max(self.row - (numbers[0] or 1), 0)
                case "H":
                    self.row, self.column = numbers[0] - 1, numbers[1] - 1
                case "K" if numbers == [2]:
                    self._set(self.row, "")
                case "r":
                    low, high = numbers if len(numbers) == 2 else (1, self.rows)
                    self.region = (low - 1, high - 1)
                    self.row = self.column = 0
                case _:
                    raise AssertionError(f"an unknown sequence: {found[0]!r}")
        elif (escape := found["escape"]) is not None:
            match escape:
                case "7":
                    self.saved = (self.row, self.column)
                case "8":
                    self.row, self.column = self.saved
                case "D":
                    self._down()
        elif found["text"] == "\r":
            self.column = 0
        elif found["text"] == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self.column = 0
                self._down()
            row = self.screen[self.row].ljust(self.column)
            self._set(self.row, row[: self.column] + found["text"] + row[self.column + 1 :])
            self.column += 1

    def _set(self, row: int, text: str) -> None:
        self.screen += [""] * (row + 1 - len(self.screen))
        self.screen[row] = text

    def _down(self) -> None:
        low, high = self.region
        if self.row == high:
            self.gone.append(self.screen.pop(low))
            self.screen.insert(high, "")
        elif self.row < self.rows - 1:
            self.row += 1
