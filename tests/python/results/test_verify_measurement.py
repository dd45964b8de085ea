"""``lfn store verify`` of a measurement: another tool's numbers, which have hashes too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from command import Lfn

FILE = Path(__file__).parents[1] / "data/iperf3/bidir.json"


def test_a_measurement_is_verified_by_its_hashes(tmp_path: Path, lfn: Lfn) -> None:
    out = tmp_path / "measured"
    lfn("import", "iperf3", FILE, "--out", out)
    assert lfn("store", "verify", out) == "1 measurement, 0 damaged\n"
    for name in ("goodput.parquet", "summary.json", "flows.parquet"):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert f"{name} is not what was stored" in lfn("store", "verify", out, code=1)
        (out / name).write_bytes(whole)
    (out / "flows.parquet").unlink()
    assert "flows.parquet: No such file" in lfn("store", "verify", out, code=1)
