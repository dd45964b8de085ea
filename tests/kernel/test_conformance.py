# SPDX-License-Identifier: MIT OR Apache-2.0
"""Are the committed objects what clang makes of the headers, and is what Linux runs the header?"""

import re
import subprocess
from pathlib import Path

import pytest
from validation import kernel as level_1

from lfnlab import kernel
from lfnlab.kernel import host

ROOT = Path(__file__).parents[2]
# Other versions make other bytes.
CLANG, LIBBPF = "14.0.6", "1.1.2"
# In a lossy transfer each happens; the last is the kernel's answer to rare reordering.
CALLS = {
    False: {"init", "pkts_acked", "cong_avoid", "ssthresh", "cwnd_event", "set_state"},
    True: {"init", "cong_control", "ssthresh", "cwnd_event"},
}


def test_committed_objects_are_what_clang_makes(tmp_path: Path) -> None:
    said = subprocess.run(["clang-14", "--version"], check=True, capture_output=True, text=True)
    found = re.search(r"version (\S+)", said.stdout)
    package = ["dpkg-query", "-W", "-f", "${Version}", "libbpf-dev"]
    headers = subprocess.run(package, capture_output=True, text=True).stdout
    if not found or found[1] != CLANG or LIBBPF not in headers:
        here = f"clang {found[1] if found else '?'}, libbpf-dev {headers or '?'}"
        pytest.skip(f"BPF OBJECTS NOT COMPARED: they are of clang {CLANG}, libbpf {LIBBPF}; {here}")
    subprocess.run([ROOT / "kernel/build", tmp_path], check=True)
    committed = ROOT / "python/lfnlab/kernel/objects"
    names = {f"{law.name}.bpf.o" for law in kernel.laws()}
    assert {path.name for path in committed.iterdir()} == names
    assert {path.name for path in tmp_path.iterdir()} == names
    changed = [n for n in names if (tmp_path / n).read_bytes() != (committed / n).read_bytes()]
    assert not changed, f"{changed}: run kernel/build and commit what it makes"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects that record, one a law."""
    out = tmp_path_factory.mktemp("recording")
    level_1.build(out)
    return out


@pytest.mark.parametrize("law", kernel.laws(), ids=lambda law: law.name)
def test_kernel_replays_bit_for_bit(law: kernel.KernelLaw, recording: Path) -> None:
    if why := host.missing_for(law.name, steers=law.steers):
        pytest.skip(f"{law.name} NOT TESTED: {why}")
    outcome = level_1.replay(law, level_1.record(law, recording))
    assert outcome.returncode == 0, outcome.stderr
    seen = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", outcome.stdout)}
    assert set(seen) >= CALLS[law.steers], outcome.stdout
    assert sum(seen.values()) > 300


def test_replay_sees_one_bit(recording: Path) -> None:
    law = kernel.find("reno")
    records = bytearray(level_1.record(law, recording))
    same = level_1.replay(law, bytes(records))
    assert same.returncode == 0
    count = sum(int(calls) for calls in re.findall(r"\w+ (\d+)", same.stdout))
    # snd_cwnd, word 9 of what the call in the middle left: of what it found, not every bit matters.
    # A record is 13 words and two images (kernel/record.bpf.h).
    size = len(records) // count
    image = (size - 13 * 8) // 2
    records[count // 2 * size + 13 * 8 + image + 9 * 8] ^= 1
    outcome = level_1.replay(law, bytes(records))
    assert outcome.returncode == 1
    assert "record" in outcome.stderr
    assert level_1.replay(law, bytes(records[:-8])).returncode == 1
