"""Validity of measurements over an emulated path."""

from __future__ import annotations

from typing import Any

# Up to three segments of 1500 bytes at 1 Gbit/s.
COALESCE = "25us"
# A run of which more than one in a thousand segments came later than this does not count: a
# hundredth of the shortest RTT of long fat networks.
LATENESS_BOUND_US = 1000


def invalid(path: dict[str, Any]) -> str | None:
    """Reason for which a measurement over an emulated path is invalid, or None."""
    own = sum(path["own_drops"].values())
    if own:
        return f"the emulator itself lost {own} bursts of packets"
    late_us = path["lateness"]["p999_us"]
    if late_us > LATENESS_BOUND_US:
        stolen = path["stolen_s"] / path["wall_s"]
        by_whom = f" (its hypervisor took {stolen:.1%} of a processor from it)" if stolen else ""
        return (
            f"one segment in a thousand was more than {late_us:.0f} us late, above the bound of "
            f"{LATENESS_BOUND_US} us; the machine is too slow or too busy for this path{by_whom}"
        )
    return None
