"""The index of the site's search: every section with its title, its address and its text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NAME = "search-index.js"
LEFT_OUT = (nodes.raw, nodes.comment, nodes.image, addnodes.toctree, addnodes.index)


def text_of(node: nodes.Node) -> Iterator[str]:
    """The words of a section, without those of the sections and signatures in it."""
    for child in node.children:
        if isinstance(child, (nodes.section, nodes.title, addnodes.desc, *LEFT_OUT)):
            continue
        # Numbers of test vectors, which nobody looks for.
        if isinstance(child, nodes.literal_block) and child.get("language") == "law":
            continue
        if isinstance(child, nodes.Text):
            yield child.astext()
        elif isinstance(child, (nodes.TextElement, nodes.literal_block)):
            yield child.astext() + " "
        else:
            yield from text_of(child)


def sections(tree: nodes.Node) -> Iterator[tuple[str, str, str]]:
    """Heading, anchor and text of each section, and of each name of Python."""
    for section in tree.findall(nodes.section):
        title = section.next_node(nodes.title)
        heading = title.astext() if title is not None else ""
        yield heading, section["ids"][0], " ".join("".join(text_of(section)).split())
    for described in tree.findall(addnodes.desc):
        signature = described.next_node(addnodes.desc_signature)
        if signature is not None and signature["ids"]:
            body = described.next_node(addnodes.desc_content)
            text = "" if body is None else " ".join("".join(text_of(body)).split())
            yield signature["fullname"], signature["ids"][0], text


def index(app: Sphinx) -> dict[str, Any]:
    """Pages in order: name, title, and sections; the first one is the page's beginning."""
    pages = []
    for name in sorted(app.env.all_docs):
        found = list(sections(app.env.get_doctree(name)))
        if found:
            pages.append({"name": name, "title": found[0][0], "sections": found})
    return {"pages": pages}


def replace(app: Sphinx) -> None:
    """Make no index of Sphinx. It fetches pages for excerpts, which a page of a file may not do."""
    app.builder.search = False  # type: ignore[attr-defined]


def write(app: Sphinx, error: Exception | None) -> None:
    """Write a script, since a page that is opened as a file may load a script but no data."""
    if error is None:
        data = json.dumps(index(app), ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / NAME).write_text(f"const searchIndex = {data};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", replace)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
