"""Controllers of files: ``FILE.so``, and a class of ``FILE.py``, where a law may stand.

A shared object is code that nothing guards against, so this process never loads one: a process of
its own tells its name, and one for each run computes it (:mod:`lfnlab.experiment.alone`). A class
in Python runs there too, since it may hang. The name in a scenario's text is NAME@HASH, with the
hash of the file: a run belongs to the bytes that ran.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lfnlab import _core
from lfnlab.control_laws import stacks
from lfnlab.errors import LawError

DESCRIBED_WITHIN_S = 60.0
SKELETONS = Path(__file__).parent / "skeletons"
"""The header ``controller.h``, and a controller in each language."""
_SPELLED = re.compile(r'"([A-Za-z][\w.:-]*@[0-9a-f]{12})"')


@dataclass(frozen=True)
class Library:
    """A file with a controller."""

    path: Path
    """Absolute."""
    digest: str
    """Of its content, twelve hexadecimal digits."""
    name: str
    """In results."""
    values: tuple[str, ...]
    """Names of the values that it shows beside its window."""
    class_name: str = ""
    """The class in Python; empty: of a shared object."""
    loads: bool = False
    """Whether this process may load it."""
    is_stack: bool = False
    """Whether it is a whole stack, both ends of a connection."""

    @property
    def spelled(self) -> str:
        """NAME@HASH, as scenarios and results have it."""
        return f"{self.name}@{self.digest}"


_libraries: dict[str, Library] = {}
"""By their names in a scenario's text."""
_known: dict[tuple[Path, str], Library] = {}


def find(path: Path) -> Library:
    """The controller of a shared object.

    Raises:
        LawError: when the file is not there, is no controller, or ends the process that loads it.
    """
    path = path.absolute()
    key = (path, digest_of(path))
    if key not in _known:
        name, values, is_stack = _described(path)
        if name in {law["name"] for law in _core.laws()}:
            raise LawError(
                f"{path}: {name} is a law of the registry; give the controller another name"
            )
        _known[key] = Library(path, key[1], name, tuple(values), is_stack=is_stack)
    return known(_known[key])


def of_class(path: Path, class_name: str, name: str, values: tuple[str, ...]) -> Library:
    """The controller of a class in Python.

    Raises:
        LawError: when another class of the file has its name.
    """
    path = path.absolute()
    library = known(Library(path, digest_of(path), name, values, class_name))
    if library.class_name != class_name:
        raise LawError(f"{path}: {library.class_name} and {class_name} are both called {name}")
    return library


def check(library: Library) -> None:
    """Refuse a file that is not the one that was named.

    Raises:
        LawError: when its content is another, or it cannot be read.
    """
    if digest_of(library.path) != library.digest:
        raise LawError(f"{library.path}: it has changed since the experiment began")


def known(library: Library) -> Library:
    """The library, which its name then finds."""
    return _libraries.setdefault(library.spelled, library)


def spelled(text: str) -> Library | None:
    """The library of NAME@HASH: one that this process knows, or of a stack built as it was."""
    if text in _libraries:
        return _libraries[text]
    name, _, digest = text.partition("@")
    file = stacks.built(name)
    is_it = digest and stacks.names(name) and file.is_file() and digest_of(file) == digest
    return find(file) if is_it else None


def of(scenario: _core.Scenario) -> list[Library]:
    """The libraries of a scenario, each once.

    Raises:
        LawError: a stored scenario names a stack that is not built here, or not as it was.
    """
    names = dict.fromkeys(_SPELLED.findall(scenario.text)) if "@" in scenario.text else ()
    for text in names:
        name = text.partition("@")[0]
        if stacks.names(name) and spelled(text) is None:
            here = find(Path(stacks.located(name))).spelled
            raise LawError(f"{text} is of another build; allowed: {here}, or {name}")
    return [library for name in names if (library := spelled(name)) is not None]


def digest_of(path: Path) -> str:
    """Twelve hexadecimal digits over the content of a file.

    Raises:
        LawError: when it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise LawError(f"{path}: {error.strerror}; write FILE.so") from None


def ended(returncode: int) -> str:
    """How a process ended, in words."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"


def _described(path: Path) -> tuple[str, list[str], bool]:
    """Name, values and whether it is a whole stack, from a process that loads it."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lfnlab.control_laws.foreign", str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DESCRIBED_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LawError(f"{path}: loading it did not end within {DESCRIBED_WITHIN_S:g} s") from None
    told = done.stdout.splitlines()
    if done.returncode != 0 or not told:
        raise LawError(f"{path}: loading it ended its process: {ended(done.returncode)}")
    said = json.loads(told[-1])
    if "wrong" in said:
        raise LawError(said["wrong"])
    return said["name"], said["values"], said["is_stack"]


def own_output() -> int:
    """A descriptor of standard output; a controller that prints then reaches standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own


def _describe(path: str) -> None:
    own = own_output()
    try:
        name, values, is_stack = _core.describe_controller(path)
        said: dict[str, object] = {"name": name, "values": values, "is_stack": is_stack}
    except LawError as error:
        said = {"wrong": str(error)}
    os.write(own, (json.dumps(said) + "\n").encode())


if __name__ == "__main__":
    _describe(sys.argv[1])
    os._exit(0)  # the shared object's own end does not run
