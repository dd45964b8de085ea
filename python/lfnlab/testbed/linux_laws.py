"""The laws that Linux in virtual time has: ours, headers that were built in, and its own."""

from __future__ import annotations

import os
from pathlib import Path

from lfnlab import kernel
from lfnlab.control_laws import prototype
from lfnlab.control_laws.registry import known

#: Laws that Linux has as modules of its own, and what it calls them.
MODULES = {
    name: name
    for name in (
        "reno",
        "cubic",
        "bic",
        "htcp",
        "scalable",
        "westwood",
        "vegas",
        "illinois",
        "yeah",
        "hybla",
        "veno",
        "bbr",
        "dctcp",
    )
} | {"hstcp": "highspeed"}
#: A clone of the repository, where it is not above this package.
CLONE = "LFN_LINUX"


def clone() -> Path | None:
    """The clone of the repository whose ``linux/`` is used, or None."""
    said = os.environ.get(CLONE)
    root = Path(said) if said else Path(__file__).resolve().parents[3]
    return root if (root / "linux" / "run").is_file() else None


def _built_in(law: str) -> str | None:
    """Name of a header's law, if ``make linux LAWS=FILE.h`` built these bytes of it in."""
    root, text = clone(), prototype.source_of(law)
    for file in () if root is None else sorted((root / "build/linux/laws").glob("*.h")):
        if file.read_text(encoding="utf-8") == text:
            return kernel.of_header(file).kernel_name
    return None


def why_not_built_in(law: str) -> str:
    """Why a prototype does not run there, and the remedy."""
    name = law.partition("@")[0]
    if prototype.is_controller(law):
        return f"{name} is a controller, which the simulator alone runs"
    if not name.endswith(".h"):
        return f"{name} is a law in Python; port it to a C header (docs/prototypes.md)"
    return (
        f"{name} is not built into it; make -C {clone() or 'CLONE'} linux LAWS=/PATH/OF/{name} "
        "builds it in, mostly within two minutes"
    )


def kernel_law(law: str, *, ours: bool) -> str | None:
    """Name of a law in this kernel; None if it has none.

    Args:
        law: NAME or NAME:VARIANT, or a prototype as a scenario names it.
        ours: our law unless the variant is ``linux``; else Linux's own, whatever the variant.
    """
    if prototype.is_prototype(law):
        return _built_in(law) if ours else None
    name, _, variant = law.partition(":")
    info = known(name)
    if ours and info is not None and "kernel" in info.targets and variant in ("", info.variants[0]):
        return f"lfn_{name.replace('-', '_')}"
    return MODULES.get(name) if not ours or variant == "linux" else None
