"""Weaknesses on another TCP than the simulator's: Linux in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab import _core
from lfnlab.attacker import harm
from lfnlab.attacker.judge import SEEDS
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.scenarios import LONG_S
from lfnlab.attacker.weaknesses import Weakness, sentence
from lfnlab.errors import LabError, ScenarioError

if TYPE_CHECKING:
    from lfnlab.attacker.harm import Figures
    from lfnlab.experiment.executor import Backend

STAND_INS = {"bbr3": "bbr"}
"""Linux has no BBRv3; BBR stands in its place there."""
FILE = "linux.jsonl"


@dataclass(frozen=True)
class Elsewhere:
    """A weakness on Linux.

    Args:
        holds: whether both conditions of the harm are met there with both seeds; None where Linux
            cannot run it.
        why_not: why it cannot.
        other: the law in its place there.
        margin: by how many times the conditions are met.
        law_figures: by seed.
        other_figures: by seed.
        says: the result in words.
    """

    holds: bool | None
    says: str
    why_not: str = ""
    other: str = ""
    margin: float = 0.0
    law_figures: tuple[Figures, ...] = ()
    other_figures: tuple[Figures, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object of ``attack.json``."""
        return {
            "holds": self.holds,
            "why_not": self.why_not,
            "other": self.other,
            "margin": self.margin,
            "law_figures": [one.to_json() for one in self.law_figures],
            "other_figures": [one.to_json() for one in self.other_figures],
        }


def confirm(
    weaknesses: Sequence[Weakness],
    backend: Backend,
    build: str,
    *,
    out: FilePath | None = None,
    jobs: int = 1,
    progress: Callable[[float, int], None] | None = None,
) -> dict[str, Elsewhere]:
    """Run weaknesses on another TCP, with the other law in the law's place too.

    Args:
        weaknesses: of one attack.
        backend: where they run, one after the other.
        build: what names the backend's build; runs of another are not taken.
        out: folder that keeps the runs, so that they are not run again.
        jobs: runs at a time.
        progress: told how far it is.

    Returns:
        By name of the weakness.

    Raises:
        UsageError: the folder holds runs of another build.
        KeyboardInterrupt: finished runs are kept in ``out``.
    """
    file = None if out is None else out / FILE
    runs = Runs(file, {"on": build}, jobs, backend=backend)
    found = {}
    for place, weakness in enumerate(weaknesses):
        if progress is not None:
            progress(place, len(weaknesses))
        found[weakness.name] = _one(weakness, backend, runs)
    return found


def _one(weakness: Weakness, backend: Backend, runs: Runs) -> Elsewhere:
    other = STAND_INS.get(weakness.other, weakness.other)
    asks = [
        Ask(weakness.path, law, seed, LONG_S)
        for law in (weakness.law.spelled, other)
        for seed in SEEDS
    ]
    try:
        for ask in (asks[0], asks[-1]):
            backend.check(_core.Scenario(ask.text, weakness.name))
    except ScenarioError as error:
        return Elsewhere(None, error.with_key, str(error))
    except LabError as error:
        return Elsewhere(None, f"cannot run it: {error}", str(error))
    made = [one for one in runs(asks) if one is not None]
    if len(made) < len(asks):
        why = runs.first_failure
        return Elsewhere(None, f"a run failed: {why}", why)
    law, others = tuple(made[: len(SEEDS)]), tuple(made[len(SEEDS) :])
    margin = min(
        harm.margin(weakness.kind, weakness.path, one, two)
        for one, two in zip(law, others, strict=True)
    )
    says = sentence(weakness.law.name, weakness.path, weakness.kind, other, law, others)
    words = "holds" if margin >= 1.0 else "does not hold"
    return Elsewhere(
        margin >= 1.0, f"{words}: {says.partition(': ')[2]}", "", other, margin, law, others
    )


def build_of(backend: Backend) -> str:
    """A name of a backend's build: its address of the plain dumbbell."""
    scenario = _core.Scenario(Ask({}, "reno", 1, LONG_S).text)
    return f"{backend.name} {backend.keys(scenario, [1])[0]}"
