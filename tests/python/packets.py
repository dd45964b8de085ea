"""Packets made by hand, and scenarios that record theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from lfnlab import Case, Scenario, execute
from lfnlab.formats import pcap

MS = 1_000_000_000  # picoseconds
MSS = 1448
RETRANSMISSION, CE, ECE, CWR, LAST, ECT1 = 1, 2, 4, 8, 16, 64


class Trace:
    """Packets made by hand: each arrives at its link's queue and leaves it 10 us later."""

    def __init__(self, headers: int = 66, payload: int = MSS) -> None:
        self.rows: list[dict[str, Any]] = []
        self.headers, self.payload = headers, payload

    def packet(
        self, t_ms: float, seq: int, *, ack: bool = False, dropped: bool = False, **own: Any
    ) -> None:
        reverse = ack != own.pop("reverse", False)
        payload = 0 if ack else own.pop("payload_bytes", self.payload)
        sack = own.pop("sack", ())
        row = {
            "t_ps": int(t_ms * MS),
            "link": int(reverse),
            "point": 0,
            "flow": 0,
            "kind": int(ack),
            "direction": int(reverse),
            "seq": seq,
            "bytes": payload + self.headers,
            "payload_bytes": payload,
            "flags": 0,
            **dict.fromkeys(pcap.COLUMNS[10:]),
            **own,
        }
        for i, (start, end) in enumerate(sack, 1):
            row |= {f"sack{i}_start": start, f"sack{i}_end": end}
        after = {"point": 1} if dropped else {"point": 2, "t_ps": row["t_ps"] + MS // 100}
        self.rows += [row, row | after]

    def frame(self) -> pl.DataFrame:
        schema: dict[str, type[pl.DataType]] = dict.fromkeys(pcap.COLUMNS, pl.UInt64)
        schema |= dict.fromkeys(("link", "point", "kind", "direction", "flags"), pl.UInt8)
        schema |= dict.fromkeys(("flow", "bytes", "payload_bytes"), pl.UInt32)
        return pl.DataFrame(self.rows, schema=schema).sort("t_ps", maintain_order=True)

    def bulk(self, segments: int, *, first: int = 0, start_ms: float = 0.0, **own: Any) -> None:
        """One segment a millisecond, an ACK for each 10 ms later."""
        for i in range(segments):
            self.packet(start_ms + i, first + i, **own)
            self.packet(start_ms + i + 10, first + i + 1, ack=True, **own)


def captured(tmp_path: Path, text: str) -> Any:
    """A run of this scenario, which records its packets."""
    return execute([Case(Scenario.from_toml(text))], out=tmp_path).runs[0]


TRACED = """
schema = 1
duration = "8s"
{compat}
[link]
rate = "{rate}"
loss = {loss}
queue = {{ size = "60 packets" }}
[[flow]]
law = "cubic"
rtt = "100ms"
packet = "{packet}"
[[flow]]
law = "{law}"
rtt = "40ms"
start = "30ms"
packet = "{packet}"
direction = "{way}"
size = "3MB"
[capture]
"""


def traced(
    rate: str = "20Mbit/s",
    loss: float = 0.0,
    packet: str = "1500B",
    law: str = "reno",
    way: str = "forward",
    compat: str = "",
) -> str:
    """Two flows whose packets are recorded."""
    return TRACED.format(rate=rate, loss=loss, packet=packet, law=law, way=way, compat=compat)


BUSY = """
schema = 1
duration = "4s"
[link]
rate = "50Mbit/s"
duplicate = 0.01
loss = 0.001
jitter = { kind = "uniform", low = "0ms", high = "2ms", keep_order = true }
[[flow]]
law = "bbr"
rtt = "60ms"
packet = "9000B"
[[flow]]
law = "udt"
rtt = "60ms"
[[flow]]
law = "cubic"
rtt = "30ms"
direction = "reverse"
[background]
level = 1
[capture]
"""
