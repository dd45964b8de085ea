"""A law's C header from a file, as a class: for ``FILE.h`` where a law in Python may stand.

The header is compiled by the C compiler, and the class calls its functions. So it decides what the
registered law would, in the same integers, and costs what a law in Python costs. Headers with
``on_control``, which the engine alone drives, parameters and probes are not available.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from lfnlab.errors import LawError, Unavailable

LAWS = Path(__file__).parents[3] / "laws"
"""The directory of law.h, in a clone."""
_ONE = 1 << 32
_INFINITE = (1 << 64) - 1
_OPEN, _ROUND_START, _CWND_LIMITED, _DUP = 1, 2, 4, 8
_KINDS = {"fast": 0, "rto": 1, "ecn": 2}
_CALLBACKS = ("init", "on_sample", "on_ack", "on_loss", "on_open", "on_tick", "on_undo")
"""Of struct law_ops, in its order."""


class _Ack(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("now", "rtt", "srtt", "min_rtt", "delivered")),
        *(
            (name, ctypes.c_uint32)
            for name in ("acked", "new", "lost", "inflight", "ce", "mss", "flags", "hold")
        ),
    ]


class _Loss(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("now", "rtt", "srtt", "min_rtt")),
        *((name, ctypes.c_uint32) for name in ("kind", "inflight", "mss", "pad")),
    ]


class _Control(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("cwnd", "ssthresh", "pacing", "tick")),
        *((name, ctypes.c_uint32) for name in ("block", "blocks")),
    ]


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("now", "srtt")),
        *((name, ctypes.c_uint32) for name in ("variant", "mss", "seed", "pad")),
        ("parameters", ctypes.c_uint64 * 8),
    ]


class _Ops(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in (*_CALLBACKS, "probe")),
        *((name, ctypes.c_void_p) for name in ("on_control", "on_lost", "on_restart")),
        *((name, ctypes.c_uint32) for name in ("state_bytes", "pad")),
    ]


_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "init": (ctypes.POINTER(_Config),),
    "on_sample": (ctypes.POINTER(_Ack),),
    "on_ack": (ctypes.c_uint32, ctypes.POINTER(_Ack)),
    "on_loss": (ctypes.POINTER(_Loss),),
    "on_open": (ctypes.POINTER(_Ack),),
    "on_tick": (ctypes.c_uint64,),
    "on_undo": (),
}
"""Between the state and the decisions."""


def named(path: Path) -> tuple[str, bool, str]:
    """The name of a header's law in C, whether it has ``on_control``, and the header's text.

    Raises:
        LawError: when the file is not there, or has no law.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LawError(f"{path}: {why}; write FILE.h") from None
    found = re.search(r"^\s*LAW_(CONTROL_)?OPS\(\s*(\w+)", text, re.MULTILINE)
    if found is None:
        raise LawError(f"{path}: no LAW_OPS(NAME, ...); laws/reno.h is an example")
    return found[2], bool(found[1]), text


def law_of(path: Path, base: type) -> tuple[type, str]:
    """The law of a header as a subclass of ``base``, and the header's text.

    Raises:
        LawError: as :func:`named`, and when the compiler refuses it, with the compiler's line.
        Unavailable: when there is no compiler, or no law.h.
    """
    name, controls, text = named(path)
    if controls:
        raise LawError(
            f"{path}: a header with on_control runs only as a law of the registry; "
            "CONTRIBUTING.md says how to add it"
        )
    library = _compiled(path, name)
    library.lfn_law.restype = ctypes.POINTER(_Ops)
    ops = library.lfn_law().contents
    functions = {
        name: ctypes.CFUNCTYPE(None, ctypes.c_void_p, *_ARGUMENTS[name], ctypes.POINTER(_Control))(
            address
        )
        for name in _CALLBACKS
        if (address := getattr(ops, name))
    }
    return _class(path, name, base, functions, ops.state_bytes), text


def _compiled(path: Path, name: str) -> ctypes.CDLL:
    if not (LAWS / "law.h").is_file():
        raise Unavailable("a law's header needs laws/law.h, which is part of a clone")
    # Its lines are those of the header, so that the compiler names the header's.
    shim = (
        f'#include "law.h"\n#include "{path.resolve()}"\n'
        f"const struct law_ops *lfn_law(void) {{ return &law_ops_{name}; }}\n"
    )
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "law.so"
        command = [*compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", "-x", "c", "-"]
        command += ["-o", str(target), "-I", str(LAWS), "-I", str(path.resolve().parent)]
        try:
            done = subprocess.run(
                command, input=shim, capture_output=True, text=True, check=False, timeout=60
            )
        except FileNotFoundError:
            raise Unavailable(
                f"{compiler[0]}: not found; a law's header needs a C compiler"
            ) from None
        except subprocess.TimeoutExpired:
            raise LawError(f"{path}: the compiler did not end within 60 s") from None
        if done.returncode != 0:
            raise LawError(f"{path} does not compile: {first_error(done.stderr)}")
        return ctypes.CDLL(str(target))


def first_error(said: str) -> str:
    """The first error of a compiler."""
    lines = said.splitlines()
    return next((line for line in lines if "error:" in line), " ".join(lines[:1])).strip()


def _class(path: Path, name: str, base: type, functions: dict[str, Any], state_bytes: int) -> type:
    """The class; it has the callbacks that the header has."""

    class Header(base):  # type: ignore[misc]
        __doc__ = f"The law of {path.name}."
        cwnd: float
        ssthresh: float

        def __init__(self) -> None:
            self._state = ctypes.create_string_buffer(max(1, state_bytes))
            self._control = _Control()
            self._said = (0.0, 0.0)
            config = _Config(mss=self.mss_bytes, now=_ns(self.now_s))
            self._call("init", ctypes.byref(config))

        def _call(self, name: str, *arguments: Any) -> None:
            own = self._control
            cwnd, ssthresh = self.cwnd, self.ssthresh
            # Fractions of a segment that a float does not hold stay, unless the sender set another.
            if cwnd != self._said[0]:
                own.cwnd = int(cwnd * _ONE)
            if ssthresh != self._said[1]:
                own.ssthresh = _INFINITE if ssthresh == float("inf") else int(ssthresh * _ONE)
            functions[name](self._state, *arguments, ctypes.byref(own))
            if name != "on_loss":
                self.cwnd = own.cwnd / _ONE
            if own.ssthresh != _INFINITE:
                self.ssthresh = own.ssthresh / _ONE
            self._said = (self.cwnd, self.ssthresh)
            self.pacing_bps = own.pacing * 8.0 if own.pacing else None
            tick_s = own.tick / 1e9
            self.next_tick_s = tick_s if tick_s > self.now_s else None

    for callback in (_on_sample, _on_ack, _on_loss, _on_open, _on_tick, _on_undo):
        if (own := callback.__name__.removeprefix("_")) in functions:
            setattr(Header, own, callback)
    Header.__name__ = Header.__qualname__ = name
    Header.name = f"{path.stem}.h"
    return Header


# The callbacks, with ``self`` an object of the class


def _ack(self: Any, ack: Any) -> _Ack:
    flags = _OPEN * ack.open | _ROUND_START * ack.round_start
    flags |= _CWND_LIMITED * ack.cwnd_limited | _DUP * ack.duplicate
    return _Ack(
        _ns(self.now_s),
        _ns(ack.rtt_s),
        _ns(ack.srtt_s),
        _ns(ack.min_rtt_s),
        ack.delivered,
        ack.acked,
        ack.newly_delivered,
        ack.newly_lost,
        ack.inflight,
        ack.ce,
        self.mss_bytes,
        flags,
        0,
    )


def _on_sample(self: Any, ack: Any) -> None:
    self._call("on_sample", ctypes.byref(_ack(self, ack)))


def _on_ack(self: Any, n: int, ack: Any) -> None:
    self._call("on_ack", n, ctypes.byref(_ack(self, ack)))


def _on_loss(self: Any, loss: Any) -> None:
    event = _Loss(
        _ns(self.now_s),
        _ns(loss.rtt_s),
        _ns(loss.srtt_s),
        _ns(loss.min_rtt_s),
        _KINDS[loss.kind],
        loss.inflight,
        self.mss_bytes,
        0,
    )
    self._call("on_loss", ctypes.byref(event))


def _on_open(self: Any, ack: Any) -> None:
    self._call("on_open", ctypes.byref(_ack(self, ack)))


def _on_tick(self: Any) -> None:
    self._call("on_tick", _ns(self.now_s))


def _on_undo(self: Any) -> None:
    self._call("on_undo")


def _ns(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * 1e9)
