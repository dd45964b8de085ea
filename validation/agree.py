"""Every law of the kernel in the simulator and on Linux's TCP: level 2 of conformance.

$ python -m validation.agree --on linux [--path 100m|1g|2.5g|10g] [--longest SECONDS] [LAW...]
$ python -m validation.agree [--path 100m|1g] [--longest SECONDS] [LAW...]

The first runs Linux in virtual time (`make linux`), with any load of the machine. The second runs
the test bed: as root, with what `lfn kernel load` and `lfn shell` need, on a machine that is idle.
Laws that are not loaded are held in the kernel for as long as this takes. Laws that Linux has are
also compared with Linux in virtual time, if it is built. Writes validation/agree/PATH.json, in
virtual time PATH-linux.json, the tables of docs/agree.md, and its figures; laws that are not named
keep what they have. Exit code 1 when a run is invalid or a bar is not met.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from lfnlab import Case, Results, dumbbell, kernel
from lfnlab.analysis import run_length, sawtooth
from lfnlab.analysis.table import markdown, plain
from lfnlab.figures.plot import courses
from lfnlab.figures.small import for_page
from lfnlab.testbed import agree
from lfnlab.testbed.agree import QUANTITIES
from lfnlab.testbed.linux_backend import Linux

from . import linux

if TYPE_CHECKING:
    from lfnlab.figures.plot import Course
    from lfnlab.scenario.builder import Scenario

ROOT = FilePath(__file__).resolve().parents[1]
KEPT = ROOT / "validation" / "agree"
RUNS = ROOT / "build" / "agree"
PAGE = ROOT / "docs" / "agree.md"
FIGURES = ROOT / "docs" / "figures"
#: Rate, RTT, packet, and how long slow start and its repair take at most, in seconds.
PATHS = {"100m": ("100Mbit/s", "180ms", "1500B", 30), "1g": ("1Gbit/s", "40ms", "1500B", 10)}
#: Beyond the test bed: in virtual time alone.
LONG_PATHS = {
    "2.5g": ("2.5Gbit/s", "160ms", "1500B", 10),
    "10g": ("10Gbit/s", "120ms", "9000B", 10),
}
BUFFER = "0.25bdp"
#: A run holds so many epochs after the warm-up, as theory has them, if it may be so long.
EPOCHS = 5
SHORTEST_S, LONGEST_S = 90, 180


def scenario(path: str, law: str, longest_s: float) -> Scenario:
    """A lone flow over a path, for several epochs of its law."""
    rate, rtt, packet, warmup_s = (PATHS | LONG_PATHS)[path]

    def lasting(seconds: float) -> Scenario:
        lone = dumbbell(
            rate=rate, rtt=rtt, buffer=BUFFER, duration=f"{seconds:.0f}s", warmup=f"{warmup_s}s"
        )
        return lone.flow(law, packet=packet)

    epoch_s = run_length.epoch_s(lasting(SHORTEST_S)).get(law, 0.0)
    return lasting(min(max(warmup_s + EPOCHS * epoch_s, SHORTEST_S), longest_s))


def run(path: str, name: str, longest_s: float, *, virtual: bool) -> agree.Agreement:
    """One law, in virtual time or loaded or held."""
    law = kernel.find(name)
    case = Case(scenario(path, name, longest_s), {"law": name})
    out = RUNS / f"{_place(path, virtual=virtual)}-{name}"
    if virtual:
        return agree.agree([case], out=out, title=name, backend=Linux())
    with kernel.attached([law] if law.kernel_name not in kernel.available() else []):
        return agree.agree([case], out=out, title=name, linux=linux.PROGRAM)


def _place(path: str, *, virtual: bool) -> str:
    """How files call a path and where it is."""
    return f"{path}-linux" if virtual else path


def keep(path: str, law: str, agreement: agree.Agreement) -> dict[str, Any]:
    """Write what was found beside what was known of other laws; all of it."""
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{path}.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    said = agreement.to_json()
    known[law] = {"invalid": said["invalid"].get(law), "compared": said["compared"]}
    known = {law.name: known[law.name] for law in kernel.laws() if law.name in known}
    # One law a line.
    lines = ",\n".join(f"{json.dumps(law)}: {json.dumps(found)}" for law, found in known.items())
    file.write_text(f"{{\n{lines}\n}}\n")
    return known


def table(known: dict[str, Any]) -> str:
    """Markdown: simulated, measured beside it, and Linux's own."""
    headings = [quantity.heading for quantity in QUANTITIES.values()]
    late = any(found["invalid"] is not None for found in known.values())
    rows = []
    for law, found in known.items():
        cells = [_cell(row) for row in found["compared"]]
        said = "in time" if found["invalid"] is None else "late"
        rows.append((law, *cells, *([said] if late else [])))
    return "\n".join(markdown(("law", *headings, *(["lateness"] if late else [])), rows))


def _cell(row: dict[str, Any]) -> str:
    quantity = QUANTITIES[row["quantity"]]

    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value * quantity.scale:.4g}"

    text = f"{shown(row['simulated'])}, {shown(row['measured'])}"
    if row["within"] is False:
        text = f"**{text}**"
    return text if row["oracle"] is None else f"{text} ({shown(row['oracle'])})"


def windows(path: str) -> dict[str, list[Course]]:
    """Of every law whose runs are still there: simulated, measured."""
    panels = {}
    for law in kernel.laws():
        folder = RUNS / f"{path}-{law.name}"
        if (folder / "experiment.json").is_file():
            runs = {str(run.factors["on"]): run for run in Results.load(folder).runs}
            found = {where: sawtooth.of_run(run, 0) for where, run in runs.items()}
            panels[law.name] = agree.courses(found)
    return panels


def write_page(path: str, text: str) -> None:
    """Put a table between its marks."""
    begin, end = f"<!-- {path} -->\n", f"\n<!-- end of {path} -->"
    page = PAGE.read_text()
    before, rest = page.split(begin)
    PAGE.write_text(before + begin + text + end + rest.split(end)[1])


def main() -> int:
    """Measure, keep, print."""
    parser = argparse.ArgumentParser(prog="python -m validation.agree")
    parser.add_argument("--on", choices=("testbed", "linux"), default="testbed")
    parser.add_argument("--path", choices=PATHS | LONG_PATHS, help="default: all")
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="seconds of a run")
    parser.add_argument("law", nargs="*", help="default: every law that this kernel can load")
    options = parser.parse_args()
    virtual = options.on == "linux"
    if not virtual and options.path in LONG_PATHS:
        parser.error(f"--path {options.path} needs --on linux")
    paths = PATHS | LONG_PATHS if virtual else PATHS
    laws = options.law or [
        law.name
        for law in kernel.laws()
        if virtual or not kernel.host.missing_for(law.name, steers=law.steers)
    ]
    failed = False
    for path in [options.path] if options.path else paths:
        place = _place(path, virtual=virtual)
        for law in laws:
            agreement = run(path, law, options.longest, virtual=virtual)
            write_page(place, table(keep(place, law, agreement)))
            failed |= bool(agreement.invalid) or not agreement.within
            print(f"{path} {law} {agreement.invalid.get(law, 'in time')}", flush=True)
            print(*plain(agreement.table()), sep="\n", flush=True)
        figure = courses(windows(place), agree.WINDOW)
        (FIGURES / f"agree-{place}.png").write_bytes(for_page(figure))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
