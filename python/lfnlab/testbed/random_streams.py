"""The simulator's named random streams, for what must choose the same packets elsewhere.

As ``crates/sim/src/rng.rs`` and ``crates/path/src/impair.rs`` draw them: xoshiro256++ (Blackman and
Vigna 2019), seeded by SplitMix64 from a hash of seed, run and name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    z = (word + _GOLDEN) & _MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    return z ^ z >> 31


def _key(seed: int, run: int, name: str) -> int:
    text = name.encode()
    words = [int.from_bytes(text[at : at + 8], "little") for at in range(0, len(text), 8)]
    key = 0
    for word in (seed, run, len(text), *words):
        key = _mix(key ^ word)
    return key


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def uniform(seed: int, name: str, run: int = 0) -> Iterator[float]:
    """Numbers uniform on [0, 1) without end: those of the simulator's stream of this name."""
    key = _key(seed, run, name)
    a, b, c, d = (_mix((key + number * _GOLDEN) & _MASK) for number in range(4))
    while True:
        value = (_rotated((a + d) & _MASK, 23) + a) & _MASK
        shifted = b << 17 & _MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = _rotated(d, 45)
        yield (value >> 11) * 2.0**-53


def gaps(p: float, seed: int, name: str, packets: int) -> list[int]:
    """How many of ``packets`` pass before each that is chosen with probability ``p``."""
    if p <= 0:
        return []
    draws = uniform(seed, name)
    found: list[int] = []
    total = 0
    while total < packets:
        gap = 0 if p >= 1 else _gap(p, draws)
        found.append(gap)
        total += gap + 1
    return found


def first_gaps(p: float, seed: int, name: str, count: int) -> list[int]:
    """The gaps that the stream's first ``count`` numbers give with probability ``p``."""
    draws = uniform(seed, name)
    return [_gap(p, draws) for _ in range(count)]


def _gap(p: float, draws: Iterator[float]) -> int:
    return int(math.log(1.0 - next(draws)) / math.log1p(-p))
