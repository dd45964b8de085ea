"""Attacks on ten laws: the weaknesses of each, and which of them Linux shows too.

$ python -m studies.attacks                    attacks them, and confirms on Linux what it can run
$ python -m studies.attacks reno --runs 3000   some of them, with fewer runs; the others stay
$ python -m studies.attacks --linux 2          confirms two of each law, on the slowest links
$ python -m studies.attacks --confirm          confirms kept weaknesses that Linux has not run
$ python -m studies.attacks --again            judges what is kept by today's simulator
$ python -m studies.attacks --scenarios DIR    writes the scenarios of all kept weaknesses

The outcome is studies/reference/attacks.json, from which `make reference` writes the table of
docs/attack.md, and two figures of that page. Runs are kept in build/attacks. It needs `make linux`,
except for scenarios.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lfnlab.analysis.table import markdown
from lfnlab.attacker import Weakness, attack, confirm
from lfnlab.attacker.elsewhere import build_of
from lfnlab.attacker.files import scenario
from lfnlab.attacker.judge import Judge
from lfnlab.attacker.runs import Runs
from lfnlab.attacker.space import number
from lfnlab.attacker.weaknesses import law_named
from lfnlab.figures.weakness import save
from lfnlab.machine import cores
from lfnlab.results.provenance import code_version, now
from lfnlab.testbed.linux_backend import Linux

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Kept = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "attacks"
KEPT = ROOT / "studies" / "reference" / "attacks.json"
FIGURES = ROOT / "docs" / "figures"
LAWS = (
    *("reno", "cubic", "htcp", "hstcp", "westwood", "vegas", "illinois", "bbr", "bbr3"),
    "htcp-be",
)
RUNS = 20_000
SEED = 1


def attacked(law: str, runs: int, out: Path) -> Kept:
    """The outcome of an attack as it is kept."""
    out.mkdir(parents=True, exist_ok=True)
    made = attack(law, runs=runs, seed=SEED, out=out / law)
    about = {"code": code_version(), "made": now()[:10], "linux": ""}
    return about | {"budget": runs} | made.to_json()


def again(said: Kept) -> None:
    """Judge a law's kept weaknesses by today's simulator; one that no longer holds goes."""
    others = [law_named(name) for name in said["others"]]
    judge = Judge(law_named(said["law"]), others, Runs(None, {}, cores()))
    held = []
    for one in said["weaknesses"]:
        if (found := judge.confirm(one["keys"], one["kind"])) is not None:
            weakness = Weakness(one["name"], judge.law, one["keys"], found)
            held.append({**one, **weakness.to_json()})
    said["weaknesses"] = held
    said["code"] = code_version()


def confirm_some(said: Kept, most: int, out: Path) -> Iterator[None]:
    """Run at most so many of a law's kept weaknesses on Linux, which has not run them.

    Yields after each, when it is in its place in ``said``.
    """
    out.mkdir(parents=True, exist_ok=True)
    backend = Linux()
    build = build_of(backend)
    said["linux"] = backend.build.release
    names = {one["name"]: one for one in said["weaknesses"] if "linux" not in one}
    count = 0
    for one in cheapest([Weakness.from_json(said["law"], one) for one in names.values()]):
        if count < most:
            found = confirm([one], backend, build, out=out)[one.name]
            names[one.name]["linux"] = found.to_json() | {"says": found.says}
            count += found.holds is not None  # one that Linux cannot run costs nothing
            yield


def cheapest(found: Sequence[Weakness]) -> list[Weakness]:
    """The weaknesses in goodput first; of these the pulses, then the ones on the slowest links."""

    def place(one: Weakness) -> tuple[bool, bool, float, str]:
        in_goodput, pulses = one.kind not in ("queue", "waste"), "udp" in one.path
        return not in_goodput, not pulses, number(one.path, "rate_mbps"), one.name

    return sorted(found, key=place)


def kept() -> dict[str, Kept]:
    """The kept outcomes, by law."""
    if not KEPT.exists():
        return {}
    laws: dict[str, Kept] = json.loads(KEPT.read_text(encoding="utf-8"))
    return laws


def keep(rows: Mapping[str, Kept]) -> None:
    """Write the outcomes, a law a line."""
    lines = ",\n".join(
        f"{json.dumps(law)}: {json.dumps(rows[law], ensure_ascii=False)}"
        for law in LAWS
        if law in rows
    )
    KEPT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def weaknesses() -> list[Weakness]:
    """All kept weaknesses."""
    return [
        Weakness.from_json(law, one) for law, said in kept().items() for one in said["weaknesses"]
    ]


def table() -> str:
    """Counts by law, and a row for a weakness of each law and harm."""
    rows, counts = [], []
    for law, said in kept().items():
        found = said["weaknesses"]
        linux = [one["linux"]["holds"] for one in found if "linux" in one]
        numbers = (said["runs"], len(found), *map(linux.count, (True, False, None)))
        counts.append((law, *(f"{number:,}" for number in numbers)))
        for kind in dict.fromkeys(one["kind"] for one in found):
            # One that Linux shows too comes first.
            one = max(
                (one for one in found if one["kind"] == kind),
                key=lambda one: (
                    one.get("linux", {}).get("holds") is True,
                    "linux" in one,
                    one["margin"],
                ),
            )
            there = one.get("linux", {"says": "not run"})
            rows.append((law, kind, one["says"], there["says"]))
    codes = ", ".join(sorted({said["code"] for said in kept().values()}))
    linux_of = ", ".join(sorted({said["linux"] for said in kept().values()}))
    dates = ", ".join(sorted({said["made"] for said in kept().values()}))
    heads = ("law", "runs", "weaknesses", "Linux shows it too", "does not", "cannot run it")
    return "\n".join(
        [
            *markdown(heads, counts),
            "",
            f"Measured with lfnlab {codes} and Linux {linux_of}, {dates}.",
            "",
            *markdown(("law", "harm", "in the simulator", "on Linux"), rows),
        ]
    )


def draw() -> None:
    """The two figures of the page: pulses that starve Reno, BBR in a shallow buffer."""
    found = weaknesses()
    shrew = [one for one in found if one.law.name == "reno" and "udp" in one.path]
    shallow = [
        one
        for one in found
        if one.law.name == "bbr" and float(one.path.get("buffer_bdp", 1.0)) < 0.5
    ]
    for name, several in (("attack-shrew", shrew), ("attack-shallow", shallow)):
        if several:
            save(several[0], FIGURES / f"{name}.png")


def write_scenarios(folder: Path) -> None:
    """A file LAW/NAME.toml for each kept weakness."""
    for one in weaknesses():
        (folder / one.law.name).mkdir(parents=True, exist_ok=True)
        text = scenario(one)
        (folder / one.law.name / f"{one.name}.toml").write_text(text, encoding="utf-8")


def main() -> None:
    """Attack, or write scenarios."""
    parser = argparse.ArgumentParser(prog="python -m studies.attacks")
    parser.add_argument("laws", nargs="*", default=LAWS, help="default: all of the study")
    parser.add_argument("--runs", type=int, default=RUNS, help="simulations of a law")
    parser.add_argument("--linux", type=int, default=1000, help="weaknesses of a law on Linux")
    parser.add_argument(
        "--confirm", action="store_true", help="attack nothing, confirm what is kept"
    )
    parser.add_argument("--again", action="store_true", help="judge what is kept again")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the runs")
    parser.add_argument("--scenarios", type=Path, metavar="DIR", help="write scenarios alone")
    asked = parser.parse_args()
    if asked.scenarios:
        write_scenarios(asked.scenarios)
        return
    rows = kept()
    for law in asked.laws if asked.again else ():
        again(rows[law])
        keep(rows)
    for law in () if asked.again else asked.laws:
        if not asked.confirm:
            rows[law] = attacked(law, asked.runs, asked.out)
            keep(rows)
        for _ in confirm_some(rows[law], asked.linux, asked.out / law):
            keep(rows)
    draw()


if __name__ == "__main__":
    main()
