"""Hunts for scenarios in which the laboratory and Linux disagree, and makes them small.

$ python -m validation hunt --seed 1 --count 100 [--hours 4] [--jobs 2] [--keep 3]

Draws scenarios (:mod:`validation.draw`), runs both, and prints those that disagree. If one run
disagrees, or several flows share the bottleneck, both sides run eight times with RTTs spread over a
packet's transmission time. If the eight runs of one side differ by more than 5 %, the scenario is
chaotic and medians are compared. If the medians of eight runs disagree, 32 runs a side decide, the
later ones with other random losses, and in long hunts with RTTs spread over 1 %: a difference
counts if it exceeds the bar and is statistically significant (:mod:`validation.chance`).
``--ours`` draws our laws instead of Linux's own: one header runs on both sides, so what differs
comes from the kernel form or from the order of calls.
``--long`` draws long fat networks (:func:`validation.draw.draw_long`), ``--l4s`` DCTCP and others
behind DualPI2 and other AQMs (:func:`validation.draw.draw_l4s`). ``--dry-run`` says what a hunt
will cost.
``--itself`` compares Linux with itself at other phases; the disagreements are the error of the
method. ``--keep N`` reduces the N worst cases to the smallest scenario that still disagrees, and
adds them to ``validation/cases``. Outcomes of Linux are stored in ``build/hunt``, so a hunt that
was killed continues. With ``--record`` each verdict is a line in ``validation/reference/hunts``:
commit it, and the same command continues on another machine; the last verdict writes hunt.json.
``--refresh`` hunts nothing: it runs this build of Linux for the kept cases.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab.errors import LabError

from . import outcome
from .chance import Chance, exchanged
from .draw import (
    LONG_PACKETS,
    MOST_PACKETS,
    SAME_LOSSES,
    USUAL_B,
    Drawn,
    DrawnFlow,
    Step,
    draw,
    draw_l4s,
    draw_long,
)
from .outcome import Outcome

if TYPE_CHECKING:
    from .outcome import Verdict

#: What runs scenarios.
Side = Callable[[Sequence[Drawn]], list[Outcome]]

ROOT = FilePath(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "hunt"
CASES = FilePath(__file__).with_name("cases")
LAST = FilePath(__file__).with_name("reference") / "hunt.json"
LAST_LONG, LAST_L4S = LAST.with_name("hunt-long.json"), LAST.with_name("hunt-l4s.json")
#: What each kind of hunt draws with.
DRAWING = {"": draw, "long": draw_long, "l4s": draw_l4s}
#: Verdicts of recorded hunts, a file a seed.
VERDICTS = FilePath(__file__).with_name("reference") / "hunts"
#: Crates that decide what a run gives; a prediction of their cost does not.
DECIDE = ("header", "keys", "law", "path", "scenario", "sim", "tcp", "udt", "units")
DECIDES_NOTHING = "crates/scenario/src/predict"
#: Phases of a chaotic scenario; where the medians of few differ, many.
FEW, MANY = SAME_LOSSES, 32
#: Runs of Linux that the shrinking of one scenario may take.
SHRINKING = 25
#: CPU of Linux for a packet, in s, and how many scenarios need more phases, as in the hunts so far.
PACKET_S, DIFFER = 10e-6, 0.35


@dataclass(frozen=True)
class Found:
    """One scenario on both sides. Of a chaotic one, medians over the phases."""

    drawn: Drawn
    theirs: Outcome
    mine: Outcome
    verdict: Verdict
    chaotic: bool
    #: Runs of each side; their medians are compared.
    phases: int = 1
    #: What chance does to these medians, where they were tested.
    chance: Chance | None = None

    @property
    def agrees(self) -> bool:
        """Whether what differs is allowed, or may be chance."""
        return self.verdict.agrees or (self.chance is not None and self.chance.explains)


def judge(drawn: Drawn, cache: FilePath, ours: Side = outcome.ours) -> Found:
    """Runs a scenario on both sides; where they disagree or flows meet, in its phases too."""
    theirs, [mine] = outcome.linux(drawn, cache), ours([drawn])
    verdict = outcome.compare(theirs, mine)
    if verdict.agrees and len(drawn.flows) == 1:
        return Found(drawn, theirs, mine, verdict, chaotic=False)
    for count in (FEW, MANY):
        phases = drawn.phases(count)
        every, here = [outcome.linux(phase, cache) for phase in phases], ours(phases)
        # With the same losses each side may repeat itself, though a packet more or less, as at a
        # tie, shifts them all.
        repeats = not (outcome.chaotic(every) or outcome.chaotic(here))
        found = Found(drawn, *compared(every, here), chaotic=not repeats, phases=count)
        if repeats and not (count == FEW and (drawn.hits_packets or drawn.spread)):
            # The first alone may have met a tie.
            return found
        if found.verdict.agrees:
            return found
    return replace(found, chance=exchanged(every, here))


def compared(
    theirs: Sequence[Outcome], mine: Sequence[Outcome]
) -> tuple[Outcome, Outcome, Verdict]:
    """The medians of both sides, and how they compare."""
    a, b = outcome.median(theirs), outcome.median(mine)
    return a, b, outcome.compare(a, b)


def itself(cache: FilePath) -> Side:
    """Linux in our place, at phases between those that are drawn."""

    def runs(drawn: Sequence[Drawn]) -> list[Outcome]:
        return [outcome.linux(one.phase(MANY), cache) for one in drawn]

    return runs


# ---- shrinking ----


def smaller(drawn: Drawn) -> Iterator[Drawn]:
    """Scenarios that are simpler by one thing, the boldest first."""
    flows = drawn.flows
    if len(flows) > 1:
        for gone in range(len(flows)):
            yield replace(drawn, flows=flows[:gone] + flows[gone + 1 :])
    for trait in ("loss", "reorder", "duplicate", "ack_loss"):
        if getattr(drawn, trait):
            fewer: dict[str, Any] = {trait: 0.0}
            yield replace(drawn, **fewer)
    for gone in range(len(drawn.steps)):
        yield replace(drawn, steps=drawn.steps[:gone] + drawn.steps[gone + 1 :])
    if drawn.delay_ms and not any(step.delay_ms is not None for step in drawn.steps):
        yield replace(drawn, delay_ms=0.0)
    if drawn.queue != "drop-tail":
        plain = tuple(replace(flow, ecn=False) for flow in flows)
        if drawn.ecn:
            yield replace(drawn, ecn=False, flows=plain)
        if drawn.keys:
            yield replace(drawn, keys="")
        yield replace(drawn, queue="drop-tail", ecn=False, flows=plain, keys="")
    if drawn.packet_b != USUAL_B:
        yield replace(drawn, packet_b=USUAL_B)
    for trait, usual in (("sack", True), ("delayed_ack", True), ("start_s", 0.0)):
        if any(getattr(flow, trait) != usual for flow in flows):
            as_usual: dict[str, Any] = {trait: usual}
            yield replace(drawn, flows=tuple(replace(flow, **as_usual) for flow in flows))
    if len({flow.law for flow in flows}) > 1:
        yield replace(drawn, flows=tuple(replace(flow, law=flows[0].law) for flow in flows))
    for law in ("reno", "cubic"):
        if all(flow.law != law for flow in flows):
            yield replace(drawn, flows=tuple(replace(flow, law=law) for flow in flows))
    last_s = max(
        [0.0, *(s.at_s + (s.down_s or 0) for s in drawn.steps), *(f.start_s for f in flows)]
    )
    half_s = float(f"{drawn.duration_s / 2:.3g}")
    if half_s > last_s + 2:
        yield replace(drawn, duration_s=half_s)


def shrunk(found: Found, cache: FilePath, most: int = SHRINKING) -> Found:
    """The smallest scenario reached that still disagrees in the same figure and direction."""
    tries = 0
    moved = True
    while moved:
        moved = False
        for candidate in smaller(found.drawn):
            if tries >= most:
                return found
            tries += 1
            tried = judge(candidate, cache)
            alike = tried.verdict.signs & found.verdict.signs
            if alike and not tried.agrees and tried.chaotic <= found.chaotic:
                found, moved = tried, True
                break
    return found


# ---- cases ----


@dataclass(frozen=True)
class Case:
    """A scenario that was kept, and what Linux gave; ``open`` where ours still differs."""

    drawn: Drawn
    theirs: Outcome
    phases: int
    open: bool


def keep(found: Found, folder: FilePath = CASES) -> FilePath:
    """Writes a case."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{'-'.join(found.drawn.traits)}-{found.drawn.tag}.json"
    written = {
        "open": not found.agrees,
        "phases": found.phases if found.chaotic else 1,
        "linux": found.theirs.plain(),
        "drawn": asdict(found.drawn),
    }
    file.write_text(json.dumps(written, indent=1) + "\n")
    return file


def case(file: FilePath) -> Case:
    """Reads a case."""
    kept = json.loads(file.read_text())
    flows = tuple(DrawnFlow(**flow) for flow in kept["drawn"]["flows"])
    steps = tuple(Step(**step) for step in kept["drawn"]["steps"])
    drawn = Drawn(**kept["drawn"] | {"flows": flows, "steps": steps})
    return Case(drawn, Outcome.of_plain(kept["linux"]), kept["phases"], kept["open"])


def refresh(file: FilePath, cache: FilePath) -> str:
    """Runs Linux again for a kept case and writes what it gives; what changed, as text.

    A case whose outcome stays is not written. As in a hunt, many phases decide where few differ
    from ours.
    """
    kept = case(file)

    def medians(phases: int) -> Outcome:
        return outcome.median([outcome.linux(one, cache) for one in kept.drawn.phases(phases)])

    phases, theirs = kept.phases, medians(kept.phases)
    if phases == FEW and not outcome.compare(theirs, ours_of(kept.drawn, phases)).agrees:
        phases, theirs = MANY, medians(MANY)
    if theirs == kept.theirs:
        return ""
    written = json.loads(file.read_text()) | {"phases": phases, "linux": theirs.plain()}
    file.write_text(json.dumps(written, indent=1) + "\n")
    changes = [
        f"flow {number} {name}: {getattr(before, name):.6g} / {getattr(after, name):.6g}"
        for number, (before, after) in enumerate(zip(kept.theirs.flows, theirs.flows, strict=True))
        for name in outcome.FIGURES
        if getattr(before, name) != getattr(after, name)
    ]
    apart = outcome.compare(kept.theirs, theirs).worst
    what = "; ".join(changes) or "drops or marks"
    return f"{file.stem}: {what} (kept / now; {apart:.2f} of what is allowed)"


def ours_of(drawn: Drawn, phases: int) -> Outcome:
    """The simulator's outcome: medians over so many phases."""
    return outcome.median(outcome.ours(drawn.phases(phases)))


def described(found: Found) -> str:
    """A scenario that disagrees, in lines."""
    head = f"{found.verdict.worst:8.1f}  {found.drawn.tag}  {' '.join(found.drawn.traits)}"
    head += "  (chaotic: medians)" if found.chaotic else ""
    if found.chance:
        head += f"  (p {found.chance.p:.4f}; finds {found.chance.finds:.0%})"
    return "\n".join([head, *(f"          {line} (Linux / ours)" for line in found.verdict.what)])


def last(file: FilePath) -> dict[str, Any]:
    """Counts and seed of the last recorded hunt: :data:`LAST` or :data:`LAST_LONG`."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def cost_hours(scenarios: Sequence[Drawn]) -> float:
    """CPU hours that Linux will take for them."""
    runs = (1 + DIFFER * FEW, FEW + DIFFER * MANY)
    packets = sum(drawn.packets * runs[len(drawn.flows) > 1] for drawn in scenarios)
    return packets * PACKET_S / 3600


# ---- the command ----


def _judged(
    scenarios: Sequence[Drawn], jobs: int, until: float, cache: FilePath, ours: Side
) -> Iterator[Found]:
    """Scenarios as they are done, until the time is over."""
    with ThreadPoolExecutor(jobs) as pool:

        def one(drawn: Drawn) -> Found | None:
            if time.monotonic() > until:
                return None
            try:
                return judge(drawn, cache, ours)
            except LabError as error:
                print(f"hunt: scenario {drawn.seed - 1} ({drawn.tag}): {error}", file=sys.stderr)
                return None

        waiting = [pool.submit(one, drawn) for drawn in scenarios]
        try:
            for done in as_completed(waiting):
                if found := done.result():
                    yield found
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class Judged:
    """The verdict on one scenario, as a summary counts it."""

    number: int
    traits: tuple[str, ...]
    within: bool
    agrees: bool
    chaotic: bool
    #: What the test of chance said, where there was one: p, and the difference that it finds.
    tested: tuple[float, float] | None

    @classmethod
    def of(cls, found: Found) -> Judged:
        """Of a scenario that was run."""
        chance = found.chance
        return cls(
            found.drawn.seed - 1,
            found.drawn.traits,
            found.verdict.agrees,
            found.agrees,
            found.chaotic,
            (round(chance.p, 4), round(chance.finds, 3)) if chance else None,
        )


def simulator() -> str:
    """The hash of the sources that decide what a run gives."""
    files = [ROOT / "Cargo.lock", *(ROOT / "laws").glob("*.h"), ROOT / "laws/REGISTRY"]
    for crate in DECIDE:
        files += (ROOT / "crates" / crate / "src").rglob("*.*")
    names = sorted(str(file.relative_to(ROOT)) for file in files)
    hashed = hashlib.sha256()
    for name in names:
        if not name.startswith(DECIDES_NOTHING):
            hashed.update(f"{name}\n".encode() + (ROOT / name).read_bytes())
    return hashed.hexdigest()


class Verdicts:
    """The verdicts of one recorded hunt, a line each."""

    def __init__(self, file: FilePath, which: str) -> None:
        """Reads what is there.

        Raises:
            SystemExit: it is of another simulator, or of another choice of scenarios.
        """
        self.file = file
        head = json.dumps({"which": which, "simulator": simulator()})
        kept = file.read_text() if file.exists() else ""
        # A hunt that was killed may have left half a line.
        whole = kept[: kept.rfind("\n") + 1] or head + "\n"
        first, *lines = whole.splitlines()
        if first != head:
            sys.exit(
                f"validation: {file} has verdicts of {first}, this hunt is {head}; "
                "hunt with another --seed, or delete the file"
            )
        self.every = [_judged_of(line) for line in lines]
        if whole != kept:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(whole)

    def add(self, judged: Judged) -> None:
        """Keeps one more."""
        self.every.append(judged)
        with self.file.open("a") as file:
            file.write(json.dumps(asdict(judged)) + "\n")


def _judged_of(line: str) -> Judged:
    kept = json.loads(line)
    tested = kept["tested"] and tuple(kept["tested"])
    return Judged(**kept | {"traits": tuple(kept["traits"]), "tested": tested})


def summary(seed: int, which: str, every: Sequence[Judged]) -> dict[str, object]:
    """Numbers of scenarios and fractions that agree, in total and by feature."""
    drawn: Counter[str] = Counter()
    agree: Counter[str] = Counter()
    for judged in every:
        drawn.update(judged.traits)
        agree.update(judged.traits if judged.agrees else ())
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seed": seed,
        "which": which,
        "scenarios": len(every),
        "agree": sum(judged.within for judged in every),
        "chaotic": sum(judged.chaotic for judged in every),
        # Beyond what is allowed, but not beyond chance; and what the tests said.
        "chance": sum(judged.agrees and not judged.within for judged in every),
        "tested": [judged.tested for judged in every if judged.tested],
        "traits": {trait: [agree[trait], drawn[trait]] for trait in sorted(drawn)},
    }


def main(arguments: list[str]) -> None:
    """Parses the command line and hunts."""
    parser = argparse.ArgumentParser(
        prog="python -m validation hunt",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="what is drawn")
    parser.add_argument("--first", type=int, default=0, help="number of the first scenario")
    parser.add_argument("--count", type=int, default=100, help="how many scenarios")
    parser.add_argument("--hours", type=float, default=4.0, help="no scenario begins later")
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--single", action="store_true", help="only those of one flow")
    of.add_argument("--several", action="store_true", help="only those of several flows")
    paths = parser.add_mutually_exclusive_group()
    paths.add_argument("--long", action="store_true", help="long fat networks")
    paths.add_argument("--l4s", action="store_true", help="DCTCP behind DualPI2 and other AQMs")
    parser.add_argument("--dry-run", action="store_true", help="say the cost, and hunt nothing")
    parser.add_argument("--packets", type=float, help="only those of so many at most")
    parser.add_argument("--ours", action="store_true", help="our laws, in Linux too")
    parser.add_argument("--itself", action="store_true", help="Linux in our place")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time")
    parser.add_argument("--keep", type=int, default=0, help="shrink and keep so many of the worst")
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="hunt nothing: run Linux again for the kept cases, write what changed, and print it",
    )
    parser.add_argument(
        "--record", action="store_true", help="keep verdicts, and continue a hunt that has some"
    )
    parser.add_argument("--cache", type=FilePath, default=CACHE, help="what Linux gave")
    asked = parser.parse_args(arguments)
    if asked.packets is None:
        asked.packets = LONG_PACKETS if asked.long else MOST_PACKETS
    if (why := outcome.missing()) and not asked.dry_run:
        sys.exit(f"validation: SKIPPED hunt: {why}")
    if asked.refresh:
        # What another build of Linux gave does not count.
        with tempfile.TemporaryDirectory() as fresh:
            for file in sorted(CASES.glob("*.json")):
                if changed := refresh(file, FilePath(fresh)):
                    print(changed, flush=True)
        return
    kind = "long" if asked.long else "l4s" if asked.l4s else ""
    drawing, last_file = DRAWING[kind], LAST.with_name(f"hunt-{kind}.json") if kind else LAST
    wanted = (
        drawn
        for number in itertools.count(asked.first)
        if (drawn := drawing(asked.seed, number, ours=asked.ours)).packets <= asked.packets
        and not (asked.several if len(drawn.flows) == 1 else asked.single)
    )
    scenarios = list(itertools.islice(wanted, asked.count))
    if asked.dry_run:
        packets = sum(drawn.packets for drawn in scenarios)
        hours = cost_hours(scenarios)
        print(f"{len(scenarios)} scenarios of {packets:.3g} packets: {hours:.1f} hours of CPU")
        return
    which = "one flow" if asked.single else "several flows" if asked.several else "any flows"
    which += " of our laws" if asked.ours else ""
    which += f", {kind}" if kind else ""
    which += ", Linux in our place" if asked.itself else ""
    which += f", at most {asked.packets:,.0f} packets"
    name = f"{kind}-{asked.seed}" if kind else str(asked.seed)
    verdicts = Verdicts(VERDICTS / f"{name}.jsonl", which) if asked.record else None
    before = verdicts.every[:] if verdicts else []
    there = {judged.number for judged in before}
    ahead = [drawn for drawn in scenarios if drawn.seed - 1 not in there]
    ours = itself(asked.cache) if asked.itself else outcome.ours
    every = []
    for found in _judged(
        ahead, asked.jobs, time.monotonic() + 3600 * asked.hours, asked.cache, ours
    ):
        every.append(found)
        if verdicts:
            verdicts.add(Judged.of(found))
        if not found.verdict.agrees:
            print(described(found), flush=True)
        print(f"hunt: {len(there) + len(every)}/{asked.count}", file=sys.stderr)
    every.sort(key=lambda found: (found.agrees, -found.verdict.worst))
    said = summary(asked.seed, which, [*before, *map(Judged.of, every)])
    print(json.dumps(said))
    if verdicts and {drawn.seed - 1 for drawn in scenarios} <= {
        one.number for one in verdicts.every
    }:
        last_file.write_text(json.dumps(said, indent=1) + "\n")
    for found in every[: asked.keep]:
        if not found.agrees:
            small = shrunk(found, asked.cache)
            print(keep(small))
            print(described(small), flush=True)
