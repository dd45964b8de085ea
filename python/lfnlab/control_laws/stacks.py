"""Controllers of deployed stacks, and whole stacks: ``STACK:CONTROLLER`` where a law may stand.

``stacks/REGISTRY`` of the repository has a line for each stack, ``make stacks`` builds their
controllers as shared objects (:mod:`lfnlab.control_laws.foreign`). An installation without the
repository has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lfnlab.errors import LawError

ROOT = Path(__file__).parents[3]
REGISTRY = ROOT / "stacks" / "REGISTRY"
BUILT = ROOT / "build" / "stacks"


@dataclass(frozen=True)
class Stack:
    """One line of the registry."""

    name: str
    tool: str
    """The program that builds it."""
    package: str
    version: str
    source: str
    """Where the package comes from."""
    controllers: tuple[str, ...]
    """The stack's default first."""

    @property
    def laws(self) -> tuple[str, ...]:
        """Its controllers as laws: STACK:CONTROLLER."""
        return tuple(f"{self.name}:{one}" for one in self.controllers)

    @property
    def is_whole(self) -> bool:
        """Whether both ends of a connection are the stack's, not the controller alone."""
        return self.name.endswith("-whole")

    @property
    def here(self) -> bool:
        """Whether all its controllers are built."""
        return all(built(law).is_file() for law in self.laws)


@cache
def stacks() -> tuple[Stack, ...]:
    """All stacks, in the order of the registry."""
    if not REGISTRY.is_file():
        return ()
    lines = REGISTRY.read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        if line and not line.startswith("#"):
            cells = (cell.strip() for cell in line.split("|"))
            name, tool, package, version, source, controllers = cells
            found.append(Stack(name, tool, package, version, source, tuple(controllers.split())))
    return tuple(found)


def names(text: str) -> bool:
    """Whether a text has the form STACK:CONTROLLER, with a stack of the registry."""
    return "@" not in text and any(text.startswith(f"{stack.name}:") for stack in stacks())


def built(law: str) -> Path:
    """The place of a controller's shared object."""
    stack, _, controller = law.partition(":")
    return BUILT / stack / f"{controller}.so"


def located(text: str) -> str:
    """The shared object of STACK:CONTROLLER; another text as it is.

    Raises:
        LawError: when the stack has no such controller, or is not built.
    """
    if not names(text):
        return text
    stack = next(stack for stack in stacks() if text.startswith(f"{stack.name}:"))
    if text not in stack.laws:
        raise LawError(f"{text} is no controller of {stack.package}; write {', '.join(stack.laws)}")
    if not (file := built(text)).is_file():
        raise LawError(f"{text} is not built; make stacks STACK={stack.name}")
    return str(file)
