"""A run in a process of its own: for controllers of files, which may crash or hang.

The process reads the run from standard input and writes lines: ``p FRACTION`` while it computes,
at last ``d BYTES`` and so many bytes of files, or ``e ERROR``. The first run of a library is
computed twice: a controller that reads a clock or draws from the system is refused, since its
results could not be repeated.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from lfnlab import _core
from lfnlab.control_laws import foreign
from lfnlab.errors import LabError, LawError

STALLS_AFTER_S = 60.0
"""A run whose simulated time stands still for so long is ended."""
_TURN_S = 0.2

Files = dict[str, bytes]
Tell = Callable[[float], bool]

_repeated: set[str] = set()
"""Digests of libraries whose runs were found equal."""
_lock = threading.Lock()


def simulate(
    scenario: _core.Scenario, command: str, libraries: list[foreign.Library], tell: Tell | None
) -> Files | None:
    """The files of one run; None if ``tell`` cancelled it.

    Raises:
        LabError: when the controller crashed, stood still or decided what cannot be.
        LawError: when it is not deterministic.
    """
    files = _computed(scenario, command, libraries, tell)
    fresh = [one.digest for one in libraries if one.digest not in _repeated]
    if files is None or not fresh:
        return files
    again = _computed(scenario, command, libraries, tell)
    if again is None:
        return None
    if files["summary.json"] != again["summary.json"]:
        names = ", ".join(one.name for one in libraries)
        raise LawError(
            f"{names}: two runs of one scenario and seed differ; allowed: decisions from the "
            "arguments of the calls and the seed alone"
        )
    with _lock:
        _repeated.update(fresh)
    return files


def _computed(
    scenario: _core.Scenario, command: str, libraries: list[foreign.Library], tell: Tell | None
) -> Files | None:
    asked = {
        "scenario": scenario.text,
        "command": command,
        "memory_bytes": _core.memory_limit_bytes(),
        "libraries": [
            [str(one.path), one.digest, one.name, list(one.values), one.class_name]
            for one in libraries
        ],
    }
    names = ", ".join(one.name for one in libraries)
    child = subprocess.Popen(
        [sys.executable, "-m", "lfnlab.experiment.alone"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(asked).encode())
            child.stdin.close()
        except BrokenPipeError:  # it ended; its exit code tells why
            pass
        told = _told(child.stdout, tell, names)
        if told is None:
            return None
        if told:
            return _unpacked(told)
        raise LabError(f"{names}: its process ended: {foreign.ended(child.wait())}")
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _told(output: IO[bytes], tell: Tell | None, names: str) -> bytes | None:
    """The files that a process wrote; empty if it ended early, None if ``tell`` cancelled it."""
    text, done, moved = b"", 0.0, time.monotonic()
    with selectors.DefaultSelector() as ready:
        ready.register(output, selectors.EVENT_READ)
        while True:
            if tell is not None and not tell(done):
                return None
            if time.monotonic() - moved > STALLS_AFTER_S:
                raise LabError(
                    f"{names}: simulated time stood still for {STALLS_AFTER_S:g} s, at "
                    f"{100 * done:.3g} % of the run"
                )
            if not ready.select(_TURN_S):
                continue
            part = os.read(output.fileno(), 1 << 20)
            if not part:
                return b""
            text += part
            while b"\n" in text:
                line, _, rest = text.partition(b"\n")
                kind, _, said = line.partition(b" ")
                if kind == b"p":
                    if float(said) > done:
                        done, moved = float(said), time.monotonic()
                elif kind == b"e":
                    raise LabError(said.decode())
                else:
                    return _rest(output, rest, int(said))
                text = rest


def _rest(output: IO[bytes], begun: bytes, size_bytes: int) -> bytes:
    """So many bytes, of which some were read; empty if the process ended before."""
    parts, missing = [begun], size_bytes - len(begun)
    while missing > 0:
        part = os.read(output.fileno(), min(missing, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _packed(files: Files) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def _unpacked(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _run(asked: dict[str, Any], own: int) -> None:
    from lfnlab.results.store import run_files

    parent = os.getppid()

    def write(content: bytes) -> None:
        while content:
            content = content[os.write(own, content) :]

    def tell(_: int, done: float) -> bool:
        if os.getppid() != parent:  # nobody waits
            os._exit(1)
        write(f"p {done!r}\n".encode())
        return True

    try:
        _core.limit_memory(f"{asked['memory_bytes']}B")
        for path, digest, name, values, class_name in asked["libraries"]:
            one = foreign.Library(Path(path), digest, name, tuple(values), class_name, loads=True)
            foreign.check(one)
            foreign.known(one)
        scenario = _core.Scenario(asked["scenario"])
        (run,) = _core.run_many([scenario], 1, tell)
        assert run is not None
        content = _packed(run_files(run, scenario, asked["command"]))
        write(f"d {len(content)}\n".encode() + content)
    except LabError as error:
        write(f"e {' '.join(str(error).split())}\n".encode())


if __name__ == "__main__":
    descriptor = foreign.own_output()
    _run(json.load(sys.stdin), descriptor)
    os._exit(0)  # the ends of shared objects do not run
