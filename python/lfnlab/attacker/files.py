"""Files of an attack: a scenario for each weakness, a table, and the typed result as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab.attacker import harm
from lfnlab.control_laws import prototype
from lfnlab.errors import StoreError
from lfnlab.printable import markdown
from lfnlab.results.output import MARK, write
from lfnlab.scenario.builder import toml

if TYPE_CHECKING:
    from lfnlab.attacker.elsewhere import Elsewhere
    from lfnlab.attacker.weaknesses import Attack, Weakness

RESULT, TABLE = "attack.json", "attack.md"


def write_all(
    made: Attack, out: FilePath, elsewhere: Mapping[str, Elsewhere] | None = None
) -> list[FilePath]:
    """Write the files of an attack into its folder, and remove scenarios of an earlier result.

    Args:
        made: the attack.
        out: its folder.
        elsewhere: by name of a weakness, what it showed on Linux.

    Returns:
        The scenarios, in the order of the weaknesses.

    Raises:
        StoreError: a file cannot be written, or lfn did not write the one that is there.
    """
    for name in _earlier(out / RESULT):
        if name not in {weakness.name for weakness in made.weaknesses}:
            for file in (out / f"{name}.toml", out / f"{name}.png"):
                file.unlink(missing_ok=True)
    found = elsewhere or {}
    said = made.to_json()
    for weakness in said["weaknesses"]:
        if (there := found.get(weakness["name"])) is not None:
            weakness["linux"] = there.to_json()
    text = json.dumps({"written": MARK, **said}, indent=1, ensure_ascii=False, allow_nan=False)
    write(out / RESULT, f"{text}\n".encode())
    write(out / TABLE, page(made, found).encode())
    files = []
    for weakness in made.weaknesses:
        files.append(out / f"{weakness.name}.toml")
        write(files[-1], scenario(weakness).encode())
    return files


def scenario(weakness: Weakness) -> str:
    """The scenario of a weakness as a file, which ``lfn run`` runs as it stands."""
    law = prototype.located(weakness.law.name, FilePath())
    tables = {"schema": 1, "name": weakness.name, **weakness.document(law)}
    harmful = harm.SAYS[weakness.kind]
    return (
        f"# {MARK}\n"
        f"# {weakness.law.name} {harmful}: {weakness.says}\n"
        f"# Figures are means from {harm.from_s(weakness.path):g} s on, over the seeds 2 and 3.\n"
        f"{toml(tables)}"
    )


def page(made: Attack, elsewhere: Mapping[str, Elsewhere]) -> str:
    """The weaknesses as a table in Markdown."""
    others = " and ".join(other.name for other in made.others)
    parts = [
        f"<!-- {MARK} -->",
        f"# Weaknesses of {markdown(made.law.name)}",
        "",
        f"Found by `lfn attack {made.law.name} --seed {made.seed}` in {made.runs:,} runs, beside "
        f"{others}.",
        "",
        *table([(made, elsewhere)], with_law=False),
    ]
    return "\n".join(parts) + "\n"


def table(
    attacks: Sequence[tuple[Attack, Mapping[str, Elsewhere]]], *, with_law: bool = True
) -> list[str]:
    """The rows of weaknesses of attacks as lines of a table in Markdown."""
    on_linux = any(elsewhere for _, elsewhere in attacks)
    heads = [*(["law"] if with_law else []), "scenario", "harm", "what it does"]
    heads += ["on Linux"] if on_linux else []
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for made, elsewhere in attacks:
        for weakness in made.weaknesses:
            cells = [made.law.name] if with_law else []
            cells += [weakness.name, weakness.kind, weakness.says]
            if on_linux:
                there = elsewhere.get(weakness.name)
                cells.append("" if there is None else there.says)
            lines.append(f"| {' | '.join(map(markdown, cells))} |")
    return lines


def _earlier(file: FilePath) -> list[str]:
    """Names of the weaknesses of the result that is there."""
    try:
        said: Any = json.loads(file.read_text(encoding="utf-8"))
        return [str(weakness["name"]) for weakness in said["weaknesses"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        return []
