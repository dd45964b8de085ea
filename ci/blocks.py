"""Executes the code blocks of a document in Markdown, in order, in the working directory.

$ python ci/blocks.py docs/tutorial/law.md

A block with ``file=NAME`` becomes that file. One of ``sh`` is run. One of ``text`` is what the one
before it printed. Any other is a mistake, since nothing would test it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"(?ms)^(`{3,})(\w*)(?: file=(\S+))?\n(.*?)^\1$")


def main(document: str) -> None:
    """Execute it; the first block that fails ends the program and is named by its line."""
    text = Path(document).read_text(encoding="utf-8")
    printed = None
    for block in BLOCK.finditer(text):
        _, language, file, content = block.groups()
        where = f"{document}:{text.count(chr(10), 0, block.start()) + 1}"
        if file is not None:
            Path(file).write_text(content, encoding="utf-8")
        elif language == "sh":
            shell = ["bash", "-euo", "pipefail", "-c", content]
            run = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=False)
            if run.returncode != 0:
                sys.exit(f"{where}: exit code {run.returncode}\n{run.stdout}")
            printed = run.stdout
        elif language != "text":
            sys.exit(f"{where}: nothing executes a block of {language or 'no language'}")
        elif printed != content:
            sys.exit(f"{where}: the commands before it print\n{printed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
