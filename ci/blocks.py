"""Executes the code blocks of the documents: what they show must work.

$ python ci/blocks.py                                all documents, each in a new directory
$ python ci/blocks.py README.md docs/theory.md       these
$ python ci/blocks.py --here docs/tutorial/law.md    one, in the working directory

A new directory has links to all that the source tree has, so blocks may name its files; what they
write stays outside the tree. The blocks of a document run in order, documents beside each other.
The first line of a block says what becomes of it:

    ```sh                   run; its exit code must be 0
    ```python               run as a program
    ```toml                 checked as a scenario; a part of one is completed first
    ```text                 the output of the block before it, except blank lines at its end
    ```LANGUAGE file=NAME   becomes that file; one of TOML is checked too
    ```sh needs A, B        run where this machine has these programs, or `lfn doctor` misses none
                            of what it calls so; else checked
    ```sh with OLD=NEW, ... checked, and run with each OLD replaced to take less time; may
                            follow a need: `needs A, B; with OLD=NEW`
    ```sh ...; bpffs        run with a private bpffs mounted
    ```sh not run: WHY      checked: its commands must exist and have these options
    ```text not run: WHY    not compared

Any other is a mistake, since nothing would test it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lfnlab import LabError, Scenario
from lfnlab.cli import doctor
from lfnlab.cli.app import app, tokens
from lfnlab.experiment.sweep import Sweep
from lfnlab.experiment.tune import Search

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("*.md", "docs/**/*.md", "papers/*/README.md")
IN_A_COPY = "docs/tutorial/law.md"
"""It writes into the tree: `make new-law` executes it, in a copy."""
BLOCK = re.compile(r"(?ms)^(`{3,})([\w-]*|\{[^}\n]*\})(?: (.+?))?\n(.*?)^\1$")
INDENTED = re.compile(r"(?<=\n\n)(?: {4}|\t)\S")


class Mistake(Exception):
    """A block that does not do what its document says."""


class Block(NamedTuple):
    """A block of a document."""

    where: str
    language: str
    more: str
    content: str

    def said(self, word: str) -> str | None:
        """The text after this word on the first line."""
        for part in self.more.split("; "):
            if part.startswith(word):
                return part.removeprefix(word)
        return None

    def smaller(self) -> Block:
        """With every replacement that its first line names."""
        content = self.content
        for pair in filter(None, (self.said("with ") or "").split(", ")):
            old, _, new = pair.partition("=")
            if old not in content:
                raise Mistake(f"{self.where}: no {old!r} to replace")
            content = content.replace(old, new)
        return self._replace(content=content)


def blocks(document: str) -> Iterator[Block]:
    """The blocks of a document, in order, without directives of Sphinx."""
    text = (ROOT / document).read_text(encoding="utf-8")
    rest = BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    if found := INDENTED.search(rest):
        line = rest.count("\n", 0, found.start()) + 1
        raise Mistake(f"{document}:{line}: indented code; write it between fences")
    for found in BLOCK.finditer(text):
        _, language, more, content = found.groups()
        if not language.startswith("{"):
            where = f"{document}:{text.count(chr(10), 0, found.start()) + 1}"
            yield Block(where, language, more or "", content)


def execute(document: str, folder: Path) -> Counter[str]:
    """Its blocks in order, in a folder; how many were treated how.

    All outputs that differ are in one Mistake at the end.
    """
    done: Counter[str] = Counter()
    other: list[str] = []
    printed: str | None = None
    for block in blocks(document):
        if block.said("not run: "):
            look_at(block)
            done["not run"] += 1
        elif (name := block.said("file=")) or block.language == "toml":
            file = folder / (name or "block.toml")
            file.write_text(block.content, encoding="utf-8")
            if block.language == "toml":
                check(block, file)
                done["checked"] += 1
        elif (lacking := lacks(block.said("needs "))) is not None:
            print(f"{block.where}: NOT RUN, since this machine lacks {lacking}")
            look_at(block)
            done["not run"] += 1
        elif block.language in {"sh", "python"}:
            smaller = block.smaller()
            if smaller != block:
                look_at(block)
            printed = run(smaller, folder)
            done["run"] += 1
        elif block.language == "text" and printed is not None:
            if printed.rstrip("\n") != block.content.rstrip("\n"):
                other.append(f"{block.where}: the block before it prints\n{printed}")
            done["compared"] += 1
        else:
            raise Mistake(f"{block.where}: nothing executes this block of {block.language or '?'}")
    if other:
        raise Mistake("\n".join(other))
    return done


def run(block: Block, folder: Path) -> str:
    """Execute a block and return its output."""
    command = ["bash", "-euo", "pipefail", "-c", block.content]
    if block.language == "python":
        # The source of a class is looked for in its file.
        (folder / "example.py").write_text(block.content, encoding="utf-8")
        command = ["python", "example.py"]
    if block.said("bpffs") is not None:
        room = 'mount -t bpf bpf /sys/fs/bpf && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", room, "sh", *command]
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Mistake(f"{block.where}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(block: Block, file: Path) -> None:
    """Whether it is a scenario, with what a part of one needs besides."""
    text = block.content
    whole = "" if re.search("^schema", text, re.MULTILINE) else 'schema = 1\nduration = "120s"\n'
    if not re.search(r"^\[+(link|parking-lot|links)\]", text, re.MULTILINE):
        whole += '[link]\nrate = "1Gbit/s"\n'
    whole += text
    if "[[flow]]" not in text:
        whole += '[[flow]]\nlaw = "reno"\nrtt = "10ms"\n'
    completed = file.with_suffix(".completed.toml")
    completed.write_text(whole, encoding="utf-8")
    try:
        if "[sweep" in whole:
            Sweep.load(completed)
        elif "[tune" in whole:
            Search.load(completed)
        else:
            Scenario.load(completed).check()
    except LabError as error:
        raise Mistake(f"{block.where}: {error}") from None


def lacks(needs: str | None) -> str | None:
    """The first of these that the machine does not have."""
    for thing in (needs or "").split(", "):
        if thing and shutil.which(thing) is None and doctors().get(thing, "missing") == "missing":
            return thing
    return None


@cache
def doctors() -> dict[str, str]:
    """The state of each subject of `lfn doctor`."""
    return {finding.subject: finding.state for finding in doctor.findings()}


def look_at(block: Block) -> None:
    """Whether the commands of a script exist, and have these options."""
    if block.language != "sh":
        return
    try:
        subprocess.run(["bash", "-n", "-c", block.content], check=True)
        for words in commands(block.content):
            look_up(*words)
    except Exception as error:
        raise Mistake(f"{block.where}: {error}") from None


def commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a script, without redirections and assignments."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        redirects = False
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                redirects = word[0] in "<>"
                if words and not redirects:
                    yield words
                    words = []
            elif not redirects and (words or not re.match(r"\w+=", word)):
                words.append(word)
            else:
                redirects = False


def look_up(name: str, *words: str) -> None:
    """Raises what is wrong with a command of the laboratory; others are not known here."""
    if name == "lfn":
        app.parse_args(tokens(words), exit_on_error=False, print_error=False)
    elif name == "python" and words[:1] == ("-m",):
        module = ROOT / words[1].replace(".", "/")
        if not module.with_suffix(".py").is_file() and not (module / "__main__.py").is_file():
            raise LookupError(f"no module {words[1]}")
        options = [word for word in words[2:] if word.startswith("-")]
        said = printed_by(sys.executable, *words[:2], "--help") if options else ""
        for option in options:
            if option.partition("=")[0] not in said:
                raise LookupError(f"python -m {words[1]} has no option {option}")
    elif name == "make":
        printed_by("make", "--dry-run", *words)
    elif name == "cargo":
        for option, places in {"-p": "crates/{}", "--example": "crates/*/examples/{}.rs"}.items():
            if option in words:
                value = words[words.index(option) + 1].removeprefix("lfn-")
                if not list(ROOT.glob(places.format(value))):
                    raise LookupError(f"cargo: no {option} {value}")


@cache
def printed_by(*command: str) -> str:
    """The output of a command in the root of the tree."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LookupError(f"{shlex.join(command)}: {done.stderr}")
    return done.stdout


def in_a_new_directory(document: str) -> Counter[str] | Mistake:
    """Execute a document beside links to the tree."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for entry in ROOT.iterdir():
            if not entry.name.startswith((".", "lfn-")):
                (Path(folder) / entry.name).symlink_to(entry)
        began_s = time.monotonic()
        try:
            done = execute(document, Path(folder))
        except Mistake as mistake:
            return mistake
    if done:
        print(f"{document}: {summary(done)}; {time.monotonic() - began_s:.1f} s", flush=True)
    return done


def summary(done: Counter[str]) -> str:
    """Counts in words."""
    return ", ".join(f"{count} {how}" for how, count in done.items())


def main() -> None:
    """Parses the command line, executes, and fails if a block did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("document", nargs="*", help="default: all")
    parser.add_argument("--here", action="store_true", help="in the working directory")
    arguments = parser.parse_args()
    documents = arguments.document or sorted(
        name
        for pattern in DOCUMENTS
        for path in ROOT.glob(pattern)
        if (name := str(path.relative_to(ROOT))) != IN_A_COPY
    )
    if arguments.here:
        for document in documents:
            print(f"{document}: {summary(execute(document, Path()))}")
        return
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(in_a_new_directory, documents))
    total: Counter[str] = Counter()
    for done in found:
        if isinstance(done, Mistake):
            print(done, file=sys.stderr)
        else:
            total += done
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = f"{used.ru_utime + used.ru_stime:.0f} s of CPU"
    print(f"{len(documents)} documents, blocks: {summary(total)}; {spent}")
    if any(isinstance(done, Mistake) for done in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
