"""The command line, in the process of a test and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lfnlab.cli import app as cli

if TYPE_CHECKING:
    import pytest

LFN = [sys.executable, "-m", "lfnlab.cli"]


def process(
    *words: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """``lfn`` in a process of its own, with more variables."""
    return subprocess.run(
        [*LFN, *map(str, words)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Lfn:
    """``lfn``; words may be of any type, for example paths."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.said = capsys.readouterr

    def __call__(self, *words: object, code: int = cli.OK) -> str:
        """Standard output, from the last time that it was read on."""
        assert cli.call([str(word) for word in words]) == code
        return self.said().out

    def err(self, *words: object, code: int = cli.USAGE) -> str:
        """Standard error, from the last time that it was read on."""
        assert cli.call([str(word) for word in words]) == code
        return self.said().err

    def refuses(self, *words: object, code: int = cli.USAGE) -> str:
        """The one line of an error without any other output."""
        assert cli.call([str(word) for word in words]) == code
        out, err = self.said()
        assert (out, err.count("\n")) == ("", 1)
        return err
