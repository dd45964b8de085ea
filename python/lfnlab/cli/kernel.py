"""``lfn kernel``: laws of this package in the running Linux."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import App, Parameter

from lfnlab import kernel as linux
from lfnlab.analysis.table import Table, plain
from lfnlab.cli.options import Json, print_json
from lfnlab.errors import LabError, UsageError
from lfnlab.kernel import host, loopback
from lfnlab.machine import needs_linux
from lfnlab.printable import say

PR_SET_PDEATHSIG = 1  # linux/prctl.h
CHECK_BYTES, CHECK_DROP_INTERVAL = 8_000_000, 500

kernel = App(
    name="kernel",
    help="""\
Load laws into the running Linux as congestion controls for any program.

Start here, as root:

    lfn kernel list
    lfn kernel load htcp-be cubic
    iperf3 -c host -C lfn_htcp_be
    lfn kernel unload --all

Laws stay until `unload` or a reboot; `load LAW... --for COMMAND...` keeps them only while a command
runs. The host's default does not change. `docs/kernel.md` lists the requirements, `lfn doctor`
those that this host lacks.
""",
)


@kernel.command(name="list")
def list_(*, json: Json = False) -> int:
    """List the laws that Linux can run, and the requirements that this host lacks."""
    states = linux.status()
    if json:
        print_json({"schema": 1, "laws": [state._asdict() for state in states]})
        return 0
    _print_rows(
        ("law", "in Linux", "here"),
        [(state.law, state.kernel_name, state.missing or "can be loaded") for state in states],
    )
    return 0


@kernel.command
def load(
    *laws: str,
    for_: Annotated[
        tuple[str, ...], Parameter("--for", negative="", allow_leading_hyphen=True)
    ] = (),
) -> int:
    """Load laws into the kernel, all or none.

    Laws stay loaded when this command ends. `--for` takes the rest of the line as a command: the
    laws stay while it runs, and are unloaded however it or this command ends. The exit code is
    then the command's:

        lfn kernel load htcp-be --for iperf3 -c host -C lfn_htcp_be

    Args:
        laws: Names, as in `lfn kernel list`, or a header FILE.h.
        for_: A command and its arguments.
    """
    chosen = _chosen(laws)
    if not for_:
        linux.load(chosen)
        return 0
    with linux.attached(chosen):
        return _run(for_)


def _run(command: Sequence[str]) -> int:
    """Run a command that gets SIGTERM when this process dies; its exit code, as a shell has it."""
    libc, this = ctypes.CDLL(None), os.getpid()

    def end_with_this() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != this:  # it died first
            os._exit(128 + signal.SIGTERM)

    try:
        child = subprocess.Popen(command, preexec_fn=end_with_this)
    except OSError as error:
        raise UsageError(f"--for: {command[0]}: {error.strerror}") from None
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return code if code >= 0 else 128 - code


@kernel.command
def unload(*laws: str, all_: Annotated[bool, Parameter("--all", negative="")] = False) -> int:
    """Unload laws; connections that use one keep it until they close.

    Args:
        laws: Names, as in `lfn kernel list`, or a header FILE.h.
        all_: Unload all laws of `load`.
    """
    if all_ == bool(laws):
        raise UsageError("name laws, or write --all")
    chosen = _chosen(laws) if laws else linux.loaded()
    linux.unload(chosen)
    return 0


@kernel.command
def status(*, json: Json = False) -> int:
    """List the loaded laws, the processes that keep them, and the default for new connections."""
    needs_linux("lfn kernel status")
    states = [state for state in linux.status() if state.available or state.pinned]
    default = linux.DEFAULT.read_text().strip()
    if json:
        print_json({"schema": 1, "default": default, "laws": [state._asdict() for state in states]})
        return 0
    rows = [
        (state.law, state.kernel_name, "lfn kernel unload" if state.pinned else "a process")
        for state in states
    ]
    if rows:
        _print_rows(("law", "in Linux", "until the end of"), rows)
    say(f"new connections use {default} unless they choose")
    return 0


@kernel.command
def check(*laws: str, json: Json = False) -> int:
    """Load each law, transfer 8 MB with losses, and unload it.

    The transfer uses the loopback of a new network namespace. The check shows that the kernel's
    verifier accepts the law and that data arrive; other tests compare its decisions bit for bit
    (`docs/kernel.md`). Exit code 1 if one law fails.

    Args:
        laws: Names, as in `lfn kernel list`, or a header FILE.h; default all that this host
            can load.
    """
    host.demand()
    chosen = _chosen(laws) if laws else linux.laws()
    results: list[dict[str, Any]] = []
    for law in chosen:
        if not laws and host.missing_for(law.name, steers=law.steers):
            continue
        results.append(_checked(law))
    if json:
        print_json({"schema": 1, "laws": results})
    else:
        _print_rows(
            ("law", "Mbit/s", "largest cwnd", "losses", ""),
            [
                (
                    r["law"],
                    f"{r['rate_bps'] / 1e6:.0f}",
                    r["cwnd_max"],
                    r["retransmits"],
                    r["verdict"],
                )
                for r in results
            ],
        )
    return 0 if all(r["verdict"] == "ok" for r in results) else 1


def _checked(law: linux.KernelLaw) -> dict[str, Any]:
    """Load a law, transfer, unload; the verdict contains what the kernel refused."""
    found: dict[str, Any] = {"law": law.name, "rate_bps": 0.0, "cwnd_max": 0, "retransmits": 0}
    try:
        with linux.attached([law]):
            result = loopback.transfer(law.kernel_name, CHECK_BYTES, CHECK_DROP_INTERVAL)
    except LabError as error:
        return found | {"verdict": str(error)}
    samples = result["samples"]
    found |= {
        "rate_bps": CHECK_BYTES * 8 / result["duration_s"],
        "cwnd_max": max(sample["cwnd"] for sample in samples),
        "retransmits": samples[-1]["retransmits"],
    }
    good = result["intact"] and result["law"] == law.kernel_name
    return found | {"verdict": "ok" if good else "the payload was damaged"}


def _chosen(names: Sequence[str]) -> list[linux.KernelLaw]:
    if not names:
        raise UsageError("name at least one law; lfn kernel list has them")
    return list(dict.fromkeys(linux.find(name) for name in names))


def _print_rows(headings: tuple[str, ...], rows: Sequence[Sequence[object]]) -> None:
    cells = tuple(tuple(map(str, row)) for row in rows)
    say(*plain(Table(headings, cells, len(headings))), sep="\n")
