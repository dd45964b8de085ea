"""UDT in the simulator beside UDT on real sockets, over the same path.

$ python -m validation.udt [--json FILE]

Run from the repository's root with cargo and what `lfn shell` needs (docs/emulator.md), on a
machine that is idle: the path keeps real time. Each path is one scenario: the simulator runs its
flow, and behind the same links `lfn-udt send` moves a file of the same size to `lfn-udt recv`.
Steady is the rate of the second half: 2 N bytes and N bytes are sent, and in the difference
handshakes and start-up cancel. The two should be within 5 %; the exit code is 1 where they are not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lfnlab import dumbbell, execute

if TYPE_CHECKING:
    from lfnlab.scenario.builder import Scenario

ROOT = FilePath(__file__).resolve().parents[1]
WITHIN = 0.05
#: lfn-udt's least flow window, and that of libudt.
WINDOW = "8192 packets"


@dataclass(frozen=True)
class Path:
    """A path, what drives UDT over it, and half of what is sent."""

    rate: str
    rtt: str
    buffer: str
    law: str
    half_bytes: int

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.rate} x {self.rtt}, {self.law}"

    def scenario(self, size_bytes: int) -> Scenario:
        """One transfer."""
        base = dumbbell(
            rate=self.rate, rtt=self.rtt, buffer=self.buffer, duration="600s", sample="off"
        )
        return base.flow(self.law, transport="udt", size=f"{size_bytes}B", receive_window=WINDOW)


PATHS = [
    Path("50Mbit/s", "40ms", "1bdp", "udt", 150_000_000),
    # Cuts are drawn, and come seldom here: a third of it tells to no more than 5 %.
    Path("100Mbit/s", "100ms", "0.5bdp", "udt", 900_000_000),
    Path("50Mbit/s", "40ms", "1bdp", "cubic", 150_000_000),
]


def simulated_s(path: Path, size_bytes: int) -> float:
    """Seconds from the request for a connection to the last acknowledgement."""
    with tempfile.TemporaryDirectory() as name:
        (run,) = execute(path.scenario(size_bytes), out=name).runs
        completion_s: float | None = run.summary["flows"][0]["completion_s"]
    if completion_s is None:
        raise SystemExit(f"{path.name}: {size_bytes} bytes are not through after 600 s")
    return completion_s


def _program() -> str:
    build = ["cargo", "build", "--release", "--locked", "-p", "lfn-transfer"]
    subprocess.run(build, cwd=ROOT, check=True)
    return str(FilePath(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/lfn-udt")


def real_s(path: Path, size_bytes: int, program: str) -> float:
    """The same with real sockets behind the emulated path; says on stderr if the path was late."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = FilePath(name)
        (folder / "into").mkdir()
        with (folder / "file").open("wb") as file:
            file.truncate(size_bytes)
            file.write(os.urandom(1 << 20) * (size_bytes >> 20))
        (folder / "path.toml").write_text(path.scenario(size_bytes).to_toml())
        plan = f"--rate {path.rate} --rtt {path.rtt} --quiet"
        serve = f"{program} recv {folder}/into --listen 0.0.0.0:9000 --insecure --once {plan}"
        to = f"--to $LFN_FAR:9000 --law {path.law}"
        send = f"sleep 1; {program} send {folder}/file {to} --json {plan}"
        lfn = [sys.executable, "-m", "lfnlab.cli"]
        shell = [*lfn, "shell", "--scenario", str(folder / "path.toml"), "--serve", serve]
        done = subprocess.run(
            [*shell, "--", "sh", "-c", send],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{path.name}: exit code {done.returncode}")
        seconds: float = json.loads(done.stdout)["completion_s"]
        return seconds


def main() -> None:
    """Measure, print, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=FilePath)
    options = parser.parse_args()
    program, rows, far = _program(), [], False
    print(f"{'':32}{'simulated':>11}{'real':>8}  Mbit/s, steady")
    for path in PATHS:
        halves = [path.half_bytes, 2 * path.half_bytes]
        simulated = [simulated_s(path, size) for size in halves]
        real = [real_s(path, size, program) for size in halves]
        rates = [8 * path.half_bytes / (long - short) for short, long in (simulated, real)]
        difference = rates[1] / rates[0] - 1
        print(f"{path.name:32}{rates[0] / 1e6:11.1f}{rates[1] / 1e6:8.1f}{difference:+8.1%}")
        far |= abs(difference) > WITHIN
        rows.append({"path": path.name, "simulated_bps": rates[0], "real_bps": rates[1]})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(far)


if __name__ == "__main__":
    main()
