"""Quantities that were fitted or assumed, and a scenario file with a comment on each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Estimate:
    """A quantity of the path, and how it is known."""

    value: float
    """For a scenario."""
    low: float
    high: float
    """The truth is between these, with about 95 %; infinite where nothing bounds it."""
    how: str
    """A sentence: how it was found, or that it was assumed."""
    bound: Literal["", "least", "most"] = ""
    """The truth is at least, or at most, the value."""
    is_fitted: bool = True
    """Found in the measurement, not assumed."""

    def note(self, name: str) -> str:
        """A comment: whether it was fitted or assumed, and how."""
        return f"{name}, {'fitted' if self.is_fitted else 'assumed'}: {self.how}"

    def to_json(self) -> dict[str, Any]:
        """Numbers; what is infinite is null."""
        return {
            "value": self.value,
            "low": self.low if math.isfinite(self.low) else None,
            "high": self.high if math.isfinite(self.high) else None,
            "bound": self.bound or None,
            "fitted": self.is_fitted,
            "how": self.how,
        }


def toml(table: Mapping[str, Any], at: str, notes: Mapping[str, str]) -> Iterator[str]:
    """Lines of a table, a comment above each key that has a note; its tables come last."""

    def inline(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(inline, value))}]"
        if isinstance(value, dict):
            return f"{{ {', '.join(f'{key} = {inline(part)}' for key, part in value.items())} }}"
        return json.dumps(value)

    later: list[tuple[str, str, Any]] = []
    for key, value in table.items():
        path = f"{at}{key}"
        if isinstance(value, dict):
            later.append((f"[{path}]", path, value))
        elif path in ("flow", "udp"):
            later += [(f"[[{path}]]", path, part) for part in value]
        else:
            if path in notes:
                yield f"# {notes[path]}"
            yield f"{key} = {inline(value)}"
    for heading, path, value in later:
        yield ""
        if path in notes:
            yield f"# {notes[path]}"
        yield heading
        yield from toml(value, f"{path}.", notes)
