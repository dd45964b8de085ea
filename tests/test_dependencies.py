"""Licences of what we depend on; and would an advisory be found?"""

from __future__ import annotations

import pytest
from ci import dependencies
from ci.dependencies import Package


def test_every_licence_is_allowed() -> None:
    packages = [*dependencies.crates(), *dependencies.wheels()]
    assert {package.kind for package in packages} == {"Rust", "Python"}
    assert dependencies.refused(packages) == []


def test_the_page_has_every_package_of_the_lock_files() -> None:
    packages = [*dependencies.crates(), *dependencies.wheels()]
    assert {"strsim", "scipy", "tomli-w", "foldhash"} <= {package.name for package in packages}
    assert dependencies.absent(packages) == []
    assert dependencies.absent([Package("Rust", "strsim", "0.0.1", "MIT")])


@pytest.mark.parametrize(
    ("licence", "holds"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(MIT OR GPL-2.0-only) AND LGPL-2.1-only", False),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("none named", False),
        ("MPL-2.0", False),
    ],
)
def test_a_licence_that_is_not_on_the_list_is_refused(licence: str, holds: bool) -> None:
    assert dependencies.allowed(licence, dependencies.LINKED) == holds
    wrong = dependencies.refused([Package("Rust", "x", "1.0.0", licence)])
    assert bool(wrong) != holds


@pytest.mark.parametrize(
    ("version", "requirement", "holds"),
    [
        ("0.6.2", ">= 0.6.3", False),
        ("0.6.3", ">= 0.6.3", True),
        ("0.3.9", "^0.3.4", True),
        ("0.4.0", "^0.3.4", False),
        ("1.9.0", "^1.2", True),
        ("2.0.0", "^1.2", False),
        ("1.2.9", "~1.2.3", True),
        ("1.3.0", ">= 1.2, < 1.3", False),
        ("0.0.4", "^0.0.3", False),
    ],
)
def test_versions_are_compared_as_cargo_does(version: str, requirement: str, holds: bool) -> None:
    assert dependencies.meets(version, requirement) == holds


def test_an_advisory_is_found() -> None:
    rust = {
        "crates/smallvec/RUSTSEC-2018-0003.md": "```toml\n[advisory]\nid = 'RUSTSEC-2018-0003'\n"
        "package = 'smallvec'\n[versions]\npatched = ['>= 0.6.3']\nunaffected = ['< 0.3.2']\n```\n"
    }
    for version, count in (("0.6.2", 1), ("0.6.3", 0), ("0.3.1", 0)):
        found = dependencies.of_rust([Package("Rust", "smallvec", version, "MIT")], rust)
        assert len(found) == count, version
    pytest.importorskip("yaml")
    python = {
        "vulns/numpy/PYSEC-2017-1.yaml": "id: PYSEC-2017-1\naffected:\n- ranges:\n"
        "  - type: ECOSYSTEM\n    events:\n    - introduced: '1.0'\n    - fixed: 1.13.3\n"
    }
    for version, count in (("0.9", 0), ("1.13.1", 1), ("1.13.3", 0)):
        found = dependencies.of_python([Package("Python", "numpy", version, "BSD")], python)
        assert len(found) == count, version
