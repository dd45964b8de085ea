"""Which law it was, and what another would give there: Linux in virtual time is the judge."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from lfnlab import _core
from lfnlab.diagnose import causes, law, path
from lfnlab.formats import capture

from .score import FAULTS, shown
from .settings import LAWS, MOST_PACKETS, Setting, log_uniform
from .virtual import virtual

#: Modules of Linux that no law here is.
NONE = ("nv", "lp", "cdg")
PATHS, SINGLE, JUDGED, OTHERS = 12, 300, 60, 3
#: Round trips in which a law shows more than its first loss.
ROUNDS = 120
#: A goodput that is predicted is right within these parts; random losses hide the rate.
NEAR, NEAR_LOSSY = 0.1, 0.2
#: A share of the paths loses at random, which hides the rate.
LOSSY = 0.3


def plain(draws: random.Random, law: str, *, is_lossy: bool) -> Setting:
    """A flow that nothing but its path limits."""
    while True:
        rate = float(f"{log_uniform(draws, 2e6, 3e8):.4g}")
        rtt_s = float(f"{log_uniform(draws, 0.01, 0.2):.4g}")
        setting = Setting(law, rate, rtt_s, 0, 0.0, draws.randrange(1, 2**31))
        if not 15 <= setting.bdp_packets <= MOST_PACKETS / ROUNDS:
            continue
        longest_s = MOST_PACKETS * (setting.packet_b + 14) * 8 / rate
        duration_s = min(draws.uniform(15, 40), longest_s)
        room = round(setting.bdp_packets * log_uniform(draws, 0.2, 2))
        part = log_uniform(draws, 0.15, 0.6)
        loss = 1.5 / (part * setting.bdp_packets) ** 2 if is_lossy else 0.0
        if duration_s >= ROUNDS * rtt_s and room >= 8 and loss < 0.02:
            return replace(setting, buffer_packets=room, loss=loss, duration_s=round(duration_s, 3))


def paths() -> list[Setting]:
    """The twelve paths of every law; a third of them loses at random."""
    draws = random.Random("lfnlab diagnose paths")
    return [plain(draws, "reno", is_lossy=number % 3 == 2) for number in range(PATHS)]


def singles(seed: int, count: int) -> Iterator[Setting]:
    """Flows of drawn laws on drawn paths."""
    for number in range(count):
        draws = random.Random(f"lfnlab diagnose law {seed} {number}")
        yield plain(draws, draws.choice(LAWS), is_lossy=draws.random() < LOSSY)


def captured(setting: Setting, cache: FilePath, module: str | None = None) -> FilePath:
    """The capture at the sender on Linux, from the cache or made."""
    key = hashlib.sha256(f"{setting!r} {module}".encode()).hexdigest()[:12]
    folder = cache / "laws" / f"{module or setting.law}-{key}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = FilePath(tempfile.mkdtemp(prefix=f".{os.getpid()}-", dir=folder.parent))
        try:
            virtual(setting, part, module)
            (part / "receiver.pcap").unlink()
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder / "sender.pcap"


def alike_in(file: FilePath, setting: Setting, law: str, cache: FilePath) -> bool:
    """Whether a law on this path sends the same packets as the capture shows."""
    one, other = (capture.read(f).flows for f in (file, captured(replace(setting, law=law), cache)))
    return one["delivered_bytes"].equals(other["delivered_bytes"])


def goodput_bps(file: FilePath) -> float:
    """Of the flow in a capture."""
    (flow,) = capture.read(file).summary["flows"]
    return float(flow["goodput_bps"] or 0.0)


def ranked(file: FilePath) -> dict[str, Any]:
    """The laws that come first for a capture; none if none fits."""
    try:
        seen = shown(file)
        told = causes.diagnose(seen)
        fit = path.fit(seen, told)
        ranking = law.rank(seen, fit)
    except FAULTS as error:
        return {"first": [], "is_none": False, "failed": repr(error)}
    first = [name.partition(":")[0] for name in ranking.first]
    return {"first": first, "is_none": ranking.is_none}


def of_laws(seed: int, cache: FilePath, most: int | None = None) -> dict[str, Any]:
    """Every law on every path, drawn flows, and modules that no law is; `most` of each."""
    parts: dict[str, list[tuple[Setting, str | None]]] = {
        "paths": [(replace(path, law=law), None) for path in paths() for law in LAWS],
        "none": [(path, module) for path in paths() for module in NONE],
        "single": [(setting, None) for setting in singles(seed, most or SINGLE)],
    }
    found: dict[str, Any] = {}
    for name, every in parts.items():
        rows = []
        for setting, module in every[:most]:
            file = captured(setting, cache, module)
            row = {"law": module or setting.law, **ranked(file), "setting": _short(setting)}
            right = setting.law in row["first"]
            if module:
                # Where it sends what a known law sends, that law is right.
                alike = [law for law in LAWS if alike_in(file, setting, law, cache)]
                right = bool(set(alike) & set(row["first"])) if alike else row["is_none"]
            rows.append(row | {"right": right})
            print(
                f"{name:6} {right!s:5} {row['law']:9} {row['first']} {_short(setting)}", flush=True
            )
        found[name] = {"right": sum(row["right"] for row in rows), "of": len(rows), "rows": rows}
    return found


def _short(setting: Setting) -> str:
    return (
        f"{setting.rate_bps / 1e6:g} Mbit/s {setting.rtt_s * 1e3:g} ms {setting.buffer_packets} "
        f"packets loss {setting.loss:.2g} {setting.duration_s:g} s"
    )


def what_if(seed: int, cache: FilePath, count: int = JUDGED) -> dict[str, Any]:
    """From one transfer the goodput of three other laws, beside theirs on Linux."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        draws = random.Random(f"lfnlab diagnose what-if {seed} {number}")
        law, *others = draws.sample(LAWS, 1 + OTHERS)
        setting = plain(draws, law, is_lossy=draws.random() < LOSSY)
        file = captured(setting, cache)
        try:
            seen = shown(file)
            told = causes.diagnose(seen)
            fit = path.fit(seen, told)
        except FAULTS as error:
            rows.append({"law": law, "failed": repr(error), "is_lossy": setting.loss > 0})
            continue
        for other in others:
            truth = goodput_bps(captured(replace(setting, law=other), cache))
            name = other if other == "bbr" else f"{other}:linux"
            scenario = fit.simulated(name, setting.duration_s, is_held=False)
            run = _core.run_many([_core.Scenario(scenario.to_toml(), "fitted.toml")], 1, None)[0]
            assert run is not None
            said = json.loads(run.summary())["flows"][0]["goodput_bps"]
            is_lossy, off = setting.loss > 0, said / truth - 1
            right = abs(off) <= (NEAR_LOSSY if is_lossy else NEAR)
            row = {"law": law, "other": other, "off": round(off, 4), "right": right}
            rows.append(row | {"is_lossy": is_lossy, "setting": _short(setting)})
            print(f"{law:9} {other:9} {row['off']:+.3f} {_short(setting)}", flush=True)
    found: dict[str, Any] = {"paths": count, "rows": rows}
    for word, is_lossy in (("without loss", False), ("with loss", True)):
        mine = [row for row in rows if "off" in row and row["is_lossy"] == is_lossy]
        off = [abs(row["off"]) for row in mine]
        right = sum(row["right"] for row in mine)
        median = statistics.median(off) if off else None
        found[word] = {"median": median, "right": right, "of": len(off)}
    return found


def report(found: dict[str, Any]) -> str:
    """The counts, and which laws were taken for which."""
    lines = []
    for name, part in found.items():
        wrong = Counter((row["law"], *row["first"][:1]) for row in part["rows"] if not row["right"])
        pairs = ", ".join(f"{' as '.join(pair)} {n}" for pair, n in wrong.most_common())
        lines.append(f"{name}: {part['right']} of {part['of']}; {pairs}")
    return "\n".join(lines)
