"""Evidence of simulated flows, as tools that sample a socket give it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab import _core
from lfnlab.diagnose.evidence import Evidence

if TYPE_CHECKING:
    from lfnlab import Scenario


def evidence_of(scenario: Scenario, every: int = 1, **told: Any) -> Evidence:
    """Of the first flow, with each ``every``-th sample of the run; ``told`` replaces arrays."""
    [run] = _core.run_many([_core.Scenario(scenario.to_toml())], 1, None)
    assert run is not None
    table = run.table("flows")
    rows = table["flow"] == 0
    seen = {name: values[rows][::every].astype(np.float64) for name, values in table.items()}
    unknown = np.full(seen["t_s"].size - 1, np.nan)
    segment = 1448.0
    arrays: dict[str, Any] = {
        "edges_s": seen["t_s"],
        "goodput_bps": np.diff(seen["delivered_bytes"]) * 8 / np.diff(seen["t_s"]),
        "rtt_s": np.where(seen["srtt_s"] > 0, seen["srtt_s"], np.nan)[1:],
        "cwnd_bytes": seen["cwnd_seg"][1:] * segment,
        "inflight_bytes": seen["inflight_seg"][1:] * segment,
        "retransmits": np.diff(seen["retransmits"]),
    }
    for name in (
        *("ssthresh_bytes", "window_bytes", "unsent_bytes", "pacing_bps", "app_limited"),
        *("busy_s", "rwnd_limited_s", "sndbuf_limited_s"),
    ):
        arrays[name] = unknown
    told_s = json.loads(run.summary())["flows"][0]["min_rtt_s"]
    flow = {"id": 0, "law": "", "segment_bytes": segment, "min_rtt_s": told_s}
    return Evidence(flow=flow, **{**arrays, **told})
