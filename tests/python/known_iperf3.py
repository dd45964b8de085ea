"""Files of iperf3 whose truth is known: two of each of six causes.

Each went over a path of ``lfn shell`` in which one thing limits the test. ``python
tests/python/known_iperf3.py [NAME...]`` measures them again, or some; it needs iperf3, TUN and
network namespaces.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "iperf3" / "known"
TRIES = 5


@dataclass(frozen=True)
class Known:
    """A file, the path below it, and the cause of its rate."""

    name: str
    cause: str
    rate_bps: float
    rtt_s: float
    buffer_packets: float
    loss: float = 0.0
    path: tuple[str, ...] = ()
    """More options of ``lfn shell``."""
    near: str = ""
    """A line for sh before the test, at the sender."""
    far: str = ""
    """The same at the receiver."""
    iperf3: str = "-C cubic"

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def command(self) -> list[str]:
        """Of ``lfn shell``: its standard output is the file."""
        path = [f"--rate={self.rate_bps:.0f}bit/s", f"--rtt={self.rtt_s * 1e3:g}ms"]
        path += [f"--buffer={self.buffer_packets:g} packets", f"--loss={self.loss}", *self.path]
        serve = f"{self.far or 'true'}; exec iperf3 -s > /dev/null"
        test = f"{self.near or 'true'}; iperf3 -c $LFN_FAR -J -t 6 -i 2 {self.iperf3}"
        lfn = [sys.executable, "-m", "lfnlab.cli", "shell", "--no-live"]
        return [*lfn, *path, "--serve", serve, "--", "sh", "-c", test]


def _window(limit: int) -> str:
    return f'sysctl -qw net.ipv4.tcp_rmem="4096 65536 {limit}"'


def _send_buffer(limit: int) -> str:
    return f'sysctl -qw net.ipv4.tcp_wmem="4096 16384 {limit}"'


def _policer(rate: str, burst: str) -> tuple[str, str]:
    return "--set", f'link.policer={{ rate = "{rate}", burst = "{burst}" }}'


KNOWN = (
    Known("window-1", "window", 100e6, 0.04, 330, far=_window(262144)),
    Known("window-2", "window", 200e6, 0.02, 330, far=_window(131072)),
    Known("send-buffer-1", "send buffer", 100e6, 0.04, 330, near=_send_buffer(262144)),
    Known("send-buffer-2", "send buffer", 200e6, 0.03, 500, near=_send_buffer(393216)),
    Known("loss-1", "loss", 100e6, 0.04, 330, loss=1e-3),
    Known("loss-2", "loss", 50e6, 0.08, 330, loss=3e-4),
    Known("policer-1", "policer", 100e6, 0.04, 330, path=_policer("30Mbit/s", "60kB")),
    Known("policer-2", "policer", 50e6, 0.02, 80, path=_policer("10Mbit/s", "20kB")),
    Known("application-1", "application", 100e6, 0.04, 330, iperf3="-C cubic -b 20M"),
    Known("application-2", "application", 50e6, 0.1, 400, iperf3="-C bbr -b 5M"),
    Known("clean-1", "clean", 100e6, 0.04, 330),
    Known("clean-2", "clean", 20e6, 0.1, 170, iperf3="-C bbr"),
)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for known in (known for known in KNOWN if known.name in sys.argv[1:] or len(sys.argv) == 1):
        for _ in range(TRIES):
            run = subprocess.run(known.command(), capture_output=True, text=True, check=False)
            # The emulator was late, on a busy machine: the path was another.
            if run.returncode == 0 and "INVALID" not in run.stderr:
                known.file.write_text(run.stdout)
                print(known.name)
                break
        else:
            sys.exit(f"{known.name}: {run.stderr.strip() or run.stdout[-300:]}")


if __name__ == "__main__":
    main()
