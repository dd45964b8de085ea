# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios for Linux in virtual time, and what it is told of them."""

from __future__ import annotations

from typing import Any

from lfnlab import Scenario
from lfnlab.testbed import virtual_time

PATH = 'schema = 1\nduration = "3s"\n[link]\nrate = "20Mbit/s"\n'
FLOW = '[[flow]]\nlaw = "htcp-be"\nrtt = "40ms"\n'
UDP = '[[udp]]\nbursts = [{ rate = "1Mbit/s" }]\n'
LINK = '[[links]]\nname = "x"\nfrom = "a"\nto = "b"\nrate = "20Mbit/s"\n'
GRAPH = 'schema = 1\nduration = "3s"\n' + LINK
ROUTED = '[[flow]]\nlaw = "htcp-be"\nrtt = "40ms"\nroute = ["x"]\n'


def resolved(text: str) -> dict[str, Any]:
    return Scenario.from_toml(text).check().to_document()


def told(text: str) -> list[str]:
    return virtual_time.translated(resolved(text), ours=True).splitlines()
