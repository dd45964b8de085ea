"""Every package of the lock files has a licence that is allowed."""

from __future__ import annotations

import json
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from license_expression import get_spdx_licensing

ROOT = Path(__file__).parent.parent
#: What may be linked.
LINKED = {
    *(
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
    ),
    *("MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Unicode-3.0", "Unlicense", "Zlib"),
}
#: And what may run beside us, unchanged, as a Python package.
BESIDE = LINKED | {"MPL-2.0"}
#: Words of Python packages without an SPDX expression.
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def allowed(licence: str, names: set[str]) -> bool:
    """Whether an SPDX expression leaves a choice among these names."""
    licensing = get_spdx_licensing()
    parsed = licensing.parse(licence.replace("/", " OR "), validate=True)
    choices = {
        one: licensing.TRUE if one.render() in names else licensing.FALSE for one in parsed.literals
    }
    return bool(parsed.subs(choices, simplify=True) == licensing.TRUE)


def of_python(name: str) -> str | None:
    """The licence of an installed package; None where it is not installed here."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return None
    if expression := found.get("License-Expression"):
        return str(expression)
    classifiers = [line.split(" :: ") for line in found.get_all("Classifier", [])]
    words = [one[-1] for one in classifiers if one[0] == "License" and len(one) > 2]
    words = words or [str(found.get("License")).partition("\n")[0]]
    return " OR ".join([SPDX[word] for word in words if word in SPDX] or words)


def test_crates_have_allowed_licences() -> None:
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    crates = {
        one["name"]: one["license"] for one in json.loads(done.stdout)["packages"] if one["source"]
    }
    assert len(crates) > 100
    assert not {
        name: licence for name, licence in crates.items() if not allowed(licence or "none", LINKED)
    }


def test_python_packages_have_allowed_licences() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    found = {one["name"]: of_python(one["name"]) for one in locked if "registry" in one["source"]}
    assert sum(licence is not None for licence in found.values()) > 50
    assert not {
        name: licence for name, licence in found.items() if licence and not allowed(licence, BESIDE)
    }


@pytest.mark.parametrize(
    ("licence", "holds"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR GPL-2.0-only) AND LGPL-2.1-only", False),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
        ("MPL-2.0", False),
    ],
)
def test_a_licence_needs_a_choice_that_is_allowed(licence: str, holds: bool) -> None:
    assert allowed(licence, LINKED) == holds
