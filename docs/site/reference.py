"""The generated parts of pages.

$ python docs/site/reference.py          writes the committed ones
$ python docs/site/reference.py --check  exits with 1 and names the pages that are out of date

A page has such a part between ``<!-- made: NAME -->`` and ``<!-- end of NAME -->``. Parts of
``ON_SITE`` are not committed: Sphinx fills them in, and completes the cards of laws.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lfnlab import env, laws
from lfnlab.cli.app import app as lfn
from lfnlab.evaluate import criteria
from lfnlab.judge import probing, read
from lfnlab.papers import paper, verdicts

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import pages
from benches import quoted
from studies import attacks, evaluations, starts, starts_page, which_law_page
from validation import reference as compared
from validation import stacks_page, whole_stacks

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = pages.ROOT
PART = re.compile(r"(?s)(<!-- made: (\w+) -->\n).*?(<!-- end of \2 -->)")


def commands() -> str:
    """``lfn`` and all its commands with their options."""
    text: str = lfn.generate_docs(output_format="markdown", recursive=True)
    # The page has a title, and Sphinx makes tables of contents.
    text = text.split("\n", 1)[1]
    text = re.sub(r"(?s)## Table of Contents\n.*?(?=\n## )", "", text)
    return fenced(text).strip()


def fenced(text: str) -> str:
    """Indented blocks as fenced ones."""
    block = re.compile(r"(?m)(?<=\n\n)(?: {4}.*\n)(?:(?: {4}.*)?\n)*? {0,4}(?=\n|\Z)")
    parts: list[str] = []
    rest = 0
    for found in block.finditer(text + "\n\n"):
        lines = [line.removeprefix("    ") for line in found[0].rstrip().split("\n")]
        parts += [text[rest : found.start()], "```text\n", "\n".join(lines), "\n```\n"]
        rest = found.end()
    return "".join([*parts, text[rest:]])


ON_SITE = {
    "laws": pages.registry,
    "keys": pages.keys,
    "tables": pages.tables,
    "summary": pages.summary,
    "commands": commands,
    "python": pages.python,
    "proposals": which_law_page.proposals,
    "starts": lambda: starts_page.every_case(starts.STUDY.committed()[0]),
    **{peer: partial(compared.tables, peer) for peer in ("linux", "ns2", "ns3")},
    **{home.name: partial(verdicts.tables, name) for name, home in paper.papers().items()},
}
COMMITTED = {
    "top": pages.top,
    "link": lambda: pages.definition("OneWay"),
    "flow": lambda: pages.definition("Flow"),
    "queues": lambda: pages.choices("Queue", "size"),
    "udp": lambda: pages.choices("Udp"),
    "traffic": lambda: pages.choices("Traffic"),
    "evaluate": lambda: "\n".join(criteria.documentation()),
    "observed": lambda: "\n".join(env.documentation()),
    "score": lambda: "\n".join(probing.documentation(read())),
    "attacks": attacks.table,
    "evaluations": evaluations.table,
    "evaluations_stacks": evaluations.stacks,
    "simulated": quoted.simulated,
    "beside_ns2": quoted.beside_ns2,
    "times": quoted.commands,
    "speed": quoted.speed,
    "transfers": quoted.transfers,
    "lateness": quoted.lateness,
    "sweep": quoted.sweep,
    "agreement": pages.agreement,
    "claims": pages.claims,
    "stack_losses": stacks_page.losses,
    "stack_growth": stacks_page.growth,
    "stack_rates": stacks_page.rates,
    "stack_whole": whole_stacks.table,
}


def made(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with these generated parts as they should be."""

    def part(found: re.Match[str]) -> str:
        return f"{found[1]}{parts[found[2]]()}\n\n{found[3]}" if found[2] in parts else found[0]

    return PART.sub(part, text)


def fill(_: Sphinx, page: str, source: list[str]) -> None:
    """Complete a page of the site."""
    law = page.removeprefix("laws/cards/")
    source[0] = made(source[0], ON_SITE)
    if law in {info.name for info in laws()}:
        source[0] = f"{pages.card(law, source[0])}\n{evaluations.evidence(law)}"


def has_parts(file: str) -> bool:
    """Whether Sphinx fills a page in."""
    names = (name for _, name, _ in PART.findall(Path(file).read_text(encoding="utf-8")))
    return any(name in ON_SITE for name in names)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    # The code has changed, not the page.
    app.connect(
        "env-get-outdated",
        lambda _app, env, *_: [page for page in env.found_docs if has_parts(env.doc2path(page))],
    )
    return {"parallel_read_safe": True}


def main() -> None:
    """Write or check all committed parts."""
    check = sys.argv[1:] == ["--check"]
    old = []
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]:
        text = page.read_text(encoding="utf-8")
        if (new := made(text, COMMITTED)) != text:
            old.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(f"{'out of date' if check else 'written'}: {page}" for page in old))
    if check and old:
        sys.exit("run: python docs/site/reference.py")


if __name__ == "__main__":
    main()
