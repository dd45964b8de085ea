"""Congestion controllers of deployed stacks, each through the same stimuli.

$ python -m validation.stacks           measure all that `make stacks` built; write the reference
$ python -m validation.stacks LAW...    print those rows, and what differs from the stored ones

``stacks/drive.c`` is the sender and the path: a window, pacing, an ACK for each packet one round
trip later, losses as a stimulus says. It calls a controller through ``controller.h``; our own laws
stand behind it too (``stacks/own.c``). A row holds numbers only; ``docs/stacks.md`` says in words
what they mean.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lfnlab.control_laws import stacks

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "validation" / "reference" / "stacks.json"
OWN = {"reno:linux": ("reno", 1), "cubic": ("cubic", 0), "cubic:linux": ("cubic", 1)}
"""Our laws beside them: header and place of the variant in its registry line."""
PACKET_BYTES = 1200
RTT_S = 0.1
Row = dict[str, float | None]


@dataclass(frozen=True)
class Trace:
    """Output of the driver: columns over time, and where its marks stand."""

    columns: np.ndarray
    marks: dict[str, int]

    def at(self, place: str | int) -> dict[str, float]:
        """The row of a mark, or by its number."""
        row = self.columns[self.marks[place] if isinstance(place, str) else place]
        names = ("time", "window", "pacing", "in_flight", "delivered", "lost", "srtt")
        return dict(zip(names, row.tolist(), strict=True))

    def part(self, first: str, last: str = "end") -> tuple[np.ndarray, np.ndarray]:
        """Time since a mark, and window, up to another mark."""
        rows = self.columns[self.marks[first] : self.marks[last] + 1]
        return rows[:, 0] - rows[0, 0], rows[:, 1]

    def reduction(self, first: str = "lose") -> tuple[float, float, float]:
        """Time (s, since the mark), window before and after the first reduction from a mark on.

        After: the least window in the 1.5 round trips that follow, which some stacks inflate first.
        """
        time, window = self.part(first)
        falls = np.flatnonzero(np.diff(window) <= -1.0)
        if not len(falls):
            return math.nan, float(window[0]), math.nan
        at = int(falls[0])
        soon = time <= time[at] + 1.5 * self.at(first)["srtt"]
        return float(time[at]), float(window[at]), float(window[at + 1 :][soon[at + 1 :]].min())


Measure = Callable[[Trace], Row]


@dataclass(frozen=True)
class Stimulus:
    """A way to drive a controller, and the numbers that it shows."""

    steps: str
    """Of ``stacks/drive.c``."""
    measure: Measure
    rtt_s: float = RTT_S


def _value(time: np.ndarray, window: np.ndarray, at_s: float) -> float:
    return float(window[np.searchsorted(time, at_s, side="right") - 1])


def _back_s(time: np.ndarray, window: np.ndarray, since_s: float, level: float) -> float:
    """Seconds from a time until the window is at a level again; NaN if it is not."""
    there = np.flatnonzero((time > since_s + 0.2) & (window >= level - 1e-9))
    return float(time[there[0]] - since_s) if len(there) else math.nan


def _loss(trace: Trace) -> Row:
    time, window = trace.part("lose")
    at_s, before, after = trace.reduction()
    # RFC 9438 (1), (2): W(t) = C (t - K)^3 + W, K^3 = W (1 - beta) / C, solved for C at 15 s.
    above = _value(time, window, at_s + 15) - before
    root = (np.cbrt(above) + np.cbrt(before - after)) / 15
    return {
        "before": before,
        "beta": after / before,
        "back_s": _back_s(time, window, at_s, before),
        "C": float(root**3),
        **{f"after_{s}_s": _value(time, window, at_s + s) / before for s in (1, 5, 10)},
        "pacing_gain": trace.at("calm")["pacing"]
        * trace.at("calm")["srtt"]
        / trace.at("calm")["window"],
    }


def _slope(time: np.ndarray, window: np.ndarray, low: float, high: float, rtt_s: float) -> float:
    """Packets per round trip while the window is between two levels, after the reduction."""
    inside = (window >= low) & (window <= high) & (time > 1.2 * rtt_s)
    if inside.sum() < 5:
        return math.nan
    slope = np.polyfit(time[inside], window[inside], 1)[0]
    return float(slope * rtt_s)


def _friendly(trace: Trace) -> Row:
    time, window = trace.part("lose")
    at_s, before, after = trace.reduction()
    later = time >= at_s
    time, window = time[later] - at_s, window[later]
    return {
        "friendly_below": _slope(time, window, after + 1, before - 1, 0.02),
        "friendly_above": _slope(time, window, before + 2, before + 20, 0.02),
    }


def _convergence(trace: Trace) -> Row:
    first = trace.reduction("lose")
    time, window = trace.part("again")
    at_s, before, after = trace.reduction("again")
    back_s = _back_s(time, window, at_s, before)
    rest = (time >= at_s + 0.15) & (window < before)
    grows = np.flatnonzero(rest & (window > after + 0.5))
    return {
        "second_before": before / first[1],
        "second_beta": after / before,
        "second_back_s": back_s,
        # Of a curve around the old window: cbrt(W (1 - beta) / 0.4).
        "second_plain_s": float(np.cbrt(before * (1 - after / before) / 0.4)),
        "second_frozen_s": float(time[grows[0]] - at_s) if len(grows) else math.nan,
    }


def _least(trace: Trace) -> Row:
    return {"least": float(trace.columns[:, 1].min())}


def _start(trace: Trace) -> Row:
    start, one, four = (trace.at(name) for name in ("start", "one", "four"))
    factor = (four["window"] / one["window"]) ** (1 / 3)
    gain = four["pacing"] * four["srtt"] / four["window"]
    return {"initial": start["window"], "start_factor": factor, "start_pacing_gain": gain}


def _exit(name: str) -> Measure:
    def measure(trace: Trace) -> Row:
        before, after = trace.at("slow"), trace.at("end")
        return {name: after["window"] / before["window"]}

    return measure


def _cap(trace: Trace) -> Row:
    return {"cap": trace.at("end")["window"]}


def _limited(trace: Trace) -> Row:
    quiet, bulk, end = (trace.at(name)["window"] for name in ("quiet", "bulk", "end"))
    return {"limited": bulk / quiet, "bulk": end / bulk}


def _long_limited(trace: Trace) -> Row:
    return {f"long_{name}": value for name, value in _limited(trace).items()}


def _idle(trace: Trace) -> Row:
    time, window = trace.part("bulk")
    quiet = trace.at("quiet")["window"]
    return {"idle": float(window[1]) / quiet, "idle_then": _value(time, window, 0.5) / quiet}


def _persistent(trace: Trace) -> Row:
    _, window = trace.part("dark")
    return {"persistent": trace.at("end")["window"], "persistent_before": float(window.max())}


def _two(trace: Trace) -> Row:
    _, before, after = trace.reduction()
    return {"two_losses": after / before}


def _large(trace: Trace) -> Row:
    time, window = trace.part("lose")
    at_s, before, after = trace.reduction()
    beta = after / before
    # RFC 9438 (1) with C = 0.4, from this reduction.
    curve = 0.4 * (20 - np.cbrt(before * (1 - beta) / 0.4)) ** 3 + before
    return {
        "large_before": before,
        "large_beta": beta,
        "large_20_s": _value(time, window, at_s + 20) / before,
        "large_curve": float(curve) / before,
    }


CALM = "until 100 20 mark lose lose 1 for 10 mark quiet"
_OF_WINDOWS = {
    "loss": Stimulus("until 100 20 mark lose lose 1 for 5 mark calm for 15 mark end", _loss),
    "friendly": Stimulus("until 40 20 mark lose lose 1 for 3 mark end", _friendly, 0.02),
    "convergence": Stimulus(
        "until 100 20 mark lose lose 1 for 2 mark again lose 1 for 25 mark end", _convergence
    ),
    "least": Stimulus("until 100 20 " + "lose 1 for 0.12 " * 40 + "mark end", _least),
    "exit_13": Stimulus("until 70 10 mark slow rtt 0.113 for 0.6 mark end", _exit("exit_13")),
    "exit_26": Stimulus("until 70 10 mark slow rtt 0.126 for 0.6 mark end", _exit("exit_26")),
    "cap": Stimulus("until 50000 30 mark end", _cap),
    "limited": Stimulus(f"{CALM} app 100 for 10 mark bulk app -1 for 1 mark end", _limited),
    "long": Stimulus(f"{CALM} app 100 for 60 mark bulk app -1 for 1 mark end", _long_limited),
    "idle": Stimulus(f"{CALM} app 0 for 10 mark bulk app -1 for 1 mark end", _idle),
    "two": Stimulus("until 100 20 every 20 mark lose lose 2 for 0.3 mark end", _two),
    "large": Stimulus("until 156250 60 mark lose lose 1 for 21 mark end", _large, 0.3),
}
_OF_ALL = {
    "start": Stimulus("mark start for 0.105 mark one for 0.3 mark four mark end", _start),
    "persistent": Stimulus(
        "until 100 20 mark dark black 1 for 4 black 0 for 0.001 mark end", _persistent
    ),
}
"""Stimuli that say something of a controller that measures a bottleneck, too: there is none."""
RATES = ("bbr", "bbr3", "copa")
"""Controllers that follow a measured rate or delay."""


_FOLDER = tempfile.TemporaryDirectory(prefix="lfn-stacks-")


@cache
def _tools() -> Path:
    """A folder with the driver and our own laws, built; it ends with the process."""
    out = Path(_FOLDER.name)
    header = f"-I{ROOT / 'python/lfnlab/control_laws/skeletons'}"
    source = ROOT / "stacks"
    command = ["cc", "-O2", header, "-o", f"{out}/drive", f"{source}/drive.c", "-ldl", "-lm"]
    subprocess.run(command, check=True)
    for law, (name, variant) in OWN.items():
        given = ["-include", f"{ROOT}/laws/{name}.h", f"-DLAW={name}", f"-DVARIANT={variant}"]
        shared = ["cc", "-O2", "-shared", "-fPIC", header, *given, f'-DNAME="{law}"']
        subprocess.run([*shared, "-o", f"{out}/{law}.so", f"{source}/own.c"], check=True)
    return out


def drive(law: str, stimulus: Stimulus) -> Trace:
    """One controller through one stimulus."""
    library = _tools() / f"{law}.so" if law in OWN else stacks.built(law)
    command = [f"{_tools()}/drive", str(library), str(PACKET_BYTES), str(stimulus.rtt_s)]
    done = subprocess.run(
        [*command, *stimulus.steps.split()],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{law}: {stimulus.steps}: exit code {done.returncode}\n{done.stderr}")
    rows: list[list[float]] = []
    marks: dict[str, int] = {}
    for line in done.stdout.splitlines():
        if line.startswith("# "):
            marks[line[2:]] = len(rows)
        else:
            rows.append([float(word) for word in line.split()])
    return Trace(np.array(rows), marks)


def measured(law: str, only: Sequence[str] = (), but: Sequence[str] = ()) -> Row:
    """All numbers of a controller, or those of some stimuli; None where a stimulus shows none."""
    row: Row = {}
    rates = law.rpartition(":")[2] in RATES
    for name, stimulus in (_OF_ALL if rates else _OF_ALL | _OF_WINDOWS).items():
        if name in but or (only and name not in only):
            continue
        for key, value in stimulus.measure(drive(law, stimulus)).items():
            shown = value is not None and not math.isnan(value)
            row[key] = float(f"{value:.4g}") if shown else None
    return row


def driven() -> list[stacks.Stack]:
    """The stacks of the battery; whole ones have no interface of a controller."""
    return [one for one in stacks.stacks() if not one.is_whole]


def here() -> list[str]:
    """Our laws, and the controllers of stacks that are built."""
    return [
        *OWN,
        *(law for one in driven() for law in one.laws if stacks.built(law).is_file()),
    ]


def stored() -> dict[str, Row]:
    """The committed rows, by law."""
    if not REFERENCE.is_file():
        return {}
    rows: dict[str, Row] = json.loads(REFERENCE.read_text(encoding="utf-8"))["rows"]
    return rows


def differences(law: str, row: Row) -> list[str]:
    """Numbers of a row that are not the stored ones."""
    before = stored().get(law, {})
    return [
        f"{law}: {name}: {before.get(name)} is stored, {value} was measured"
        for name, value in row.items()
        if before.get(name) != value
    ]


def main(names: Iterable[str]) -> None:
    """Measure; write all rows, or print some."""
    chosen = list(names)
    with ThreadPoolExecutor(2) as pool:
        rows = dict(zip(chosen or here(), pool.map(measured, chosen or here()), strict=True))
    for law, row in rows.items():
        print(law, json.dumps(row))
        if chosen:
            print(*differences(law, row), sep="\n")
    if not chosen:
        versions = {one.name: f"{one.package} {one.version}" for one in driven()}
        content = {"versions": versions, "rows": stored() | rows}
        REFERENCE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
