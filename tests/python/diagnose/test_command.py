"""Does ``lfn diagnose`` know each kind of file, and tell no address where it should not?"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser import CONTRAST, Page, chromium
from lfnlab.diagnose import sources
from lfnlab.errors import StoreError, UsageError

if TYPE_CHECKING:
    from command import Lfn

DATA = Path(__file__).parents[1] / "data"
ISSUE = DATA / "iperf3" / "window-60k.json"
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|:5201")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A real one, at the sender."""
    file = tmp_path / "sender.pcap"
    file.write_bytes(gzip.decompress((DATA / "captures" / "sender.pcap.gz").read_bytes()))
    return file


def test_the_kind_is_that_of_the_content(tmp_path: Path, capture: Path) -> None:
    files = {
        "iperf3": DATA / "iperf3" / "tcp.json",
        "ss": DATA / "ss" / "stamped.log",
        "qlog": DATA / "qlog" / "client.qlog",
        "capture": capture,
    }
    for kind, file in files.items():
        other = tmp_path / "file"
        other.write_bytes(file.read_bytes())
        assert sources.kind_of(other) == kind
    other.write_text('{"event":"start","data":{}}\n')
    assert sources.kind_of(other) == "iperf3"
    for packed, kind in ((b"{}", "flent"), (files["capture"].read_bytes(), "capture")):
        other.write_bytes(gzip.compress(packed))
        assert sources.kind_of(other) == kind
    for kind in ("bare", "prefixed", "reverse"):
        assert sources.kind_of(DATA / "ss" / f"{kind}.log") == "ss"


def test_a_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("it is slow\n")
    with pytest.raises(UsageError, match=r"notes.txt: neither of iperf3 -J, ss -tin.*--kind"):
        sources.kind_of(file)
    with pytest.raises(StoreError, match="no such file"):
        sources.kind_of(tmp_path / "absent")
    with pytest.raises(StoreError, match="no regular file"):
        sources.kind_of(tmp_path)


def test_json_has_the_keys_of_the_page(lfn: Lfn) -> None:
    said = json.loads(lfn("diagnose", ISSUE, "--json"))
    assert said["cause"] == "receive-window"
    assert said["certain"] is True
    assert said["path"]["rate_bps"]["bound"] == "least"
    assert said["intervals"][0].keys() == {"start_s", "end_s", "cause", "share", "evidence"}
    assert {"law", "why", "doubts", "next", "shares", "flows", "evidence", "files"} <= said.keys()


def test_two_files_of_one_transfer_tell_more(lfn: Lfn, capture: Path) -> None:
    measured = DATA / "captures" / "measured.json"
    said = json.loads(lfn("diagnose", measured, capture, "--json"))
    assert said["evidence"]["bytes in flight"] == "capture"
    assert said["evidence"]["congestion window"] == "iperf3"
    text = lfn("diagnose", measured, capture)
    assert f"From {capture} (capture): goodput, RTT, bytes in flight" in text


def test_files_of_two_transfers_are_refused(lfn: Lfn, capture: Path) -> None:
    error = lfn.refuses("diagnose", ISSUE, capture)
    assert "its transfer is another than that of" in error
    assert "diagnose each by itself" in error


def test_no_address_gets_into_an_anonymous_page(lfn: Lfn, capture: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    measured = DATA / "captures" / "measured.json"
    text = lfn("diagnose", measured, capture, "--anonymous", "--page", page)
    said = lfn("diagnose", measured, capture, "--anonymous", "--json")
    for written in (text.replace(str(page), ""), said, page.read_text()):
        assert not ADDRESS.search(re.sub(r"uPlot.*?</script>", "", written, flags=re.DOTALL))
        assert str(capture) not in written
        assert "measured.json" not in written


def test_the_scenario_of_the_path_runs(lfn: Lfn, tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    lfn("diagnose", ISSUE, "--scenario", file)
    summary = json.loads(lfn("run", file, "--json", "--no-report", "--out", tmp_path / "run"))
    assert summary["runs"][0]["flows"][0]["goodput_bps"] == pytest.approx(11e6, rel=0.2)


@pytest.mark.skipif(chromium() is None, reason="needs chromium")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_and_is_legible(
    lfn: Lfn, capture: Path, tmp_path: Path, width: int, *, dark: bool
) -> None:
    file = tmp_path / "page.html"
    lfn("diagnose", DATA / "captures" / "measured.json", capture, "--page", file)
    with Page(width, 900, dark=dark) as page:
        page.open(file)
        assert page.evaluate("document.querySelectorAll('.uplot').length") >= 4
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRAST) == []
        assert not page.complaints
        assert page.requests == [file.as_uri()]
