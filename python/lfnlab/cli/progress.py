"""How far runs are: one line on stderr, when that is a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Task
    from rich.text import Text

    from lfnlab.experiment.run import Progress


@contextmanager
def bar() -> Iterator[Progress]:
    """A bar with runs done, rate and time left."""
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
        Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    silent = sys.stderr is None or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=silent) as line:
        task = line.add_task("runs", total=None)

        def tell(done: float, total: int) -> None:
            line.update(task, completed=done, total=total)

        yield tell
