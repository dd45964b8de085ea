"""How far runs and reports are: one line on stderr, when that is a terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lfnlab.printable import line, say

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text


class Bar:
    """Takes the progress of runs, and failures; without a line it shows only the first."""

    def __init__(self, line: Progress | None = None) -> None:
        self._line, self.failures = line, 0
        self._task = None if line is None else line.add_task("runs", total=None, failed="")

    def __call__(self, done: float, total: int) -> None:
        """So many runs are done."""
        if self._line is not None and self._task is not None:
            self._line.update(self._task, completed=done, total=total)

    def failed(self, why: str) -> None:
        """A run failed; the first reason is printed at once."""
        self.failures += 1
        said = f"lfn: a run failed: {why}"
        if self._line is not None and self._task is not None:
            self._line.update(self._task, failed=f"[red]{self.failures:,} failed")
            if self.failures == 1:
                self._line.console.print(line(said), markup=False, highlight=False)
        elif self.failures == 1 and sys.stderr is not None:
            say(line(said), file=sys.stderr)


@contextmanager
def bar() -> Iterator[Bar]:
    """A bar with runs done and failed, rate and time left."""
    if _silent():
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Runs a second, or a minute where they are slow."""

        def render(self, task: Task) -> Text:
            if not task.speed:
                return Text("")
            per, unit = (task.speed, "s") if task.speed >= 1.0 else (60.0 * task.speed, "min")
            return Text(f"{per:.3g}/{unit}")

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    # Runs take unequal times in a mixed order, so the speed is that of the whole experiment.
    with Progress(
        *columns, console=console, transient=True, speed_estimate_period=math.inf
    ) as line:
        yield Bar(line)


@contextmanager
def report_bar(runs: int) -> Iterator[Callable[[], None]]:
    """A bar of a report of so many runs: the part that is done and the time left.

    It appears after a second. The function is called twice for each run.
    """
    if _silent():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("report"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    line = Progress(*columns, console=Console(stderr=True), transient=True)
    task = line.add_task("report", total=2 * runs)
    began_s = time.monotonic()

    def step() -> None:
        line.advance(task)
        if not line.live.is_started and time.monotonic() - began_s >= 1.0:
            line.start()

    try:
        yield step
    finally:
        line.stop()


def _silent() -> bool:
    return sys.stderr is None or not sys.stderr.isatty()
