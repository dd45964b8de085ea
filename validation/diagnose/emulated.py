"""Transfers of iperf3 over an emulated path: this Linux's TCP in real time, in namespaces alone.

Each takes 6 to 10 s. Beside the test run ``ss``, ten times a second, and ``tcpdump`` at both hosts.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lfnlab.errors import Unavailable

from .settings import Change

if TYPE_CHECKING:
    from .settings import Setting

PROGRAMS = ("iperf3", "ss", "tcpdump", "timeout", "setpriv")
#: Drops of the emulator itself, of which the path knows nothing, make another try.
TRIES = 3
#: iperf3's own is 1 s; people also take shorter ones.
INTERVALS_S = (1.0, 1.0, 0.5, 0.1)
#: How long a test may hang behind an outage.
PATIENCE_S = 20
#: A buffer of the kernel holds headers and slack besides payload.
OVERHEAD = 2.0


def missing() -> str | None:
    """The first program that this machine lacks."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


def iperf3(setting: Setting) -> str:
    """The test's command."""
    draws = random.Random(setting.seed)
    interval_s = draws.choice(INTERVALS_S) if setting.size_b is None else min(INTERVALS_S)
    said = [f"iperf3 -c $LFN_FAR -J -i {interval_s:g} -C {setting.law}"]
    if setting.size_b is None:
        said.append(f"-t {max(6, round(setting.duration_s))}")
    else:
        said.append(f"-n {setting.size_b} -l 16K")
    if setting.pace_bps is not None and draws.random() < 0.5:
        said.append(f"--fq-rate {setting.pace_bps:.0f}")
    elif setting.pace_bps is not None:
        # Blocks of 2 ms and more, so that they leave evenly.
        block = max(setting.payload_b, round(setting.pace_bps * 0.002 / 8))
        said.append(f"-b {setting.pace_bps:.0f} -l {min(block, 128 << 10)}")
    if setting.block_b is not None:
        blocks = max(1, round(setting.block_b / (32 << 10)))
        length = round(setting.block_b / blocks)
        bps = setting.block_b * 8 / setting.period_s
        said.append(f"-b {bps:.0f}/{blocks} -l {length}")
    return " ".join(said)


def _capture(host: str, folder: FilePath) -> str:
    return f"tcpdump -U -Z root -i any -s 128 -w {folder}/{host}.pcap tcp port 5201 2> /dev/null"


def scripts(setting: Setting, folder: FilePath) -> tuple[str, str]:
    """For sh: at the receiver, and at the sender."""
    far, near = [], []
    if setting.receive_window_b is not None:
        size = round(OVERHEAD * setting.receive_window_b)
        far.append(f'sysctl -qw net.ipv4.tcp_rmem="4096 {size} {size}"')
    if setting.send_buffer_b is not None:
        size = round(OVERHEAD * setting.send_buffer_b)
        near.append(f'sysctl -qw net.ipv4.tcp_wmem="4096 {size} {size}"')
    far += [f"{_capture('receiver', folder)} &", "exec iperf3 -s > /dev/null"]
    most_s = round(setting.duration_s) + PATIENCE_S
    near += [
        f"{_capture('sender', folder)} &",
        "capture=$!",
        f"for try in $(seq 100); do [ -s {folder}/sender.pcap ] && break; sleep 0.02; done",
        "(trap exit TERM; while :; do date +%s.%N; ss -tin dst $LFN_FAR; sleep 0.1; done) "
        f"> {folder}/ss.log &",
        "log=$!",
        f"timeout {most_s} {iperf3(setting)} > {folder}/iperf3.json",
        "result=$?",
        "kill $log",
        # libpcap hands packets over after a second at the latest.
        "sleep 1.2",
        "kill -INT $capture",
        "wait $capture",
        "exit $result",
    ]
    return "\n".join(far), "\n".join(near)


def emulated(setting: Setting, folder: FilePath) -> None:
    """Captures at both hosts, the log of ``ss`` and the JSON of iperf3.

    Raises:
        Unavailable: a program is missing.
        RuntimeError: the emulator or iperf3 failed again and again.
    """
    if (lacks := missing()) is not None:
        raise Unavailable(f"transfers over the emulator need {lacks}")
    path, report = folder / "path.toml", folder / "report.json"
    # Nobody waits for the end of an outage that is in the simulator's last second.
    ends_s = setting.duration_s + 1
    up = (Change(ends_s, down=False),) if any(c.down for c in setting.changes) else ()
    longer = replace(setting, duration_s=ends_s + PATIENCE_S, changes=(*setting.changes, *up))
    path.write_text(longer.toml())
    far, near = scripts(setting, folder)
    # Whoever kills this process ends the path and all behind it, too.
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "lfnlab.cli", "shell"]
    command += ["--no-live", f"--scenario={path}"]
    command += [f"--report={report}", "--serve", far, "--", "sh", "-c", near]
    for _ in range(TRIES):
        limit_s = setting.duration_s + 2 * PATIENCE_S
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
        if done.returncode == 0 and not any(json.loads(report.read_text())["own_drops"].values()):
            path.unlink()
            return
    raise RuntimeError(f"{command}: {done.returncode} {done.stderr[-300:]} {folder}")
