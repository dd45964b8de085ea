"""``--out FILE``: a file of lfn's is made again, any other stays."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lfnlab.cli import app as cli
from lfnlab.errors import StoreError
from lfnlab.results import output

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import Results

HALF = """\
from lfnlab import Law

class Half(Law):
    def on_ack(self, n, ack):
        self.cwnd += n / self.cwnd

    def on_loss(self, loss):
        self.ssthresh = max(self.cwnd / 2, 2)
"""


@pytest.fixture
def commands(results: Results, tmp_path: Path) -> dict[str, list[str]]:
    """Commands that write a file, by the file."""
    (tmp_path / "half.py").write_text(HALF)
    plot = ["plot", str(results.root), "--out"]
    return {
        "a.png": plot,
        "a.pdf": plot,
        "a.svg": plot,
        "b.png": ["theory", "padhye", "--out"],
        "run.qlog": ["qlog", str(results.root), "--run", results.runs[0].path.name, "--out"],
        "vectors.md": ["port", f"{tmp_path / 'half.py'}:Half", "--out"],
    }


@pytest.mark.parametrize("name", ["a.png", "a.pdf", "a.svg", "b.png", "run.qlog", "vectors.md"])
def test_what_lfn_wrote_is_made_again_and_nothing_else(
    name: str, commands: dict[str, list[str]], tmp_path: Path, lfn: Lfn
) -> None:
    file = tmp_path / name
    command = [*commands[name], str(file)]
    assert cli.call(command) == cli.OK
    made = file.read_bytes()
    # Again, and over an older one of lfn's, also a larger one.
    file.write_bytes(made + b" " * (3 << 20))
    assert cli.call(command) == cli.OK
    assert file.read_bytes() == made
    # What others made, empty or not, with a name of lfn's in it or not.
    lfn.said()
    for other in (b"", b"precious", b"made with lfnlab", made.replace(output.MARK.encode(), b"")):
        file.write_bytes(other)
        said = lfn.refuses(*command, code=cli.STORE)
        assert f"cannot write {file}: it exists, and lfn did not write it" in said
        assert file.read_bytes() == other
    file.unlink()
    file.mkdir()
    assert cli.call(command) == cli.STORE
    assert file.is_dir()
    assert sorted(os.listdir(tmp_path)) == sorted({name, "half.py"})


def test_links_devices_and_cuts(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(output.MARK.encode())
    link.symlink_to(real)
    output.write(link, b"through " + output.MARK.encode())
    assert link.is_symlink()
    assert real.read_bytes().startswith(b"through ")
    # A link that leads nowhere makes its file.
    (tmp_path / "new").symlink_to(tmp_path / "made")
    output.write(tmp_path / "new", b"x")
    assert (tmp_path / "made").read_bytes() == b"x"
    # A link to what is another's protects that.
    real.write_bytes(b"precious")
    with pytest.raises(StoreError, match="lfn did not write it"):
        output.write(link, b"y")
    # What is no regular file cannot be lost.
    output.write(Path(os.devnull), b"z")
    os.mkfifo(tmp_path / "fifo")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    output.write(tmp_path / "fifo", b"to a reader")
    reader.join(10)
    assert heard == [b"to a reader"]
    # One that fails on the way leaves what was there, and nothing else.
    before = sorted(os.listdir(tmp_path))
    real.write_bytes(output.MARK.encode())
    with pytest.raises(TypeError), output.replacing(real) as made:
        made.write("no bytes")  # type: ignore[arg-type]
    assert real.read_bytes() == output.MARK.encode()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / ("a" * 251 + ".png")
    output.write(file, output.MARK.encode())
    output.write(file, output.MARK.encode())
    assert os.listdir(tmp_path) == [file.name]
