"""Laws in Python, to try an idea out before it is a C header.

A class is a law; each connection has an object of it. It stands wherever the name of a law does:
in ``Flow(law=Mine)``, ``base.flow(Mine)``, ``compare([Mine, "cubic"], base)``, and from a shell or
in a scenario's TOML as ``./mine.py:Mine``. Its runs are marked as a prototype's in every result.

Nothing can tell whether a class in Python still does what it did, since it may use whatever Python
reaches. So its runs are stored as others are, but never taken from the store: they are run again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from lfnlab import _core
from lfnlab.control_laws import controller, foreign, header, stacks
from lfnlab.control_laws.checks import check_class, last_line
from lfnlab.control_laws.controller import Controller
from lfnlab.errors import LawError

if TYPE_CHECKING:
    from lfnlab._core import Ack, Loss

CALLBACKS = ("on_ack", "on_loss", "on_sample", "on_open", "on_tick", "on_undo")
DECISIONS = ("cwnd", "ssthresh", "pacing_bps", "next_tick_s")
"""Attributes by which a law decides."""


class Law(_core.LawState):
    """A congestion-control law in Python: a subclass with at least ``on_ack`` and ``on_loss``.

    >>> class Half(Law):
    ...     def on_ack(self, n, ack):
    ...         self.cwnd += n / self.cwnd
    ...
    ...     def on_loss(self, loss):
    ...         self.ssthresh = max(self.cwnd / 2, 2)

    What it decides are the attributes ``cwnd`` and ``ssthresh`` (segments, with a fraction),
    ``pacing_bps`` (bit/s, None for the ACK clock alone) and ``next_tick_s`` (seconds, None). It
    reads ``now_s`` (seconds) and ``mss_bytes``. The sender does slow start, recovery and
    retransmission, and calls as ``laws/law.h`` says; what a class leaves out costs nothing. When a
    connection begins it calls ``__init__`` without arguments; ``cwnd`` then is the initial window.
    """

    name: ClassVar[str]
    """Name of the law in results; default the name of the class."""
    slow_start: ClassVar[
        Literal["classic", "limited", "hystart", "hystart++", "rapid", "search"]
    ] = "classic"
    """Slow start of flows that do not choose one."""
    probes: ClassVar[tuple[str, ...]] = ()
    """Attributes to sample into the table ``probes``, at most eight: numbers of at least 0."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.name = cls.__dict__.get("name", cls.__name__)
        for name in vars(cls):
            if name.startswith("on_") and name not in CALLBACKS:
                raise LawError(
                    f"{cls.__name__}.{name} is not a callback of a law; allowed: "
                    f"{', '.join(CALLBACKS)}"
                )

    def on_ack(self, n: int, ack: Ack) -> None:
        """Congestion avoidance: ``n`` segments newly delivered, with ``cwnd >= ssthresh``."""
        raise NotImplementedError

    def on_loss(self, loss: Loss) -> None:
        """A congestion event: set ``ssthresh``, to which the sender brings ``cwnd`` down."""
        raise NotImplementedError

    def on_sample(self, ack: Ack) -> None:
        """Every ACK, duplicates and recovery included, before ``on_ack``: estimators."""

    def on_open(self, ack: Ack) -> None:
        """The episode ended; the sender has set ``cwnd = ssthresh`` (not after a timeout)."""

    def on_tick(self) -> None:
        """``next_tick_s`` has come; it is None until it is set again."""

    def on_undo(self) -> None:
        """The last event was spurious; the sender has restored ``cwnd`` and ``ssthresh``."""


_classes: dict[str, type[Law]] = {}
"""Classes by their names in a scenario's text."""
_texts: WeakKeyDictionary[type[Law], str] = WeakKeyDictionary()
"""The file of a class as it was when the class was first asked for its source."""
_modules: dict[tuple[str, str], Any] = {}
"""Modules by path and hash of a file."""


def spelled(law: str | type[Law | Controller], folder: Path | None = None) -> str:
    """Value of ``law`` in a scenario's text; a law of a file has its name and its source's hash.

    ``folder`` is the base of a relative FILE.py:CLASS; default the working directory.

    Raises:
        LawError: when it is a class that cannot be a law, or a file that has none.
    """
    law = resolved(law, folder or Path())
    if isinstance(law, str):
        return law
    name, source, *_ = describe(law)
    return f"{name}@{source}"


def find(text: str, folder: Path) -> type[Law] | foreign.Library | None:
    """The law that a text names by its file or as :func:`spelled`; None: a law of the registry.

    The files are FILE.py:CLASS, where a file with one law needs no CLASS, FILE.h and FILE.so.

    Raises:
        LawError: when the file has no such law, or cannot be read or run.
    """
    text = stacks.located(text)
    if "@" in text:
        return _classes.get(text) or foreign.spelled(text)
    if text.endswith(".h"):
        return _header(folder / text)
    if text.endswith(".so"):
        return foreign.find(folder / text)
    file = re.fullmatch(r"(.*\.py)(?::(.*))?", text)
    if file is None:
        return None
    found = load(folder / file[1], file[2] or "")
    return _library(found, folder / file[1]) if issubclass(found, Controller) else found


def resolved(law: str | type[Law | Controller], folder: Path) -> str | type[Law]:
    """A law as a scenario in Python holds it: a class, NAME@HASH of a controller, or the text.

    Raises:
        LawError: as :func:`find`.
    """
    found: type[Law] | foreign.Library | None
    if isinstance(law, str):
        found = find(law, folder)
        if found is None:
            return law
    elif isinstance(law, type) and issubclass(law, Controller):
        found = _library(law, controller.file_of(law))
    else:
        found = law
    return found.spelled if isinstance(found, foreign.Library) else found


def _library(law: type[Controller], path: Path) -> foreign.Library:
    controller.check(law)
    return foreign.of_class(path, law.__name__, law.name, tuple(law.probes))


def located(text: str, folder: Path) -> str:
    """A law's text with the absolute path of its file, if it names one from ``folder``."""
    file = re.fullmatch(r"(.*(?:\.py|\.h|\.so))(:.*)?", text)
    return (
        text if file is None or "@" in text else f"{(folder / file[1]).absolute()}{file[2] or ''}"
    )


def is_prototype(law: str | type[Law | Controller]) -> bool:
    """Whether a law of a scenario is not the registry's."""
    if isinstance(law, str):
        of_file = re.search(r"\.py(:|$)|\.(h|so)$", law) is not None
        return "@" in law or of_file or stacks.names(law)
    return True


def is_controller(law: str | type[Law | Controller]) -> bool:
    """Whether a law of a scenario is a controller, of a shared object or in Python."""
    return isinstance(law, str) and foreign.spelled(law) is not None


def is_repeatable(law: str | type[Law | Controller]) -> bool:
    """Whether the name of a law of a scenario tells all that it depends on: no Python is in it."""
    library = foreign.spelled(law) if isinstance(law, str) else None
    return (library is not None and not library.class_name) or not is_prototype(law)


def label(law: str | type[Law | Controller]) -> str:
    """Name of a scenario's law in results."""
    name, is_prototype, _ = spelled(law).partition("@")
    return name + _core.PROTOTYPE_STAMP if is_prototype else name


def describe(law: type[Law]) -> tuple[str, str, str, tuple[str, ...]]:
    """Name, hash of the source, slow start and probes of a class, which its name then finds.

    Raises:
        LawError: when it cannot be a law.
    """
    if not (isinstance(law, type) and issubclass(law, Law)):
        raise LawError(f"{law!r} is not a law; write a name or a subclass of lfnlab.Law")
    for callback in ("on_ack", "on_loss"):
        if getattr(law, callback) is getattr(Law, callback):
            raise LawError(f"{law.__name__} has no {callback}; a law has on_ack and on_loss")
    check_class(law, Law, CALLBACKS, DECISIONS)
    if not isinstance(law.slow_start, str):
        raise LawError(f"{law.__name__}.slow_start: {law.slow_start!r}; allowed: a text")
    digest = _digest(law)
    _classes[f"{law.name}@{digest}"] = law
    return law.name, digest, law.slow_start, tuple(law.probes)


def check_names(laws: Iterable[str | type[Law | Controller]]) -> None:
    """Refuse two prototypes of one name, whose results could not be told apart."""
    known: dict[str, str] = {}
    for law in laws:
        if is_prototype(law):
            text = spelled(law)
            name = text.partition("@")[0]
            if known.setdefault(name, text) != text:
                raise LawError(
                    f"two laws are called {name}; give one another name, for example "
                    f'name = "{name}-2"'
                )


def source_of(text: str) -> str | None:
    """The file of a law as :func:`spelled`, if it is known here and comes from one."""
    if (library := foreign.spelled(text)) is not None and library.class_name:
        return library.path.read_text(encoding="utf-8", errors="replace")
    law = _classes.get(text)
    return None if law is None else source_text(law)


def source_text(law: type[Law]) -> str | None:
    """The file that a class comes from, if it comes from one."""
    if law not in _texts:
        try:
            _texts[law] = Path(inspect.getfile(law)).read_text(encoding="utf-8")
        except (OSError, TypeError, UnicodeDecodeError):  # a notebook, an interactive session
            return None
    return _texts[law]


def _digest(law: type[Law]) -> str:
    """Twelve hexadecimal digits over the file of a class, and what its classes hold by value."""
    digest = hashlib.sha256(f"{law.__qualname__} {source_text(law)}".encode())
    for part in law.__mro__[: law.__mro__.index(Law)]:
        for name, value in sorted(vars(part).items()):
            if isinstance(value, FunctionType):
                code = value.__code__
                cells = [cell.cell_contents for cell in value.__closure__ or () if cell]
                constants = [c for c in code.co_consts if not hasattr(c, "co_code")]
                digest.update(f"{name} {code.co_code.hex()} {code.co_names} {constants}".encode())
                digest.update(f"{value.__defaults__} {[c for c in cells if _is_plain(c)]}".encode())
            elif _is_plain(value):
                digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()[:12]


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str | tuple | None)


def load(path: Path, name: str) -> type[Law | Controller]:
    """The class of this name in a file, which is run unless these bytes of it were.

    Raises:
        LawError: when the file has no such class, or cannot be read or run.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LawError(f"{path}: {error.strerror}; write FILE.py:CLASS") from None
    key = (str(path.resolve()), hashlib.sha256(content).hexdigest())
    if key not in _modules:
        _modules[key] = _executed(path, content, f"lfnlab_law_{path.stem}_{key[1][:12]}")
    module = _modules[key]
    classes = {
        own: value
        for own, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Law | Controller)
        and value.__module__ == module.__name__
    }
    found = getattr(module, name or next(iter(classes), ""), None)
    is_law = isinstance(found, type) and issubclass(found, Law | Controller)
    if not is_law or found in (Law, Controller) or (not name and len(classes) != 1):
        none = "it has no subclass of lfnlab.Law or lfnlab.Controller"
        there = f"it has {', '.join(classes)}" if classes else none
        raise LawError(f"{path}: no law {name!r}; {there}")
    assert isinstance(found, type)
    if issubclass(found, Law):
        _texts.setdefault(found, content.decode(errors="replace"))
    return found


def _header(path: Path) -> type[Law]:
    """The law of a C header, compiled unless these bytes of it were."""
    content = path.read_bytes() if path.is_file() else b""
    key = (str(path.resolve()), hashlib.sha256(content).hexdigest())
    if key not in _modules:
        made, text = header.law_of(path, Law)
        _texts[made] = text
        _modules[key] = made
    found: type[Law] = _modules[key]
    return found


def _executed(path: Path, content: bytes, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LawError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with _beside(path):
            # Python's bytecode on the disk may be of the file before: times there are in seconds.
            exec(compile(content, path, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise LawError(f"{path} cannot be loaded: {last_line(error, path)}") from error
    return module


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Imports see the folder of a file, as when Python runs it."""
    folder = str(path.parent.absolute())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
