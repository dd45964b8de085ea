"""The named commands: each reruns one peer, the laboratory, or the page that compares them.

$ python -m validation linux|ns2|ns3    run that peer and rewrite validation/reference
$ python -m validation tried            run ns-3's rules here, and count ns-3's timeouts
$ python -m validation ours             run the laboratory and print what differs from the reference
$ python -m validation report           run the laboratory and rewrite docs/validation.md, figures
$ python -m validation hunt             draw scenarios and find those where Linux differs (--help)
$ python -m validation traces           one flow's window beside Linux's, sample by sample (--help)
$ python -m validation l4s              DCTCP and CUBIC over DualPI2, on Linux and here
$ python -m validation both FILE.toml   one scenario on Linux and here, and what differs
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path as FilePath
from types import ModuleType

from . import (
    both,
    hunt,
    l4s,
    linux,
    ns2,
    ns3,
    ns3_tried,
    reference,
    report,
    theory,
    traces,
    trouble,
)
from .analyse import measure
from .compare import explanation, open_differences
from .report import Comparison

PEERS: dict[str, ModuleType] = {"linux": linux, "ns2": ns2, "ns3": ns3}


def rerun(name: str, raw: FilePath, only: str) -> None:
    """Runs the scenarios of one peer whose tags contain ``only``, and rewrites its reference.

    The others keep the figures that they have. SystemExit if the peer is missing.
    """
    peer = PEERS[name]
    missing = peer.missing()
    if missing:
        raise SystemExit(f"validation: SKIPPED {name}: {missing}")
    measured = []
    sampled_s = 0.0
    known = reference.load(name)
    for number, run in enumerate(peer.RUNS, 1):
        print(f"{name} {number}/{len(peer.RUNS)} {run.tag}", file=sys.stderr)
        if only not in run.tag:
            if run.tag in known:
                measured.append((run, known[run.tag]))
            continue
        samples = [peer.simulate(replica, raw / name) for replica in run.replicas]
        sampled_s = max(sampled_s, *(file.stat().st_mtime for file in samples))
        traces = [peer.read(file) for file in samples]
        measured.append((run, measure(traces, run.path.settle_s)))
        if run.path.flows == 1:
            reference.save_window(name, run, traces[0][0])
    date = datetime.datetime.fromtimestamp(sampled_s, datetime.UTC).date().isoformat()
    print(reference.save(name, peer.TITLE, date, measured))


def _line(source: str, what: str, theirs: float, ours: float | None, relative: float) -> str:
    shown = "none" if ours is None else f"{ours:.5g}"
    return f"{source:6} {what}: {theirs:.5g} / {shown} ({relative:+.1%})"


def judge() -> bool:
    """Prints every difference beyond the aim; whether each has a known cause or is on record."""
    failed = 0
    for check in theory.checks():
        print(_line("theory", check.what, check.theory, check.measured, check.relative))
        failed += not check.within
    for name, peer in PEERS.items():
        comparison = Comparison(name, peer)
        for difference in comparison.differences():
            if difference.within:
                continue
            rule = explanation(name, difference)
            recorded = open_differences(name).get(difference.name) == difference.percent
            failed += rule is None and not recorded
            line = _line(
                name, difference.name, difference.theirs, difference.ours, difference.relative
            )
            print(line, rule or ("no known cause" if recorded else "NOT ON RECORD"))
    return failed == 0


def main() -> None:
    """Parses the command line and runs one command."""
    for name, command in (
        ("hunt", hunt.main),
        ("traces", traces.main),
        ("both", both.main),
        ("l4s", l4s.main),
    ):
        if sys.argv[1:2] == [name]:
            command(sys.argv[2:])
            return
    parser = argparse.ArgumentParser(
        prog="python -m validation", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "what",
        choices=[*PEERS, "tried", "trouble", "ours", "report", "hunt", "traces", "both", "l4s"],
    )
    parser.add_argument(
        "--raw",
        type=FilePath,
        default=FilePath("build/validation"),
        help="samples of the peers; runs whose samples are there are not run again",
    )
    parser.add_argument(
        "--only",
        default="",
        help="of a peer: runs whose tag contains this; others keep their figures",
    )
    arguments = parser.parse_args()
    if arguments.what == "ours":
        sys.exit(0 if judge() else 1)
    elif arguments.what == "trouble":
        trouble.main()
    elif arguments.what == "tried":
        if why := ns3.missing():
            sys.exit(f"validation: SKIPPED tried: {why}")
        print(ns3_tried.write(arguments.raw / "ns3"))
    elif arguments.what == "report":
        print(
            report.write([Comparison(name, peer) for name, peer in PEERS.items()], theory.checks())
        )
    else:
        rerun(arguments.what, arguments.raw, arguments.only)


main()
