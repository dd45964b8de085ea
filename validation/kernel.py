"""Is a law in this Linux the law of the header, bit for bit? Level 1 of conformance.

$ python -m validation.kernel [LAW...]

Each law is built with a record of every call (kernel/record.bpf.h), loaded, and carries a payload
over a lossy loopback; crates/conformance then gives the shim compiled natively, and the committed
BPF object in a virtual machine, what Linux found before each call, and compares what the three
leave.
Needs what `kernel/build` and `lfn kernel check` need, and cargo.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from lfnlab import kernel
from lfnlab.kernel import loopback

ROOT = Path(__file__).parent.parent
SIZE_BYTES = 8_000_000
DROP_INTERVAL = 200


def build(out: Path) -> None:
    """Writes the recording object of every law into a directory, and compiles what replays."""
    subprocess.run([ROOT / "kernel/build", "-DLFN_RECORD", out], check=True)
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "lfn-conformance"], check=True)


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
    parser.add_argument("law", nargs="*", help="default: every law that this kernel can load")
    names = parser.parse_args().law
    chosen = [kernel.find(name) for name in names] or [
        law for law in kernel.laws() if not kernel.host.missing_for(law.name, steers=law.steers)
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as objects:
        build(Path(objects))
        for law in chosen:
            outcome = replay(law, record(law, Path(objects)))
            print(outcome.stdout or outcome.stderr, end="", flush=True)
            failed |= outcome.returncode
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
