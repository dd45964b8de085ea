# SPDX-License-Identifier: MIT OR Apache-2.0
"""`lfn shell`: what a program meets behind a path, and that nothing stays when it ends.

All traffic is bounded and stays in namespaces that the tests made. Times are bounded from below, by
the path; from above only where a quiet and a busy machine agree.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FAR = Path(__file__).parent / "far.py"
LFN = [sys.executable, "-m", "lfnlab.cli"]
SERVE = f"exec {sys.executable} {FAR} serve"
LIMIT_S = 60
MARK = "LFN_TEST_MARK"


def shell(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*prefix, *LFN, "shell", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


def measure(
    test: str, number: int, *options: str, out: Path, prefix: tuple[str, ...] = ()
) -> tuple[Any, dict[str, Any]]:
    """The output of a test of far.py behind a path, and the path's report."""
    report = out / "report.json"
    near = (sys.executable, FAR, test, number)
    run = shell(*options, "--serve", SERVE, "--report", report, "--", *near, prefix=prefix)
    assert run.returncode == 0, run.stderr
    path: dict[str, Any] = json.loads(report.read_text())
    assert path["own_drops"] == {"device": 0, "unknown": 0}
    return json.loads(run.stdout), path


def test_a_packet_takes_the_round_trip_time(tmp_path: Path) -> None:
    times_s, path = measure("ping", 20, "--rtt", "40ms", "--rate", "1Gbit/s", out=tmp_path)
    assert min(times_s) >= 0.040
    assert min(times_s) < 0.045
    assert path["lateness"]["count"] >= 40


@pytest.mark.parametrize(
    ("option", "segments"), [("--offload", "65535"), ("--no-offload", "1")], ids=["with", "without"]
)
def test_segments_leave_together_or_singly(option: str, segments: str) -> None:
    run = shell(option, "--no-live", "--", "ip", "-details", "link", "show", "lfn0")
    assert run.returncode == 0, run.stderr
    assert f"gso_max_segs {segments} " in run.stdout


def test_a_buffer_holds_what_it_says_and_keeps_the_order(tmp_path: Path) -> None:
    path = ("--rate", "1Mbit/s", "--rtt", "2ms", "--buffer", "30 packets")
    came, report = measure("burst", 200, *path, out=tmp_path)
    forward = next(link for link in report["links"] if link["link"] == "forward")
    assert forward["max_waiting"] == 30
    # What did not come was dropped by this queue; a SYN of the question for it may have been, too.
    assert forward["drops_full"] >= 200 - len(came)
    # The queue, the packet in service, and what left while the burst came.
    assert 31 <= len(came) < 100
    assert came == sorted(came)
    assert came[:31] == list(range(31))


def test_a_file_arrives_no_faster_than_the_path_allows(tmp_path: Path) -> None:
    size_bytes, rate_bps = 4_000_000, 50e6
    path = ("--rate", "50Mbit/s", "--rtt", "20ms", "--buffer", "20 packets", "--loss", "0.001")
    result, report = measure("transfer", size_bytes, *path, out=tmp_path)
    assert result["intact"]
    assert result["duration_s"] > size_bytes * 8 / rate_bps
    # Twice as long is a path that lost what it should carry.
    assert result["duration_s"] < 20 * size_bytes * 8 / rate_bps
    forward, reverse = report["links"]
    assert forward["drops_full"] > 0
    assert forward["sent_bytes"] > size_bytes
    assert reverse["lost"] <= 1  # a FIN may be


def test_schedules_change_the_path_on_the_way(tmp_path: Path) -> None:
    scenario = tmp_path / "path.toml"
    scenario.write_text(
        'schema = 1\nduration = "60s"\n[link]\nrate = "1Gbit/s"\ndelay = "5ms"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "100ms"\n'
        '[[schedule]]\nat = "3s"\nlink = "forward"\ndelay = "105ms"\n'
    )
    times_s, _ = measure("ping", 33, "--scenario", str(scenario), out=tmp_path)
    assert min(times_s) < 0.2
    assert times_s[-1] >= 0.2


def test_a_path_in_a_path_adds_up(tmp_path: Path) -> None:
    outer = ("--rtt", "50ms", "--serve", SERVE)
    # The inner path's far end is the outer one's near end; the server is behind both.
    inner = " ".join([*LFN, "shell", "--here", "--rtt", "30ms", "--"])
    ping = f"{sys.executable} {FAR} ping 20"
    script = f'far=$LFN_FAR; exec {inner} sh -c "LFN_FAR=$far exec {ping}"'
    run = shell(*outer, "--", "sh", "-c", script)
    assert run.returncode == 0, run.stderr
    assert 0.080 <= min(json.loads(run.stdout)) < 0.090


def test_a_user_without_rights_has_a_path_of_his_own() -> None:
    if os.geteuid() != 0:
        pytest.skip("RIGHTS NOT TESTED: only root can give them up; the other tests ran without")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if subprocess.run([*nobody, "unshare", "--user", "true"], capture_output=True).returncode:
        pytest.skip("USER NAMESPACES NOT TESTED: this kernel gives them to root alone")
    if subprocess.run([*nobody, *LFN, "--version"], capture_output=True).returncode:
        pytest.skip("USER NAMESPACES NOT TESTED: this checkout cannot be read by others")
    if subprocess.run([*nobody, "sh", "-c", ": <>/dev/net/tun"], capture_output=True).returncode:
        pytest.skip(
            "USER NAMESPACES NOT TESTED: only root may open /dev/net/tun here; chmod a+rw "
            "/dev/net/tun, as root (lfn doctor says so, too)"
        )
    run = shell("--here", "--", "true", prefix=nobody)
    assert run.returncode == 4
    assert "CAP_SYS_ADMIN" in run.stderr
    # Nobody listens at the far end, and its kernel says so after a round trip.
    knock = "date +%s%N; (: </dev/tcp/$LFN_FAR/9) 2>/dev/null || date +%s%N"
    knock = f"for i in 1 2 3 4 5; do {knock}; done; exit 9"
    run = shell("--rtt", "50ms", "--", "bash", "-c", knock, prefix=nobody)
    assert run.returncode == 9, run.stderr
    read_ns = [int(word) for word in run.stdout.split()]
    took_ns = [after - before for before, after in zip(read_ns[::2], read_ns[1::2], strict=True)]
    assert 50_000_000 <= min(took_ns) < 900_000_000


def test_doctor_names_the_remedy_for_a_device_of_root_alone() -> None:
    """On many machines /dev/net/tun has mode 0600. A mount namespace has one like that."""
    if os.geteuid() != 0:
        pytest.skip("DOCTOR NOT TESTED: only root can hide the device")
    hide = (
        "mount -t tmpfs none /dev/net && mknod /dev/net/tun c 10 200 && chmod 600 /dev/net/tun "
        '|| exit 99; exec "$@"'
    )
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    for prefix, subject, state in (
        ((), "TUN without root", "limited"),
        (nobody, "TUN", "missing"),
    ):
        command = ["unshare", "--mount", "sh", "-c", hide, "sh", *prefix, *LFN, "doctor", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode == 99 or "No module" in done.stderr or "denied" in done.stderr:
            pytest.skip(f"DOCTOR NOT TESTED: {done.stderr.strip()[:100]}")
        (found,) = (one for one in json.loads(done.stdout)["checks"] if one["subject"] == subject)
        assert found["state"] == state
        assert found["mend"].startswith("chmod a+rw /dev/net/tun, as root")


def test_exit_codes_are_the_commands() -> None:
    for script, code in [("exit 7", 7), ("kill -9 $$", 137)]:
        assert shell("--", "sh", "-c", script).returncode == code, script
    missing = shell("--", "/no/such/program")
    assert missing.returncode == 127
    assert "/no/such/program" in missing.stderr
    for wrong, words in [((), "no command"), (("--rate", "fast", "--", "true"), "fast")]:
        run = shell(*wrong)
        assert run.returncode == 2
        assert words in run.stderr


def test_what_no_packet_carries_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "xcp.toml"
    scenario.write_text(
        'schema = 1\nduration = "1s"\n[link]\nrate = "1Gbit/s"\nrouter = { kind = "xcp" }\n'
        '[[flow]]\nlaw = "xcp"\nrtt = "10ms"\n'
    )
    run = shell("--scenario", scenario, "--", "true")
    assert run.returncode == 2
    said = r'xcp\.toml: router of link forward: its header .*; allowed: no router, or "vcp"'
    assert re.search(said, run.stderr), run.stderr


def test_a_scenario_without_a_flow_has_no_path(tmp_path: Path) -> None:
    scenario = tmp_path / "empty.toml"
    scenario.write_text(
        'schema = 1\nduration = "1s"\n[link]\nrate = "1Gbit/s"\ndelay = "1ms"\n'
        'queue = { size = "9 packets" }\n[background]\nlevel = 1\n'
    )
    run = shell("--scenario", scenario, "--", "true")
    assert run.returncode == 2
    assert "empty.toml" in run.stderr
    assert "flow: there is none; write a [[flow]]" in run.stderr


# What stays when a run ends, however it ends


def marked(mark: str) -> set[int]:
    """Processes with this word in their environment."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone
            if f"{MARK}={mark}".encode() in (directory / "environ").read_bytes():
                found.add(int(directory.name))
    return found


def host_state() -> set[str]:
    """Interfaces, sysctls and mounts where the tests run."""
    paths = [
        *Path("/proc/sys/net/ipv4").glob("tcp_*mem"),
        *Path("/proc/sys/net/core").glob("*mem*"),
    ]
    paths += [Path("/proc/sys/net/ipv4", name) for name in ("ip_forward", "tcp_no_metrics_save")]
    settings = {f"{path} = {path.read_text()}" for path in paths}
    interfaces = {line.split(":")[0] for line in Path("/proc/net/dev").read_text().splitlines()}
    return settings | interfaces | {Path("/proc/self/mounts").read_text()}


@contextlib.contextmanager
def running() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A shell whose command and server have children that would outlive them."""
    mark = str(uuid.uuid4())
    stay = "sleep 100 & setsid sleep 100 &"
    serve = f"{stay} {sys.executable} {FAR} serve; true"
    command = [*LFN, "shell", "--serve", serve, "--", "sh", "-c", f"{stay} wait"]
    environment = {**os.environ, MARK: mark}
    victim = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield victim, mark
    finally:
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        victim.wait()


# lfn, the emulator, the first process; two shells, each with two sleeps; the server.
EVERYBODY = 10


def await_processes(victim: subprocess.Popen[bytes], mark: str, count: int) -> None:
    deadline_s = time.monotonic() + 60
    while len(marked(mark)) < count:
        assert time.monotonic() < deadline_s
        assert victim.poll() is None
        time.sleep(0.005)


def assert_nothing_left(before: set[str], mark: str) -> None:
    deadline_s = time.monotonic() + 60
    while left := marked(mark) or host_state() ^ before:
        assert time.monotonic() < deadline_s, f"left behind or changed: {left}"
        time.sleep(0.02)


def descendants(parent: int) -> list[int]:
    """The first child, its first child and so on."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    children = [int(pid) for pid in path.read_text().split()]
    return [children[0], *descendants(children[0])] if children else []


@pytest.mark.parametrize("number", range(int(os.environ.get("LFN_SHELL_KILLS", "5"))))
def test_a_kill_at_a_random_moment_leaves_nothing(number: int) -> None:
    draw = random.Random(int(os.environ.get("LFN_SEED", "0")) * 1000 + number)
    before = host_state()
    with running() as (victim, mark):
        await_processes(victim, mark, draw.randint(1, EVERYBODY))
        time.sleep(draw.uniform(0, 0.03))
        processes = [victim.pid, *descendants(victim.pid)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(processes[:3]), signal.SIGKILL)
        assert_nothing_left(before, mark)


@pytest.mark.parametrize(
    ("sent", "to_group"),
    [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGINT, True)],
    ids=["TERM", "HUP", "Ctrl-C"],
)
def test_a_signal_ends_the_command_and_leaves_nothing(sent: signal.Signals, to_group: bool) -> None:
    before = host_state()
    with running() as (victim, mark):
        await_processes(victim, mark, EVERYBODY)
        (os.killpg if to_group else os.kill)(victim.pid, sent)
        assert victim.wait(timeout=60) == 128 + sent
        assert_nothing_left(before, mark)


def test_the_far_end_here_leaves_nothing(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("--here NOT TESTED: needs root")
    # A namespace of the test's stands for the host's.
    lfn = " ".join([*LFN, "shell", "--here", "--rtt", "10ms", "--"])
    script = (
        f"before=$(cat /proc/net/dev /proc/sys/net/ipv4/tcp_*mem | wc); "
        f"{lfn} sh -c 'grep -c lfn0 /proc/net/dev' && {lfn} sh -c 'kill -9 $$'; "
        f'test "$before" = "$(cat /proc/net/dev /proc/sys/net/ipv4/tcp_*mem | wc)" && echo same'
    )
    run = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert run.stdout.split() == ["1", "same"], run.stderr
