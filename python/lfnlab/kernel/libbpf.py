"""The part of libbpf that loads a law, through ctypes: nothing to compile, nothing to link.

libbpf is what Linux's own tools load BPF with, and every distribution of Linux 6.1 or later has it
(Debian and Ubuntu: libbpf1, on which iproute2 depends; Fedora: libbpf).
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lfnlab.errors import Unavailable
from lfnlab.kernel.host import linux

STRUCT_OPS_MAP, RINGBUF_MAP = 26, 27  # enum bpf_map_type
STRUCT_OPS_LINK = 44  # enum bpf_attach_type
LINKED = 1 << 13  # BPF_F_LINK, Linux 6.4: a link holds the law

Print = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
Sample = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

_FUNCTIONS = {
    # name: (what it returns, what it takes)
    "libbpf_set_print": (ctypes.c_void_p, [Print]),
    "libbpf_major_version": (ctypes.c_uint32, []),
    "libbpf_minor_version": (ctypes.c_uint32, []),
    "bpf_object__open_mem": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]),
    "bpf_object__load": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_object__close": (None, [ctypes.c_void_p]),
    "bpf_object__next_map": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
    "bpf_map__type": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_map__fd": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_map__set_map_flags": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
    "bpf_map__attach_struct_ops": (ctypes.c_void_p, [ctypes.c_void_p]),
    "bpf_link__fd": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_link_create": (
        ctypes.c_int,
        [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p],
    ),
    "bpf_obj_pin": (ctypes.c_int, [ctypes.c_int, ctypes.c_char_p]),
    "bpf_obj_get": (ctypes.c_int, [ctypes.c_char_p]),
    "bpf_enable_stats": (ctypes.c_int, [ctypes.c_int]),
    "bpf_map_delete_elem": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p]),
    "ring_buffer__new": (
        ctypes.c_void_p,
        [ctypes.c_int, Sample, ctypes.c_void_p, ctypes.c_void_p],
    ),
    "ring_buffer__consume": (ctypes.c_int, [ctypes.c_void_p]),
    "ring_buffer__free": (None, [ctypes.c_void_p]),
}

_said: list[str] = []  # what libbpf printed, the verifier's words among it


def _listen(level: int, text: bytes, arguments: int) -> int:
    if level:  # LIBBPF_WARN is 0
        return 0
    buffer = ctypes.create_string_buffer(1 << 16)
    ctypes.CDLL(None).vsnprintf(buffer, len(buffer), text, ctypes.c_void_p(arguments))
    _said.append(buffer.value.decode(errors="replace"))
    return 0


_listener = Print(_listen)  # libbpf keeps it


@contextmanager
def signals_wait() -> Iterator[None]:
    """Handle SIGINT and SIGTERM when this ends: what they raise in a callback from C is lost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs handlers in the main thread alone
        return
    came: list[int] = []
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


@cache
def library() -> ctypes.CDLL:
    """Libbpf 1, with the types of its functions.

    Raises:
        Unavailable: It is not installed.
    """
    try:
        found = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        raise Unavailable(
            "libbpf.so.1 is not installed; Debian and Ubuntu: apt install libbpf1"
        ) from None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    found.libbpf_set_print(_listener)
    return found


def version() -> tuple[int, int]:
    """The version of libbpf."""
    return library().libbpf_major_version(), library().libbpf_minor_version()


def unregister(pin: Path) -> None:
    """Take out a law that a pinned map holds, as before Linux 6.4; a link does it by itself."""
    fd = library().bpf_obj_get(os.fsencode(pin))
    if fd < 0:
        raise Unavailable(f"{pin}: {os.strerror(ctypes.get_errno())}")
    if "map_type:" in Path(f"/proc/self/fdinfo/{fd}").read_text():
        _delete(fd)
    os.close(fd)


def _delete(map_fd: int) -> None:
    library().bpf_map_delete_elem(map_fd, ctypes.byref(ctypes.c_uint32(0)))


class Attached:
    """A law of this kernel until `close`, or for as long as a pin of it lives.

    From Linux 6.4 on a link holds the law, and the kernel drops it with the process; before, only
    `close` or `unregister` takes it out.

    Args:
        name: For messages.
        image: A BPF object with one struct_ops map.

    Raises:
        Unavailable: The kernel refused; the text ends with what it said.
    """

    def __init__(self, name: str, image: bytes) -> None:
        self.name = name
        self.linked = linux() >= (6, 4)
        self._object, self.fd = None, -1
        self._pinned = False
        try:
            self._attach(image)
        except BaseException:
            self.close()
            raise

    @signals_wait()
    def _attach(self, image: bytes) -> None:
        bpf = library()
        _said.clear()
        self._object = bpf.bpf_object__open_mem(image, len(image), None)
        if not self._object:
            raise self._refused("libbpf cannot read the object")
        operations = self._map(STRUCT_OPS_MAP)
        if self.linked:
            bpf.bpf_map__set_map_flags(operations, LINKED)
        if bpf.bpf_object__load(self._object):
            raise self._refused("the kernel does not load it")
        link = bpf.bpf_map__attach_struct_ops(operations)
        if not link:
            raise self._refused("the kernel does not register it")
        map_fd = bpf.bpf_map__fd(operations)
        if not self.linked:
            self.fd = os.dup(map_fd)
        elif version() >= (1, 2):
            self.fd = os.dup(bpf.bpf_link__fd(link))
        else:
            # Here attaching a linked map only fills it in; the link is what registers the law.
            self.fd = bpf.bpf_link_create(map_fd, 0, STRUCT_OPS_LINK, None)
            if self.fd < 0:
                raise self._refused("the kernel does not register it")

    def _map(self, kind: int) -> int:
        """The first map of a type, as libbpf's pointer."""
        bpf = library()
        found = bpf.bpf_object__next_map(self._object, None)
        while found and bpf.bpf_map__type(found) != kind:
            found = bpf.bpf_object__next_map(self._object, found)
        if not found:
            raise self._refused(f"it has no map of type {kind}")
        return int(found)

    @signals_wait()
    def records(self) -> bytes:
        """Bytes that the object has written into its ring buffer since the last call."""
        bpf = library()
        taken = bytearray()

        def take(_context: int, data: int, size_bytes: int) -> int:
            taken.extend(ctypes.string_at(data, size_bytes))
            return 0

        called = Sample(take)
        ring = bpf.ring_buffer__new(bpf.bpf_map__fd(self._map(RINGBUF_MAP)), called, None, None)
        if not ring or bpf.ring_buffer__consume(ring) < 0:
            raise self._refused("cannot read its records")
        bpf.ring_buffer__free(ring)
        return bytes(taken)

    def pin(self, path: Path) -> None:
        """Let the law outlive this process."""
        if library().bpf_obj_pin(self.fd, os.fsencode(path)):
            raise self._refused(f"cannot pin it at {path}")
        self._pinned = True

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @signals_wait()
    def close(self) -> None:
        """Let go; a law that nothing pins is gone."""
        if self.fd >= 0:
            if not self.linked and not self._pinned:
                _delete(self.fd)
            os.close(self.fd)
        if self._object:
            library().bpf_object__close(self._object)
        self.fd, self._object = -1, None

    def _refused(self, what: str) -> Unavailable:
        code = ctypes.get_errno()
        why = "it already exists" if code == errno.EEXIST else os.strerror(code)
        log = "".join(_said).strip()
        return Unavailable(f"{self.name}: {what}: {why}" + (f"\n{log[-5000:]}" if log else ""))
