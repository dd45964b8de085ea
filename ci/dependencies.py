#!/usr/bin/env python3
"""The dependencies of this project, with their licences and known advisories.

$ python ci/dependencies.py                      fails on a licence that is not allowed, and on a
                                                 package that docs/dependencies.md lacks
$ python ci/dependencies.py --write RUSTSEC PYPA writes docs/dependencies.md

RUSTSEC and PYPA are clones of github.com/rustsec/advisory-db and github.com/pypa/advisory-database:
CI has no network for them, so the page has their dates.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "dependencies.md"
#: By their SPDX names: what may be linked.
LINKED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause"),
    *("BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Unicode-3.0"),
    *("Unlicense", "Zlib"),
}
#: And what may run beside us, unchanged, as a Python package.
BESIDE = LINKED | {"MPL-2.0"}
#: Words of Python packages that say no SPDX name.
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

INTRODUCTION = """\
# Dependencies

The packages of the lock files, as of {}: licences, and advisories for these versions.
`python ci/dependencies.py` fails on a licence that is not on its list and on a package that this
page lacks, and so do two tests. With `--write` and clones of the two data bases it writes this
page. CI has no network for the data bases, so they have dates.

## Advisories

| data base | advisories |
|---|---|
{}

## Licences

| | package | version | licence |
|---|---|---|---|
"""


class Package(NamedTuple):
    """A dependency; ``licence`` is None where it is not installed here."""

    kind: str
    name: str
    version: str
    licence: str | None


def crates() -> list[Package]:
    """The foreign packages of Cargo.lock."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found = [package for package in json.loads(done.stdout)["packages"] if package["source"]]
    return sorted(
        Package("Rust", package["name"], package["version"], package["license"] or "none named")
        for package in found
    )


def wheels() -> list[Package]:
    """The foreign packages of uv.lock."""
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    others = [package for package in locked if "registry" in package["source"]]
    return [
        Package("Python", one["name"], one["version"], licence_of(one["name"])) for one in others
    ]


def licence_of(name: str) -> str | None:
    """The licence of an installed Python package as an SPDX expression."""
    try:
        said = metadata(name)
    except PackageNotFoundError:
        return None
    if expression := said.get("License-Expression"):
        return str(expression)
    classifiers = [line.split(" :: ") for line in said.get_all("Classifier", [])]
    names = [words[-1] for words in classifiers if words[0] == "License" and len(words) > 2]
    text = names or [str(said.get("License") or "none named").partition("\n")[0]]
    return " OR ".join(SPDX.get(one, re.sub(r"[()]", "", one)) for one in text)


def allowed(licence: str, names: set[str]) -> bool:
    """Whether an SPDX expression leaves a choice among these names."""
    words = re.findall(r"[()]|[^()\s]+", licence.replace("/", " OR "))

    def either() -> bool:
        found = both()
        while words and words[0] == "OR":
            words.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        word = words.pop(0)
        if word == "(":
            found = either()
            words.pop(0)
            return found
        while words and words[0] not in ("AND", "OR", ")"):
            word += f" {words.pop(0)}"
        return word in names

    return either() and not words


def refused(packages: list[Package]) -> list[Package]:
    """Those whose licence is not on the list."""
    names = {"Rust": LINKED, "Python": BESIDE}
    known = [package for package in packages if package.licence is not None]
    return [one for one in known if not allowed(str(one.licence), names[one.kind])]


def absent(packages: list[Package]) -> list[Package]:
    """Those that the page lacks, and whose advisories are therefore not known."""
    text = PAGE.read_text(encoding="utf-8")
    return [one for one in packages if f"| {one.kind} | {one.name} | {one.version} |" not in text]


def database(clone: str, folder: str) -> tuple[str, dict[str, str]]:
    """The date of a clone, and its files by name."""
    git = ["git", "-C", clone]
    date = subprocess.run([*git, "log", "-1", "--format=%cs"], check=True, capture_output=True)
    tar = subprocess.run([*git, "archive", "HEAD", folder], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(tar.stdout)) as archive:
        files = [member for member in archive if member.isfile()]
        read = {one.name: archive.extractfile(one).read().decode() for one in files}  # type: ignore[union-attr]
    return date.stdout.decode().strip(), read


def meets(version: str, requirement: str) -> bool:
    """Whether a version meets a requirement of Cargo: >= 1.2, < 2, ^0.3, ~1.2, =1, with commas."""
    found = Version(version)
    for part in requirement.split(","):
        sign, number = re.fullmatch(r"\s*([<>=^~]*)\s*([\w.+-]+)\s*", part).groups()  # type: ignore[union-attr]
        wanted = Version(number.partition("-")[0])
        numbers = [*wanted.release, 0, 0][:3]
        if sign in ("^", "~", ""):
            place = 1 if sign == "~" else next((i for i in range(3) if numbers[i]), 2)
            above = [*numbers[:place], numbers[place] + 1]
            good = wanted <= found < Version(".".join(map(str, above)))
        else:
            order = (found > wanted) - (found < wanted)
            good = order in {">=": (0, 1), ">": (1,), "<=": (0, -1), "<": (-1,), "=": (0,)}[sign]
        if not good:
            return False
    return True


def of_rust(packages: list[Package], files: dict[str, str]) -> list[str]:
    """Advisories of RustSec that hold for these crates."""
    by_name = {package.name: package for package in packages if package.kind == "Rust"}
    found = []
    for name, text in files.items():
        if (package := by_name.get(Path(name).parent.name)) is None or not name.endswith(".md"):
            continue
        said: dict[str, Any] = tomllib.loads(text.split("```")[1].removeprefix("toml"))
        safe = [*said["versions"].get("patched", []), *said["versions"].get("unaffected", [])]
        if "withdrawn" not in said["advisory"] and not any(meets(package.version, r) for r in safe):
            kind = said["advisory"].get("informational", "vulnerability")
            found.append(f"{said['advisory']['id']}: {package.name} {package.version}, {kind}")
    return sorted(found)


def of_python(packages: list[Package], files: dict[str, str]) -> list[str]:
    """Advisories of PyPA that hold for these packages."""
    import yaml  # CI does not need it

    by_name = {package.name: package for package in packages if package.kind == "Python"}
    found = []
    for name, text in files.items():
        if (package := by_name.get(Path(name).parent.name)) is None:
            continue
        said = yaml.safe_load(text)
        for affected in said["affected"] if "withdrawn" not in said else []:
            ranges = [r for r in affected.get("ranges", []) if r["type"] == "ECOSYSTEM"]
            named = package.version in map(str, affected.get("versions", []))
            if named or any(_within(package.version, one["events"]) for one in ranges):
                found.append(f"{said['id']}: {package.name} {package.version}")
    return sorted(set(found))


def _within(version: str, events: list[dict[str, Any]]) -> bool:
    inside = False
    for event in events:
        ((kind, at),) = event.items()
        passed = Version(version) >= Version(str(at))
        if kind == "last_affected":
            passed = Version(version) > Version(str(at))
        inside = passed if kind == "introduced" else inside and not passed
    return inside


def page(packages: list[Package], rustsec: str, pypa: str) -> str:
    """docs/dependencies.md."""
    rust_date, rust = database(rustsec, "crates")
    python_date, python = database(pypa, "vulns")
    holding = {
        f"RustSec, as of {rust_date}": of_rust(packages, rust),
        f"PyPA, as of {python_date}": of_python(packages, python),
    }
    rows = [(p.kind, p.name, p.version, p.licence or "not installed here") for p in packages]
    advisories = [f"| {name} | {'; '.join(found) or 'none'} |" for name, found in holding.items()]
    return INTRODUCTION.format(datetime.now(UTC).date(), "\n".join(advisories)) + "".join(
        f"| {' | '.join(row)} |\n" for row in rows
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", nargs=2, metavar=("RUSTSEC", "PYPA"))
    asked = parser.parse_args()
    packages = [*crates(), *wheels()]
    if asked.write:
        PAGE.write_text(page(packages, *asked.write), encoding="utf-8")
    for package in (new := absent(packages)):
        print(f"{package.kind} {package.name} {package.version}: not in {PAGE.relative_to(ROOT)}")
    for package in (wrong := refused(packages)):
        print(f"{package.kind} {package.name} {package.version}: {package.licence} is not allowed")
    sys.exit(1 if wrong or new else 0)


if __name__ == "__main__":
    main()
