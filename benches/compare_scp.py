"""CPU time per gigabyte of a copy over loopback: `lfn-udt` under a key, plain, and scp.

$ python -m benches.compare_scp [--megabytes N] [--rounds N] [--json FILE]

Run from the repository's root, with cargo, ssh, scp, ssh-keygen and sshd (openssh-server). The same
file goes from memory to memory (/dev/shm). An sshd of its own listens on loopback, with keys and
settings in a temporary folder; it ends with the bench, also when that is killed. CPU time is user
and system of both ends with all of their processes, so other work on the machine disturbs it less
than it does wall time; goodput is not reported. scp has the cipher that ssh chooses, and
aes256-gcm@openssh.com, which is the cipher of `--key`. scp checks no hash of its own and does not
sync the file; `lfn-udt recv` does both.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import json
import os
import pwd
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benches.compare_udt import ROOT, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

PR_SET_PDEATHSIG = 1
LIMIT_S = 300
CIPHERS = {"scp": [], "scp, aes256-gcm": ["-c", "aes256-gcm@openssh.com"]}
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def _ends_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _ticks(process: int) -> int:
    """CPU time of a process and of its children that ended, in clock ticks; 0 when it is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    return sum(map(int, stat.rpartition(") ")[2].split()[11:15]))


def _run(command: list[str]) -> float:
    """CPU time of a program and of those that it waited for, in seconds."""
    process = subprocess.Popen(command, preexec_fn=_ends_with_parent, **QUIET)  # type: ignore[call-overload]
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed: {process.returncode}")
    return float(used.ru_utime + used.ru_stime)


@contextmanager
def _sshd(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """An sshd on loopback with keys of its own, and the options of its clients."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if sshd is None:
        raise SystemExit("no sshd; install openssh-server")
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "Subsystem sftp internal-sftp\n"
    )
    # Without it sshd of root does not start. It is empty, and the package makes it too.
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(command, preexec_fn=_ends_with_parent, stdout=log, stderr=log)
    options = ["-q", "-B", "-F", "none", "-P", str(port), "-i", str(folder / "user")]
    for option in (
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=no",
        f"UserKnownHostsFile={folder}/known",
        "Compression=no",
    ):
        options += ["-o", option]
    try:
        time.sleep(1)
        if server.poll() is not None:
            raise SystemExit(f"sshd ended: {(folder / 'log').read_text()}")
        yield server, options
    finally:
        server.kill()
        server.wait()
        log.close()


def _scp(server: subprocess.Popen[bytes], command: list[str]) -> float:
    """CPU time of scp and ssh, and of what sshd started for them."""
    before = _ticks(server.pid)
    client_s = _run(command)
    # The session ends, and its processes are counted, shortly after the client.
    end = time.monotonic() + 5
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    while children.read_text() and time.monotonic() < end:
        time.sleep(0.01)
    return client_s + (_ticks(server.pid) - before) / os.sysconf("SC_CLK_TCK")


def _udt(ours: str, file: Path, into: Path, key: list[str]) -> float:
    here = f"127.0.0.1:{free_port()}"
    common = ["--rate", "20Gbit/s", "--rtt", "10ms", "--quiet", *key]
    recv = [ours, "recv", str(into), "--listen", here, "--once", *common]
    server = subprocess.Popen(recv, preexec_fn=_ends_with_parent, **QUIET)  # type: ignore[call-overload]
    time.sleep(0.5)
    client_s = _run([ours, "send", str(file), "--to", here, *common])
    _, status, used = os.wait4(server.pid, 0)
    server.returncode = os.waitstatus_to_exitcode(status)
    if server.returncode:
        raise SystemExit(f"{recv} failed")
    return client_s + float(used.ru_utime + used.ru_stime)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    signal.alarm(LIMIT_S * options.rounds)
    build = ["cargo", "build", "--release", "--locked", "-p", "lfn-transfer"]
    subprocess.run(build, cwd=ROOT, check=True)
    ours = str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/lfn-udt")
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="lfn-scp-") as name:
        folder = Path(name)
        file, key = folder / "file", folder / "key"
        file.write_bytes(os.urandom(1_000_000) * options.megabytes)
        key.touch(mode=0o600)
        key.write_bytes(base64.b64encode(os.urandom(32)))
        user = pwd.getpwuid(os.geteuid()).pw_name
        with _sshd(folder) as (server, ssh):
            for _ in range(options.rounds):
                for kind in ("send, recv", "send, recv, --key", *CIPHERS):
                    into = folder / "into"
                    into.mkdir()
                    if kind in CIPHERS:
                        target = f"{user}@127.0.0.1:{into}/file"
                        used_s = _scp(server, ["scp", *CIPHERS[kind], *ssh, str(file), target])
                    else:
                        secret = ["--key", str(key)] if "--key" in kind else []
                        used_s = _udt(ours, file, into, secret)
                    if (into / "file").stat().st_size != file.stat().st_size:
                        raise SystemExit(f"{kind}: the file did not arrive whole")
                    rows.setdefault(kind, []).append(used_s * 1e3 / options.megabytes)
                    shutil.rmtree(into)
    print(f"{'':20}{'s of CPU a GB':>14}{'least':>8}{'most':>8}   median of {options.rounds}")
    for kind, used in rows.items():
        print(f"{kind:20}{statistics.median(used):14.2f}{min(used):8.2f}{max(used):8.2f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
