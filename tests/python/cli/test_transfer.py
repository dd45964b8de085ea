"""``lfn send`` and ``lfn recv`` over loopback."""

from __future__ import annotations

import contextlib
import inspect
import ipaddress
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command import LFN, process

from lfnlab import _core
from lfnlab.cli.transfer import _listener, recv
from lfnlab.errors import LawError, UsageError

if TYPE_CHECKING:
    from command import Lfn

ROOT = Path(__file__).parents[3]


@contextmanager
def receiver(into: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A receiver and its address."""
    command = [*LFN, "recv", str(into), "--listen", "127.0.0.1:0", "--json", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stderr
            for line in process.stderr:
                if found := re.match(r"listening at (\S+)", line):
                    yield process, found[1]
                    break
        finally:
            process.kill()


send = partial(process, "send")


def test_messages_keep_brackets_and_show_control_characters(
    lfn: Lfn,
) -> None:
    with _listener(as_json=False) as tell:
        tell(json.dumps({"listening": "[fe80::1%eth0]:9000"}))
        tell(json.dumps({"failed": "[red]file\x1b[2J"}))
    said = lfn.said().err
    assert "listening at [fe80::1%eth0]:9000" in said
    assert "[red]file\\x1b[2J" in said


def test_a_file_arrives_and_both_ends_say_how(tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "into"
    into.mkdir()
    file.write_bytes(bytes(range(256)) * 20_000)
    with receiver(into, "--once") as (process, address):
        sent = send(str(file), "--to", address, "--json", "--law", "cubic")
        assert sent.returncode == 0, sent.stderr
        assert "window: 2 x 1Gbit/s x 100ms = 2 x 12500000 B" in sent.stderr
        received, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert (into / "file").read_bytes() == file.read_bytes()
    ends = json.loads(sent.stdout), json.loads(received)
    assert [end["law"] for end in ends] == ["cubic", None]
    for end in ends:
        assert (end["files"], end["total_bytes"]) == (1, 5_120_000)
        assert end["goodput_bps"] == pytest.approx(5_120_000 * 8 / end["completion_s"])


def test_a_receiver_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    with receiver(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("lfn: interrupted; complete files are kept")
    assert "runs" not in said


def test_a_sender_that_waits_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.settimeout(60)
        to = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [*LFN, "send", str(file), "--to", to]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            silent.recv(2048)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert process.returncode in (1, 130), said
    if process.returncode == 130:
        assert said == "lfn: interrupted; repeat the command to continue\n"


def test_errors_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    nobody = send(str(file), "--to", "127.0.0.1:9")
    assert nobody.returncode == 1
    error = nobody.stderr.splitlines()[-1]
    assert error.endswith("connection to 127.0.0.1:9: no answer to the handshake")
    assert "Traceback" not in nobody.stderr


def test_exit_codes_and_no_arithmetic_before_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    key = tmp_path / "key"
    key.write_text("A" * 43 + "=")
    key.chmod(0o644)
    for words, code, text in [
        (["send", str(file), "--to", "nowhere"], 2, "HOST:PORT"),
        (["send", str(tmp_path / "none"), "--to", "127.0.0.1:9"], 3, "No such file"),
        (["recv", str(tmp_path / "none")], 3, "No such file"),
        (["recv", str(tmp_path), "--listen", "0.0.0.0:0"], 2, "--insecure anybody"),
        (["recv", str(tmp_path), "--listen", "nowhere"], 2, "HOST:PORT"),
        (["send", str(file), "--to", "127.0.0.1:9", "--key", str(key)], 3, "chmod 600"),
        (["send", str(file), "--to", "127.0.0.1:9"], 1, "no answer"),
    ]:
        ended = process(*words)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (code, 1), ended.stderr
        assert text in ended.stderr


def test_a_receiver_listens_on_loopback_unless_told() -> None:
    listen = inspect.signature(recv).parameters["listen"].default
    assert ipaddress.ip_address(listen.rpartition(":")[0]).is_loopback


def test_a_key_on_both_ends(tmp_path: Path) -> None:
    file, into, key = tmp_path / "file", tmp_path / "into", tmp_path / "key"
    into.mkdir()
    file.write_bytes(bytes(range(256)) * 1000)
    line = f"(umask 077; head -c 32 /dev/urandom | base64 > {key})"
    subprocess.run(["sh", "-c", line], check=True)
    with receiver(into, "--once", "--key", str(key)) as (process, address):
        plain = send(str(file), "--to", address)
        assert plain.returncode == 1
        assert "wants a key" in plain.stderr
        sent = send(str(file), "--to", address, "--key", str(key))
        assert sent.returncode == 0, sent.stderr
        process.communicate(timeout=20)
    assert (into / "file").read_bytes() == file.read_bytes()


def test_the_lines_of_the_page_hand_a_key_over_ssh(tmp_path: Path) -> None:
    """With an ssh that runs its command in another folder of this machine, and on loopback."""
    page = (ROOT / "docs" / "udt.md").read_text()
    found = re.search(r"```sh not run: needs a second machine\n(.*?)```", page, re.DOTALL)
    assert found
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lines = found[1].replace("0.0.0.0:9000", f"127.0.0.1:{port}")
    lines = lines.replace("HOST:9000", f"127.0.0.1:{port}")
    here, there, programs = tmp_path / "here", tmp_path / "there", tmp_path / "bin"
    for folder in here, there, programs:
        folder.mkdir()
    for name, script in [
        ("ssh", f'[ "$1" = HOST ] || exit 9; shift; cd {there} && exec sh -c "$*"'),
        ("lfn", f'exec {sys.executable} -m lfnlab.cli "$@"'),
    ]:
        program = programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    data = bytes(range(256)) * 1000
    (here / "data.bin").write_bytes(data)
    env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["bash", "-ec", f"{lines}wait $!"]
    ended = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert (there / "inbox" / "data.bin").read_bytes() == data
    for key in here / "lfn.key", there / "lfn.key":
        assert key.stat().st_mode & 0o077 == 0
    assert (here / "lfn.key").read_bytes() == (there / "lfn.key").read_bytes()


def test_a_progress_line_on_a_terminal(tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "into"
    into.mkdir()
    file.write_bytes(bytes(range(256)) * 20_000)
    with receiver(into, "--once") as (process, address):
        ours, theirs = pty.openpty()
        command = [*LFN, "send", str(file), "--to", address, "--max-rate", "20Mbit/s"]
        with subprocess.Popen(command, stderr=theirs) as sender:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # its end of the terminal is closed
                while got := os.read(ours, 4096):
                    shown += got
        os.close(ours)
        assert sender.returncode == 0
        process.communicate(timeout=20)
    assert b"Mbit/s" in shown
    assert b"RTT" in shown


def test_a_plan_names_what_is_wrong() -> None:
    with pytest.raises(UsageError, match='--rate: "10" has no unit'):
        _core.UdtPlan("10", "1ms", 1500, None, "udt")
    with pytest.raises(LawError, match='no variant "5"'):
        _core.UdtPlan("1Gbit/s", "1ms", 1500, None, "udt:5")
    with pytest.raises(LawError, match="needs routers"):
        _core.UdtPlan("1Gbit/s", "1ms", 1500, None, "vcp")


@pytest.mark.parametrize("mss", [-1, 0, 20, 575, 65_536, 2**31, 2**32 + 1500, -(2**64), 10**30])
def test_every_number_out_of_range_is_named(mss: int) -> None:
    with pytest.raises(UsageError, match=f"^--mss: {mss} is not from 576 to 65535$"):
        _core.UdtPlan("1Gbit/s", "1ms", mss, None, "udt")


@pytest.mark.parametrize("command", ["send", "recv"])
def test_numbers_that_are_none_are_errors_of_one_line(tmp_path: Path, command: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    words = [str(file), "--to", "127.0.0.1:9"] if command == "send" else [str(tmp_path)]
    options = [
        ("--mss", "-1", "--mss: -1 is not from 576 to 65535"),
        ("--mss", "9" * 30, "is not from 576 to 65535"),
        ("--mss", "1.5", "mss"),
        ("--rate", "-1Gbit/s", "--rate"),
        ("--rate", "0bit/s", "--rate: 0bit/s carries nothing"),
        ("--rate", "nan", "--rate"),
        ("--rtt", "-1ms", "--rtt"),
        ("--rtt", "1e99s", "--rtt"),
    ]
    if command == "send":
        options += [
            (
                "--max-rate",
                "1bit/s",
                "--max-rate: at 1bit/s a packet of 1500 bytes takes more than",
            ),
            ("--max-rate", "0bit/s", "--max-rate: at 0bit/s"),
            ("--max-rate", "-1bit/s", "--max-rate"),
            ("--max-rate", "", "--max-rate"),
        ]
    for option, value, text in options:
        ended = process(command, *words, f"{option}={value}")
        assert ended.returncode == 2, (option, value, ended.stderr)
        assert text in ended.stderr, ended.stderr
        assert len(ended.stderr.splitlines()) == 1, ended.stderr


def test_an_address_names_its_interface(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    for to, text in [
        ("[fe80::1]:9", "needs its interface, as [fe80::1%eth0]:9000"),
        ("[fe80::1%none]:9", "no interface is called"),
    ]:
        ended = send(str(file), "--to", to)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
        assert text in ended.stderr
