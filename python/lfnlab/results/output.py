"""Files that a user names: ``--out FILE``, ``--report FILE``.

Figures are often made again, so lfn replaces a file that it wrote, and no other. Its files contain
:data:`MARK`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lfnlab.errors import StoreError

MARK = "Written by lfn, which may replace this file."
"""Text in every file that lfn writes where a user says."""
_ENDS_BYTES = 1 << 20
"""The mark is within this many bytes of the beginning or the end."""


def refuse_others(file: Path) -> None:
    """Refuse to replace a file that lfn did not write.

    A device or a FIFO is no file that could be lost.

    Raises:
        StoreError: when there is one, or it cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(file).st_mode) or _is_marked(file):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failed(file, error) from None
    raise StoreError(
        f"cannot write {file}: it exists, and lfn did not write it; remove it, or choose another "
        "name"
    )


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A file that appears whole when the block ends, in place of one of lfn's.

    Raises:
        StoreError: when a file of another program exists, or it cannot be written.
    """
    refuse_others(file)
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as device:
                yield device
            return
        # Through a link, as programs do.
        target = Path(os.path.realpath(file))
        unfinished = target.with_name(f".{unique()}.lfn")
        try:
            with unfinished.open("xb") as made:
                yield made
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise _failed(file, error) from None


def unique() -> str:
    """The end of a name that no other process, thread or machine gives a file."""
    return f"{os.getpid()}.{os.urandom(4).hex()}"


def write(file: Path, content: bytes) -> None:
    """Write a file in one step, see :func:`replacing`. The content has the mark.

    Raises:
        StoreError: when a file of another program exists, or it cannot be written.
    """
    with replacing(file) as made:
        made.write(content)


def _failed(file: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot write {file}: {error.strerror or error}")


def _is_marked(file: Path) -> bool:
    with file.open("rb") as opened:
        ends = opened.read(_ENDS_BYTES)
        opened.seek(max(0, os.fstat(opened.fileno()).st_size - _ENDS_BYTES))
        return MARK.encode() in ends + opened.read(_ENDS_BYTES)
