"""Is a law in this Linux the law of the header, bit for bit? Level 1 of conformance.

$ python -m validation.kernel [--on linux] [LAW...]

Each law is built with a record of every call (kernel/record.bpf.h), loaded, and carries a payload
over a lossy loopback, or with `--on linux` sends in Linux in virtual time, into which laws are
built; crates/conformance then gives the shim compiled natively, and the committed
BPF object in a virtual machine, what Linux found before each call, and compares what the three
leave.
Needs what `kernel/build` and `lfn kernel check` need, or `make linux`; and cargo.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from lfnlab import Scenario, kernel
from lfnlab.control_laws.registry import known
from lfnlab.kernel import loopback
from lfnlab.testbed import linux_backend, virtual_run, virtual_time

ROOT = Path(__file__).parent.parent
SIZE_BYTES = 8_000_000
DROP_INTERVAL = 200
#: In virtual time: losses, reordering that looks like loss, an outage; room for the records.
TROUBLE = """
schema = 1
duration = "8s"
[link]
rate = "20Mbit/s"
loss = 0.0005
reorder = {{ p = 0.0005, delay = "30ms" }}
[link.queue]
kind = "codel"
ecn = true
[[flow]]
law = "{law}"
rtt = "40ms"
ecn = {ecn}
[[schedule]]
at = "5s"
link = "forward"
down = true
[[schedule]]
at = "6s"
link = "forward"
down = false
"""
RECORDS_BYTES = 60_000_000


def build(out: Path) -> None:
    """Writes the recording object of every law into a directory."""
    subprocess.run([ROOT / "kernel/build", "-DLFN_RECORD", out], check=True)


def record_virtually(law: str) -> bytes:
    """Every call of one flow in Linux in virtual time."""
    info = known(law)
    ecn = info is not None and info.family == "ecn"
    scenario = Scenario.from_toml(TROUBLE.format(law=law, ecn=str(ecn).lower()))
    run, rest = virtual_time.translated(scenario.check().to_document(), ours=True).split("\n", 1)
    told = f"{run} record_bytes={RECORDS_BYTES}\n{rest}"
    with tempfile.TemporaryDirectory() as work:
        virtual_run.run(linux_backend.build().program, Path(work), "run", told)
        return (Path(work) / "run.records").read_bytes()


def record(law: kernel.KernelLaw, objects: Path) -> bytes:
    """Every call of one transfer in this kernel."""
    with kernel.attach(law, (objects / f"{law.name}.bpf.o").read_bytes()) as attachment:
        loopback.transfer(law.kernel_name, SIZE_BYTES, DROP_INTERVAL)
        return attachment.records()


def replay(law: kernel.KernelLaw, records: bytes) -> subprocess.CompletedProcess[str]:
    """Runs them elsewhere: one line, how many calls agreed; or, with exit code 1, what differs."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(records)
        file.flush()
        command = ["cargo", "run", "--quiet", "--locked", "-p", "lfn-conformance", "--"]
        return subprocess.run(
            [*command, law.name, file.name], cwd=ROOT, capture_output=True, text=True
        )


def main() -> int:
    """Prints a line for each law; 1 if one differs."""
    parser = argparse.ArgumentParser(prog="python -m validation.kernel")
    parser.add_argument("--on", choices=("kernel", "linux"), default="kernel")
    parser.add_argument("law", nargs="*", help="default: every law that this kernel can load")
    asked = parser.parse_args()
    virtual = asked.on == "linux"
    chosen = [kernel.find(name) for name in asked.law] or [
        law
        for law in kernel.laws()
        if virtual or not kernel.host.missing_for(law.name, steers=law.steers)
    ]
    failed = 0
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "lfn-conformance"], check=True)
    with tempfile.TemporaryDirectory() as objects:
        if not virtual:
            build(Path(objects))
        for law in chosen:
            records = record_virtually(law.name) if virtual else record(law, Path(objects))
            outcome = replay(law, records)
            print(outcome.stdout or outcome.stderr, end="", flush=True)
            failed |= outcome.returncode
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
