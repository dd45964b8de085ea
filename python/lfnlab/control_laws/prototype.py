"""Laws in Python, to try an idea out before it is a C header.

A class is a law; each connection has an object of it. It stands wherever the name of a law does:
in ``Flow(law=Mine)``, ``base.flow(Mine)``, ``compare([Mine, "cubic"], base)``, and from a shell or
in a scenario's TOML as ``./mine.py:Mine``. Its runs are marked as a prototype's in every result.

Nothing can tell whether a class in Python still does what it did, since it may use whatever Python
reaches. So its runs are stored as others are, but never taken from the store: they are run again.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from lfnlab import _core
from lfnlab.control_laws import foreign, header
from lfnlab.errors import LawError

if TYPE_CHECKING:
    from lfnlab._core import Ack, Loss

CALLBACKS = {
    "on_ack": 2,
    "on_loss": 1,
    "on_sample": 1,
    "on_open": 1,
    "on_tick": 0,
    "on_undo": 0,
}
"""Callbacks, and how many arguments each takes besides ``self``."""
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


def spelled(law: str | type[Law], folder: Path | None = None) -> str:
    """Value of ``law`` in a scenario's text; a prototype has its name and its source's hash.

    ``folder`` is the base of a relative FILE.py:CLASS; default the working directory.

    Raises:
        LawError: when it is a class that cannot be a law, or a file that has none.
    """
    if isinstance(law, str):
        found = resolved(law, folder or Path())
        if isinstance(found, str):
            return found
        law = found
    name, source, *_ = describe(law)
    return f"{name}@{source}"


def find(text: str, folder: Path) -> type[Law] | None:
    """The class that a text names as FILE.py:CLASS, FILE.h or as :func:`spelled`; else None.

    Raises:
        LawError: when the file has no such class, or cannot be read or run.
    """
    if "@" in text:
        return _classes.get(text)
    if text.endswith(".h"):
        return _header(folder / text)
    file = re.fullmatch(r"(.*\.py)(?::(.*))?", text)
    return None if file is None else _load(folder / file[1], file[2] or "")


def resolved(text: str, folder: Path) -> str | type[Law]:
    """A law as a scenario in Python holds it: a class, NAME@HASH of a shared object, or the text.

    Raises:
        LawError: as :func:`find` and :func:`lfnlab.control_laws.foreign.find`.
    """
    if text.endswith(".so"):
        return foreign.find(folder / text).spelled
    return find(text, folder) or text


def outside(text: str, folder: Path) -> type[Law] | foreign.Library | None:
    """The law that the registry does not have; the compiled module asks for it."""
    if text.endswith(".so"):
        return foreign.find(folder / text)
    return find(text, folder) or foreign.spelled(text)


def located(text: str, folder: Path) -> str:
    """A law's text with the absolute path of its file, if it names one from ``folder``."""
    file = re.fullmatch(r"(.*(?:\.py|\.h|\.so))(:.*)?", text)
    return (
        text if file is None or "@" in text else f"{(folder / file[1]).absolute()}{file[2] or ''}"
    )


def is_prototype(law: str | type[Law]) -> bool:
    """Whether a law of a scenario is not the registry's."""
    if isinstance(law, str):
        return "@" in law or re.search(r"\.py(:|$)|\.(h|so)$", law) is not None
    return True


def is_library(law: str | type[Law]) -> bool:
    """Whether a law of a scenario is a shared object's, whose hash is in its name."""
    return isinstance(law, str) and foreign.spelled(law) is not None


def label(law: str | type[Law]) -> str:
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
    for callback, arguments in CALLBACKS.items():
        own = getattr(law, callback)
        if own is getattr(Law, callback):
            if callback in ("on_ack", "on_loss"):
                raise LawError(f"{law.__name__} has no {callback}; a law has on_ack and on_loss")
            continue
        _check_arguments(law, callback, own, arguments + 1)
    _check_attributes(law)
    if law.__init__ is not Law.__init__:
        _check_arguments(law, "__init__", law.__init__, 1)
    if not (isinstance(law.name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", law.name)):
        raise LawError(
            f"{law.__name__}.name: {law.name!r}; allowed: a letter, then letters, digits, . _ -"
        )
    if law.name in {known["name"] for known in _core.laws()}:
        raise LawError(f"{law.name} is a law of the registry; give the class another name")
    if not isinstance(law.slow_start, str):
        raise LawError(f"{law.__name__}.slow_start: {law.slow_start!r}; allowed: a text")
    several = isinstance(law.probes, tuple | list)
    if not several or not all(isinstance(probe, str) for probe in law.probes):
        raise LawError(f"{law.__name__}.probes: {law.probes!r}; allowed: a list of names")
    if len(law.probes) > 8:
        raise LawError(f"{law.__name__}.probes: {len(law.probes)}; allowed: at most 8")
    digest = _digest(law)
    _classes[f"{law.name}@{digest}"] = law
    return law.name, digest, law.slow_start, tuple(law.probes)


def check_names(laws: Iterable[str | type[Law]]) -> None:
    """Refuse two prototypes of one name, whose results could not be told apart."""
    known: dict[str, str] = {}
    for law in laws:
        if is_prototype(law):
            text = spelled(law)
            name = text.partition("@")[0]
            if known.setdefault(name, text) != text:
                raise LawError(
                    f"two laws in Python are called {name}; give one another name, for example "
                    f'name = "{name}-2"'
                )


def hint(error: BaseException) -> str:
    """Suggestion for a misspelt attribute, "; did you mean NAME?", or empty."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    near = get_close_matches(error.name, dir(error.obj), 1)
    return f"; did you mean {near[0]}?" if near else ""


def source_of(text: str) -> str | None:
    """The file of a law as :func:`spelled`, if it is known here and comes from one."""
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


def _check_arguments(law: type[Law], name: str, own: Any, count: int) -> None:
    wanted = ", ".join(inspect.signature(getattr(Law, name)).parameters)
    right = f"write {name}({'self' if name == '__init__' else wanted})"
    if not callable(own):
        raise LawError(f"{law.__name__}.{name} is {own!r}, which cannot be called; {right}")
    try:
        signature = inspect.signature(own)
    except (TypeError, ValueError):  # of C, which tells none
        return
    try:
        signature.bind(*range(count))
    except TypeError:
        raise LawError(f"{law.__name__}.{name}{signature} cannot be called; {right}") from None


def _check_attributes(law: type[Law]) -> None:
    """Refuse an attribute that only looks like one by which a law decides."""
    parts = [part for base in law.__mro__[: law.__mro__.index(Law)] for part in vars(base).items()]
    methods = [(name, part) for name, part in parts if isinstance(part, FunctionType)]
    own = {attribute for name, part in methods if name not in CALLBACKS for attribute in _set(part)}
    for name, part in methods:
        for attribute in sorted(_set(part) - own - set(dir(law))):
            if near := get_close_matches(attribute, DECISIONS, 1, 0.75):
                raise LawError(
                    f"{law.__name__}.{name} sets {attribute}; did you mean {near[0]}? An attribute "
                    "of the law's own is first set in __init__"
                )


def _set(function: FunctionType) -> set[str]:
    """The attributes that a function sets."""
    code = dis.get_instructions(function)
    return {step.argval for step in code if step.opname == "STORE_ATTR"}


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


def _load(path: Path, name: str) -> type[Law]:
    """The class of this name in a file, which is run unless these bytes of it were."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LawError(f"{path}: {error.strerror}; write FILE.py:CLASS") from None
    key = (str(path.resolve()), hashlib.sha256(content).hexdigest())
    if key not in _modules:
        _modules[key] = _executed(path, content, f"lfnlab_law_{path.stem}_{key[1][:12]}")
    module = _modules[key]
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Law) and found is not Law):
        classes = [
            own
            for own, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Law)
            and value.__module__ == module.__name__
        ]
        there = f"it has {', '.join(classes)}" if classes else "it has no subclass of lfnlab.Law"
        raise LawError(f"{path}: no law {name!r}; {there}")
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
        raise LawError(f"{path} cannot be loaded: {_last_line(error, path)}") from error
    return module


def _last_line(error: Exception, path: Path) -> str:
    """An exception in one line, with the line of the file that it came from."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line is not None else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}{where}"


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Imports see the folder of a file, as when Python runs it."""
    folder = str(path.parent.absolute())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
