"""Are the generated parts of the pages those of today's code?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lfnlab
from lfnlab import Ack, Loss

ROOT = Path(__file__).resolve().parents[2]


def test_generated_pages_are_up_to_date() -> None:
    command = [sys.executable, "docs/site/reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_attribute_of_a_compiled_class_has_a_sentence() -> None:
    """The site shows them."""
    for kind in (Ack, Loss, lfnlab.Law):
        fields = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
        assert not [name for name, value in fields.items() if not value.__doc__], kind
    assert {"rtt_s", "newly_lost"} <= set(vars(Ack))
