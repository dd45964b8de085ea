# SPDX-License-Identifier: MIT OR Apache-2.0
"""`lfn send` over a path whose MTU is less than the first link's, falls and rises.

`LFN_MTU_BYTES=1000000000` sends a file of that size; without it the file is small. All traffic
stays in namespaces that end with their script (mtu.sh).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "mtu.sh"
BYTES = int(os.environ.get("LFN_MTU_BYTES", "30_000_000"))
# The file takes some seconds, so that every change falls within the transfer.
RATE_BPS = min(max(BYTES * 8 // 6, 100_000_000), 2_000_000_000)
LIMIT_S = 120 + 60 * BYTES / 1e9
NAMESPACES = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
ICMP_IS_LOST = (
    "ip rule add iif lo ipproto icmp blackhole pref 0;"
    "ip -6 rule add iif lo ipproto ipv6-icmp to fd71:1::1 blackhole pref 0"
)


def transfer(
    folder: Path,
    family: int,
    mss: int,
    mtus: str,
    *,
    keyed: bool = False,
    fault: str = "",
    rate_bps: int = RATE_BPS,
) -> tuple[str, int]:
    """The script's output, and the number of fragments that the sender's kernel made."""
    (folder / "in").mkdir()
    with (folder / "blob").open("wb") as blob:
        for _ in range(BYTES // 1_000_000):
            blob.write(os.urandom(1_000_000))
    (folder / "key").write_text("A" * 43 + "=\n")
    (folder / "key").chmod(0o600)
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = [str(folder), str(family), str(mss), mtus, sys.executable, "-m", "lfnlab.cli", "--"]
    command = [*NAMESPACES, *user, "sh", str(SCRIPT), *words, "--max-rate", f"{rate_bps}bit/s"]
    env = os.environ | {"key": "--key key" if keyed else "", "fault": fault}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"^fragments (\d+)$", ran.stdout, re.MULTILINE)
    assert found, ran.stdout + ran.stderr
    return ran.stdout, int(found[1])


def arrived(folder: Path) -> bool:
    return (folder / "blob").read_bytes() == (folder / "in" / "blob").read_bytes()


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("family", [4, 6])
def test_a_transfer_survives_an_mtu_that_falls_and_rises(
    tmp_path: Path, family: int, keyed: bool
) -> None:
    said, fragments = transfer(tmp_path, family, 9000, "9000 9000 1500 1280 1500 9000", keyed=keyed)
    assert "sent\nreceived\n" in said, said
    assert arrived(tmp_path)
    # It fell within the transfer.
    at = [int(text) for text in re.findall(r"^MTU \d+ at (\d+) bytes", said, re.MULTILINE)]
    assert len(at) == 4
    assert 0 < at[0] < at[1] < BYTES
    # Fragments are what was made before: some MB after each fall, and not the rest of the file.
    assert 0 < fragments < BYTES / 1280


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mtus", ["1500 1500", "1500 1400", "1280 9000"])
def test_packets_fit_a_path_of_one_mtu(tmp_path: Path, family: int, keyed: bool, mtus: str) -> None:
    said, fragments = transfer(tmp_path, family, 1500, mtus, keyed=keyed, rate_bps=10**9)
    assert "sent\nreceived\n" in said, said
    assert arrived(tmp_path)
    assert fragments == 0


def test_routers_make_fragments_where_icmp_is_lost(tmp_path: Path) -> None:
    said, _ = transfer(tmp_path, 4, 1500, "1500 1500 1300", fault=ICMP_IS_LOST)
    assert "sent\nreceived\n" in said, said
    assert arrived(tmp_path)


def test_a_black_hole_of_ipv6_is_an_error_that_helps(tmp_path: Path) -> None:
    said, _ = transfer(tmp_path, 6, 1500, "1500 1500 1300", fault=ICMP_IS_LOST)
    assert "send: 1\n" in said, said
    assert "if the path loses large packets, a smaller --mss helps" in said
    assert not (tmp_path / "in" / "blob").exists()
