"""``lfn new`` writes a commented start; ``lfn --install-completion`` sets up the shell."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Literal

from cyclopts import App

from lfnlab.errors import StoreError, UsageError
from lfnlab.printable import say

new = App(
    name="new", help="Write a commented start: a scenario, a law in Python, a controller, a sweep."
)

#: Of each language the files of a controller, here and in its folder; how to build it, if it is to
#: be built; the result.
_CONTROLLERS = {
    "c": (
        {"controller.h": "controller.h", "c/mine.c": "mine.c"},
        "cc -O2 -shared -fPIC -o {folder}/mine.so {folder}/mine.c",
        "mine.so",
    ),
    "rust": (
        {
            "rust/Cargo.toml.txt": "Cargo.toml",
            "rust/src/lib.rs": "src/lib.rs",
            "rust/src/lfn.rs": "src/lfn.rs",
        },
        "cargo build --release --manifest-path {folder}/Cargo.toml",
        "target/release/libmine.so",
    ),
    "go": (
        {
            "controller.h": "controller.h",
            "go/go.mod.txt": "go.mod",
            "go/mine.go": "mine.go",
            "go/calls.go": "calls.go",
            "go/table.c": "table.c",
        },
        "go build -C {folder} -buildmode=c-shared -o mine.so .",
        "mine.so",
    ),
    "python": ({"python/mine.py.txt": "mine.py"}, "", "mine.py"),
}


@new.command
def scenario(file: Path = Path("scenario.toml"), /, *, preset: str | None = None) -> int:
    """Write a scenario with comments, to be changed.

    Args:
        file: The file; it must not exist.
        preset: One of the scenarios that come with lfnlab instead, such as `e-vlbi`.
    """
    if preset is None:
        return write(file, _start("scenario.toml", str(file)), f"lfn run {file}")
    from lfnlab.scenario.presets import presets

    known = presets()
    if preset not in known:
        allowed = ", ".join(known) or "none, as this package was built without them"
        raise UsageError(f'--preset: no scenario "{preset}"; allowed: {allowed}')
    return write(file, known[preset].read_text(encoding="utf-8"), f"lfn run {file}")


@new.command
def law(file: Path = Path("mine.py"), /) -> int:
    """Write a law in Python, Reno with a gentler decrease, to be changed.

    Args:
        file: The file; it must not exist.
    """
    name = str(file) if file.is_absolute() else f"./{file}"
    runs = f"lfn compare --law {name}:Mine,cubic --rate 100Mbit/s --rtt 50ms"
    return write(file, _start("law.py.txt", name), runs)


@new.command
def controller(
    folder: Path = Path("mine"), /, *, language: Literal["c", "rust", "go", "python"] = "c"
) -> int:
    """Write a controller that owns window and pacing rate, equal to Reno, to be changed.

    A shared object or a file in Python, it stands wherever a law does.

    Args:
        folder: The folder; it must not exist.
        language: Of the controller.
    """
    from lfnlab.control_laws.foreign import SKELETONS

    files, build, made = _CONTROLLERS[language]
    try:
        folder.mkdir(parents=True)
        for name, target in files.items():
            (folder / target).parent.mkdir(exist_ok=True)
            (folder / target).write_bytes((SKELETONS / name).read_bytes())
    except FileExistsError:
        raise StoreError(f"{folder} exists; choose another name") from None
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror}") from None
    law = folder / made if folder.is_absolute() else f"./{folder / made}"
    if build:
        say(f"build: {build.format(folder=shlex.quote(str(folder)))}")
    law = shlex.quote(f"{law},reno:linux")
    say(f"run: lfn compare --law {law} --rate 100Mbit/s --rtt 40ms")
    return 0


@new.command
def sweep(file: Path = Path("sweep.toml"), /) -> int:
    """Write a sweep over laws and buffers, to be changed.

    Args:
        file: The file; it must not exist.
    """
    return write(file, _start("sweep.toml", str(file)), f"lfn sweep {file} --out sweep")


def _start(name: str, file: str) -> str:
    text = resources.files("lfnlab.cli.start").joinpath(name).read_text(encoding="utf-8")
    return text.replace("{file}", file)


def write(file: Path, text: str, command: str) -> int:
    """Write a new file, and say the command that uses it."""
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise StoreError(f"{file} exists; choose another name") from None
    except OSError as error:
        raise StoreError(f"cannot write {file}: {error.strerror}") from None
    say(f"{file}: {command}")
    return 0


def install_completion(app: App, shell: Literal["bash", "zsh", "fish"] | None) -> int:
    """Write the script of completion of a shell, and load it where the shell starts."""
    from cyclopts.completion.detect import ShellDetectionError

    try:
        where = Path(app.install_completion(shell=shell))
        where.write_text(_with_laws(where.read_text("utf-8")), "utf-8")
    except ShellDetectionError:
        raise UsageError("the shell is not known; --shell bash, zsh or fish names it") from None
    except OSError as error:
        raise StoreError(f"cannot write {error.filename}: {error.strerror}") from None
    say(f"completion: {where}; it works in a new shell")
    return 0


def _with_laws(script: str) -> str:
    """The script for bash with the names of laws after ``--law`` and each comma."""
    from lfnlab.control_laws.registry import laws

    names = " ".join(law.name for law in laws())
    empty = "              --law)\n                COMPREPLY=()\n"
    full = f"""\
              --law)
                local before=""
                [[ "$cur" == *,* ]] && before="${{cur%,*}},"
                COMPREPLY=( $(compgen -P "$before" -W "{names}" -- "${{cur##*,}}") )
"""
    return script.replace(empty, full)
