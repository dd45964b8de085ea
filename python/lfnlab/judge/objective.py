"""The objective of a score: what is measured, where and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lfnlab.judge.paths import JudgePath


@dataclass(frozen=True)
class Objective:
    """The content of an objective, which :func:`lfnlab.judge.read` makes from a file."""

    version: str
    hash: str
    """Of the content, without comments: 12 hexadecimal digits of its SHA-256."""
    seeds: tuple[int, ...]
    least_s: float
    least_rtts: float
    warmup: float
    paths: tuple[JudgePath, ...]
    cells: tuple[tuple[float, int], ...]
    """Random loss and level of background traffic."""
    refill_share: float
    lost_packets: int
    outage_s: float
    rtt_ratio: float
    beside: tuple[str, ...]
    newcomer_share: float
    short_law: str
    short_load: float
    queues: tuple[str, ...]
    marks_buffer: str
    bounds: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        return f"{self.version} ({self.hash})"
