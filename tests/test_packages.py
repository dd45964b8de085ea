"""The crates that can be published pack, with every file that they need inside."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
from test_house import ROOT, crates

PUBLIC = {name: crate for name, crate in crates().items() if crate["publish"] is None}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Names of the files in each .crate; `make package` also builds them from there."""
    target = tmp_path_factory.mktemp("packed")
    named = [word for name in PUBLIC for word in ("-p", name)]
    command = ["cargo", "package", "--quiet", "--offline", "--no-verify", "--allow-dirty"]
    run = subprocess.run(
        [*command, "--target-dir", target, *named], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    files: dict[str, set[str]] = {}
    for path in (target / "package").glob("*.crate"):
        with tarfile.open(path) as archive:
            names = [name.split("/", 1) for name in archive.getnames()]
        files[names[0][0].rsplit("-", 1)[0]] = {name for _, name in names}
    return files


def test_make_packs_every_public_crate() -> None:
    named = re.search(r"^CRATES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named
    assert {f"lfn-{name}" for name in named[1].split()} == set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_crate_packs_with_all_that_it_needs(packed: dict[str, set[str]], name: str) -> None:
    files, folder = packed[name], Path(PUBLIC[name]["manifest_path"]).parent
    assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"} <= files
    needed = (path for top in ("src", "laws") for path in (folder / top).rglob("*"))
    assert {str(path.relative_to(folder)) for path in needed if path.is_file()} <= files
    assert not [file for file in files if file.startswith(("tests/", "target/"))]
    # The example of the README is the crate's doctest.
    assert "```rust\n" in (folder / "README.md").read_text()
    assert '#![doc = include_str!("../README.md")]' in (folder / "src/lib.rs").read_text()
    for key in ("description", "documentation", "keywords", "categories", "license"):
        assert PUBLIC[name][key], key


def test_laws_of_the_packed_crate_are_those_of_the_folder(packed: dict[str, set[str]]) -> None:
    ours = {f"laws/{path.relative_to(ROOT / 'laws')}" for path in (ROOT / "laws").rglob("*.*")}
    assert {"laws/REGISTRY", *ours} <= packed["lfn-law"]


def test_a_crate_is_as_old_as_its_dependencies() -> None:
    shared = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    for name in PUBLIC:
        assert shared["dependencies"][name]["version"] == shared["package"]["version"]


def test_the_readme_names_the_oldest_rust() -> None:
    oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert f"Rust {oldest['rust-version']} or newer" in (ROOT / "README.md").read_text()
    # `make msrv` builds with it; crates without the number would promise nothing.
    for crate in crates().values():
        assert crate["rust_version"] == oldest["rust-version"], crate["name"]
