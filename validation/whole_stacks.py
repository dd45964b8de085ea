"""Whole stacks on one path with seven troubles, beside Linux's laws: goodput, and lost packets.

$ python -m validation.whole_stacks                    all that are built; stores the rows
$ python -m validation.whole_stacks quinn-whole:cubic  prints rows, and numbers that are not stored

The rows are validation/reference/whole_stacks.json, of which `make reference` makes a table in
docs/stacks.md. About a minute of CPU.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from lfnlab import Scenario
from lfnlab.analysis.table import markdown
from lfnlab.control_laws import stacks
from lfnlab.experiment.plan import Case
from lfnlab.experiment.run import execute

REFERENCE = Path(__file__).parent / "reference" / "whole_stacks.json"
OWN = ("cubic:linux", "reno:linux")
OUTAGE = """\
[[schedule]]
link = "forward"
at = "10s"
rate = "0bit/s"
[[schedule]]
link = "forward"
at = "14s"
rate = "20Mbit/s"
"""
TROUBLES = {
    "none": ('queue = { size = "1bdp" }', ""),
    "marks": ('queue = { kind = "codel", size = "4bdp", ecn = true }', ""),
    "erased": ('queue = { kind = "codel", size = "4bdp", ecn = true }\nbleach = true', ""),
    "copies": ('queue = { size = "1bdp" }\nduplicate = 0.05', ""),
    "late": ('queue = { size = "1bdp" }\nreorder = { p = 0.02, delay = "3ms" }', ""),
    "loss": ('queue = { size = "1bdp" }\nloss = 0.01', ""),
    "outage": ('queue = { size = "1bdp" }', OUTAGE),
}
"""Keys of the link, and a schedule."""
HEADINGS = (
    *("stack", "no trouble", "CoDel that marks", "marks erased", "5 % come twice"),
    *("2 % are 3 ms late", "1 % lost at random", "no link for 4 s"),
)
Row = dict[str, list[float]]
"""Of each trouble: goodput in Mbit/s, and packets found lost."""


def scenario(law: str, trouble: str) -> Scenario:
    """20 s of one flow on 20 Mbit/s × 40 ms."""
    link, schedule = TROUBLES[trouble]
    ecn = "ecn = true" if law in OWN and "ecn" in link else ""
    return Scenario.from_toml(
        f"""\
schema = 1
duration = "20s"
sample = "off"
[link]
rate = "20Mbit/s"
{link}
[[flow]]
law = "{law}"
rtt = "40ms"
{ecn}
{schedule}"""
    )


def here() -> list[str]:
    """Linux's laws, and the whole stacks that are built."""
    whole = [law for one in stacks.stacks() if one.is_whole for law in one.laws]
    return [*OWN, *(law for law in whole if stacks.built(law).is_file())]


def measured(laws: Iterable[str], troubles: Sequence[str] = tuple(TROUBLES)) -> dict[str, Row]:
    """The numbers of these laws, by law and trouble."""
    cases = [Case(scenario(law, one), {"law": law, "at": one}) for law in laws for one in troubles]
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as out:
        for run in execute(cases, out=Path(out), jobs=1, title="whole stacks").runs:
            flow = run.summary["flows"][0]
            told = [round((flow["goodput_bps"] or 0) / 1e6, 2), flow["retransmits"]]
            rows.setdefault(str(run.factors["law"]), {})[str(run.factors["at"])] = told
    return rows


def stored() -> dict[str, Row]:
    """The committed rows, by law."""
    rows: dict[str, Row] = json.loads(REFERENCE.read_text(encoding="utf-8"))["rows"]
    return rows


def versions() -> dict[str, str]:
    """Package and version of each whole stack."""
    return {one.name: f"{one.package} {one.version}" for one in stacks.stacks() if one.is_whole}


def differences(rows: dict[str, Row]) -> list[str]:
    """Numbers of rows that are not the stored ones."""
    before = stored()
    return [
        f"{law}: {trouble}: {before.get(law, {}).get(trouble)} is stored, {told} was measured"
        for law, row in rows.items()
        for trouble, told in row.items()
        if before.get(law, {}).get(trouble) != told
    ]


def table() -> str:
    """A row for each stack: goodput, and packets found lost."""
    rows = [
        (f"`{law}`", *(f"{row[one][0]:.3g}, {row[one][1]:,.0f}" for one in TROUBLES))
        for law, row in stored().items()
    ]
    return "\n".join(markdown(HEADINGS, rows))


def main(names: Iterable[str]) -> None:
    """Measure; write all rows, or print some."""
    chosen = list(names)
    rows = measured(chosen or here())
    if chosen:
        print(json.dumps(rows), *differences(rows), sep="\n")
    else:
        text = json.dumps({"versions": versions(), "rows": rows}, indent=1)
        REFERENCE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
