"""The house: who may depend on whom, what no room may use, and that the documents are true."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lfnlab import _core
from lfnlab.cli.app import app

ROOT = Path(__file__).parent.parent

# Arrows of ARCHITECTURE.md; a crate may also use whatever can be reached through them.
ARROWS = {
    "lfn-units": [],
    "lfn-header": [],
    "lfn-keys": ["lfn-units"],
    "lfn-law": ["lfn-keys", "lfn-header"],
    "lfn-path": ["lfn-keys", "lfn-header"],
    "lfn-tcp": ["lfn-law"],
    "lfn-udt": ["lfn-law"],
    "lfn-capture": [],
    "lfn-controller": ["lfn-law"],
    "lfn-sim": ["lfn-path", "lfn-tcp", "lfn-udt"],
    "lfn-scenario": ["lfn-sim"],
    "lfn-harness": ["lfn-scenario", "lfn-controller"],
    "lfn-transfer": ["lfn-udt"],
    "lfn-conformance": ["lfn-law"],
    "lfn-emulator": ["lfn-sim"],
    "lfn-browser": ["lfn-scenario"],
    "lfn-examples": ["lfn-scenario"],
    "lfn-python": [
        "lfn-scenario",
        "lfn-transfer",
        "lfn-emulator",
        "lfn-capture",
        "lfn-controller",
    ],
}
# A wall clock may be set at any moment, so no interval is measured with it. Who reads one, and why.
WALL_CLOCKS = {
    "crates/transfer/src/socket.rs": "ages of packets that the kernel stamped, checked by a test",
    "python/lfnlab/results/maintenance.py": "ages of files",
    "python/lfnlab/results/provenance.py": "the time of a run's end, for readers",
}
WALL_CLOCK = re.compile(
    r"SystemTime::now|ClockId::Realtime|CLOCK_REALTIME|gettimeofday|time\.time(_ns)?\(|datetime\.now\(|\.utcnow\("
)
# Crates that would bring the machine's randomness into a simulation.
RANDOMNESS = {"ahash", "fastrand", "getrandom", "rand"}

DOCUMENTS = [
    path for glob in ("*.md", "docs/**/*.md", "papers/**/*.md") for path in ROOT.glob(glob)
]


def reachable(crate: str) -> set[str]:
    return {crate}.union(*(reachable(below) for below in ARROWS[crate]))


@cache
def metadata() -> dict[str, Any]:
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    parsed: dict[str, Any] = json.loads(run.stdout)
    return parsed


def crates() -> dict[str, dict[str, Any]]:
    members = set(metadata()["workspace_members"])
    packages = [package for package in metadata()["packages"] if package["id"] in members]
    return {package["name"]: package for package in packages}


def tracked() -> list[Path]:
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    return [ROOT / name for name in run.stdout.decode().split("\0") if name]


def test_arrows_point_down() -> None:
    assert set(crates()) == set(ARROWS), "ARROWS and ARCHITECTURE.md name every crate"
    up = [
        f"{name} -> {dependency['name']}"
        for name, package in crates().items()
        for dependency in package["dependencies"]
        if dependency.get("path") and dependency["name"] not in reachable(name) - {name}
    ]
    assert not up


def test_values_in_python_are_made_from_the_schema() -> None:
    made = runpy.run_path(str(ROOT / "ci/elements.py"))["modules"]()
    assert len(made) == 2
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "stale: .venv/bin/python ci/elements.py"


def test_only_the_python_crate_knows_python() -> None:
    binding = {
        name
        for name, package in crates().items()
        for dependency in package["dependencies"]
        if dependency["name"] in {"pyo3", "numpy"}
    }
    assert binding == {"lfn-python"}


def test_no_simulation_crate_is_built_with_randomness_of_the_machine() -> None:
    nodes = {node["id"]: node for node in metadata()["resolve"]["nodes"]}
    names = {package["id"]: package["name"] for package in metadata()["packages"]}
    todo, seen = [crates()["lfn-scenario"]["id"]], set()
    while todo:
        if (node := todo.pop()) in seen:
            continue
        seen.add(node)
        todo += [
            dependency["pkg"]
            for dependency in nodes[node]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    linked = {names[node] for node in seen}
    assert "rand_xoshiro" in linked
    assert not linked & RANDOMNESS


def test_clippy_refuses_clocks_and_random_hashers(tmp_path: Path) -> None:
    """Everything that clippy.toml names is refused, under the lints of the workspace."""
    rules = tomllib.loads((ROOT / "clippy.toml").read_text())
    methods = [rule["path"] for rule in rules["disallowed-methods"]]
    types = [rule["path"] for rule in rules["disallowed-types"]]
    assert {"std::time::Instant::now", "std::time::SystemTime::now"} <= set(methods)
    assert {"std::collections::HashMap", "std::collections::HashSet"} <= set(types)

    lines = [f"pub fn m{i}() {{ let _ = {path}(); }}" for i, path in enumerate(methods)]
    lines += [f"pub use {path} as T{i};" for i, path in enumerate(types)]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    levels = [f'{name} = "{level}"' for name, level in workspace["lints"]["clippy"].items()]
    manifest = ["[package]", 'name = "rules"', 'edition = "2021"', "[lints.clippy]", *levels]
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text("\n".join(lines))
    (tmp_path / "Cargo.toml").write_text("\n".join(manifest))
    shutil.copy(ROOT / "clippy.toml", tmp_path)
    command = [
        "cargo",
        "clippy",
        "--quiet",
        "--offline",
        "--target-dir=target",
        "--message-format=json",
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    outputs = [json.loads(line) for line in run.stdout.splitlines()]
    refused = {
        span["line_start"]
        for output in outputs
        if output["reason"] == "compiler-message" and output["message"]["level"] == "error"
        if (output["message"]["code"] or {"code": ""})["code"].startswith("clippy::disallowed")
        for span in output["message"]["spans"]
    }
    assert refused == set(range(1, len(lines) + 1)), run.stderr


def test_a_clock_that_is_set_changes_no_interval() -> None:
    roots = (ROOT / "crates", ROOT / "python")
    sources = [
        path
        for path in tracked()
        if path.suffix in (".rs", ".py") and any(path.is_relative_to(root) for root in roots)
    ]
    found = {
        str(path.relative_to(ROOT))
        for path in sources
        if "tests" not in path.parts and WALL_CLOCK.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(WALL_CLOCKS)


def test_every_crate_is_under_the_rules() -> None:
    for package in crates().values():
        manifest = tomllib.loads(Path(package["manifest_path"]).read_text())
        assert manifest["lints"] == {"workspace": True}, package["name"]
    exempt = [
        source.relative_to(ROOT).as_posix()
        for source in ROOT.glob("crates/*/src/**/*.rs")
        if "clippy::disallowed" in source.read_text()
    ]
    real_time = ("crates/python/", "crates/transfer/")
    assert all(name.startswith(real_time) for name in exempt), exempt


def test_no_path_of_a_machine_is_committed() -> None:
    roots = "|".join(["work", "root", "home", "Users", "tmp/target"])
    absolute = re.compile(rf"(?<![\w.}}$])/({roots})/[\w.-]+".encode())
    found = {
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked()
        if path.is_file()
        for match in absolute.finditer(path.read_bytes())
    }
    assert not found


def test_every_law_has_code_line_and_card() -> None:
    text = (ROOT / "laws/REGISTRY").read_text()
    listed = re.findall(r"^([a-z][a-z0-9-]*) ", text, re.MULTILINE)
    assert [law["name"] for law in _core.laws()] == listed
    places = {
        "c": "laws/{}.h",
        "rust": "crates/law/src/end_host/{}.rs",
        "udt": "crates/udt/src/control/native.rs",
    }
    for name in listed:
        language = re.search(rf"^{name} .*\bcode=(\w+)", text, re.MULTILINE)
        code = language[1] if language else "c"
        assert (ROOT / places[code].format(name)).is_file()
        card = (ROOT / f"laws/cards/{name}.md").read_text()
        # UDT's own control takes other calls; crates/udt tests its values.
        assert ("```law" in card) == (code != "udt"), f"the card of {name}: vectors"


@pytest.mark.parametrize("pattern", ["laws/*.h", "kernel/*.[ch]", "benches/*.[ch]"])
def test_c_files_carry_their_licence(pattern: str) -> None:
    for path in ROOT.glob(pattern):
        assert "SPDX-License-Identifier: " in path.read_text().split("\n")[0], path


def test_laws_of_the_readme_exist() -> None:
    """A new law need not be named there."""
    row = re.search(r"^\| Laws \|.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert row
    assert set(re.findall(r"`([a-z-]+)`", row[0])) <= {law["name"] for law in _core.laws()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_name_commands_that_exist(document: Path) -> None:
    """Those of blocks are run, or looked up, by ci/blocks.py."""
    named = set(re.findall(r"`lfn ([a-z]+)", document.read_text()))
    assert named <= set(app), named


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_in_documents_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert not [target for target in targets if not (document.parent / target).exists()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_targets_of_the_makefile(name: str) -> None:
    named = set(re.findall(r"(?:`| {4})make ([a-z-]+)", (ROOT / name).read_text()))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert named <= targets


def test_one_version_everywhere() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = cargo["package"]["version"]
    named = {
        one["version"]
        for name, one in cargo["dependencies"].items()
        if "path" in one and "version" in one
    }
    assert named == {version}
    assert set(re.findall(r"lfnlab-([\d.]+)-", (ROOT / "docs/install.md").read_text())) == {version}
    assert version == _core.VERSION, "make extension"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text()


def test_reasons_to_skip_name_the_tools_that_are_installed() -> None:
    """So that test_ci_tools.py is about the reasons that the tests really have."""
    text = "".join(
        file.read_text()
        for folder in ("tests", "benches")
        for file in (ROOT / folder).rglob("*.py")
    )
    looked_for = set(re.findall(r"shutil\.which\(\"([\w-]+)\"\) is None", text))
    installed = set(
        re.findall(r"^need .* (\S+)$", (ROOT / "ci/tools.sh").read_text(), re.MULTILINE)
    )
    assert looked_for & installed == {"clang-14", "node", "tcptrace", "tshark", "valgrind"}
