"""A store at an address of object storage, with a server of S3 in a process of its own."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import LFN
from stores import contents

import lfnlab
from lfnlab import Results, StoreError, dumbbell, sweep
from lfnlab.cli import app as cli
from lfnlab.errors import Unavailable, UsageError
from lfnlab.results import remote, shards
from lfnlab.results.store import Store

if TYPE_CHECKING:
    from command import Lfn

pytest.importorskip("moto.server", reason="needs moto, of the development tools")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs, of the development tools")

SHORT = dumbbell(rate="10Mbit/s", rtt="10ms", buffer="1bdp", duration="1s", loss=1e-9).flow("cubic")
LAWS = {"flow[0].law": ["reno", "cubic"]}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a local S3."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
    try:
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Any]]:
    """A new bucket, and a view of it that is not lfnlab's."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server,
        "AWS_EC2_METADATA_DISABLED": "true",
        "FSSPEC_S3_ENDPOINT_URL": server,
    }.items():
        monkeypatch.setenv(name, value)
    name = f"lfn-{abs(hash(request.node.name)):x}"
    files = s3fs.S3FileSystem(
        endpoint_url=server, use_listings_cache=False, skip_instance_cache=True
    )
    files.mkdir(name)
    yield f"s3://{name}/sweeps/one", files
    for one in [*remote._remotes]:
        del remote._remotes[one]


def names(files: Any, address: str) -> set[str]:
    home = address.removeprefix("s3://")
    return {name.removeprefix(f"{home}/") for name in files.find(home)}


def test_a_sweep_at_an_address_is_that_of_a_folder(
    bucket: tuple[str, Any], tmp_path: Path, lfn: Lfn
) -> None:
    address, files = bucket
    here = sweep(SHORT, grid=LAWS, seeds=3, out=tmp_path / "here")
    there = sweep(SHORT, grid=LAWS, seeds=3, out=address)
    assert [run.path.name for run in there.runs] == [run.path.name for run in here.runs]
    assert {name.split("/")[0] for name in names(files, address)} == {
        *("store.json", "experiment.json", "runs")
    }
    remote._remotes.clear()  # as another process
    found = Results.load(address)
    assert found.table().equals(here.table(), null_equal=True)
    assert found.runs[0].table("flows").equals(here.runs[0].table("flows"))
    assert lfnlab.open(address).summary().collect().height == 6
    assert contents(found.root) == contents(tmp_path / "here")
    before = names(files, address)
    sweep(SHORT, grid=LAWS, seeds=4, out=address)
    assert len(Store(address).keys()) == 8
    assert len(names(files, address)) == len(before), "merged, and the small ones removed"
    assert lfn("table", address, "--csv").count("\n") == 3
    assert "8 runs, 0 damaged" in lfn("store", "verify", address)
    assert cli.call(["store", "merge", str(tmp_path / "all"), address]) == cli.OK
    assert len(Store(tmp_path / "all").keys()) == 8
    assert f"lfn report {address} --out DIR" in lfn.err("report", address, code=cli.USAGE)
    assert cli.call(["report", address, "--out", str(tmp_path / "page")]) == cli.OK


def test_killed_at_random_it_ends_with_the_same_bytes(
    bucket: tuple[str, Any], tmp_path: Path
) -> None:
    address, files = bucket
    file = tmp_path / "s.toml"
    table = "\n[sweep]\nseeds = 500\n[sweep.grid]\n'flow[0].law' = ['reno', 'cubic']\n"
    file.write_text(SHORT.to_toml().replace('"1s"', '"10s"', 1) + table)
    command = [*LFN, "sweep", str(file), "--no-report", "--out"]
    subprocess.run([*command, tmp_path / "here"], check=True, capture_output=True, timeout=120)
    stored = 0
    for number in range(3):
        process = subprocess.Popen([*command, address], stdout=subprocess.DEVNULL)
        draw = random.Random(number)
        for _ in range(2400):
            if process.poll() is not None:
                break
            runs = sum(
                int(name.split("/")[1][:7]) for name in names(files, address) if "runs/" in name
            )
            if runs > stored:
                time.sleep(draw.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.02)
        process.wait(60)
        stored = runs
    subprocess.run([*command, address], check=True, capture_output=True, timeout=120)
    assert contents(remote.local(address)) == contents(tmp_path / "here")
    assert len(Results.load(address).runs) == 1000


def test_refusals(bucket: tuple[str, Any], tmp_path: Path) -> None:
    from dataclasses import replace

    address, files = bucket
    with pytest.raises(UsageError, match="keeps summaries alone"):
        sweep(replace(SHORT, sample="10ms"), grid=LAWS, out=address)
    assert not names(files, address)
    files.pipe_file(f"{address}/precious", b"weeks of work")
    with pytest.raises(StoreError, match=r"precious and no store\.json"):
        sweep(SHORT, grid=LAWS, out=address)
    assert names(files, address) == {"precious"}
    with pytest.raises(StoreError, match="bucket does not exist"):
        sweep(SHORT, grid=LAWS, out="s3://no-such-bucket-of-lfn/x")
    with pytest.raises(Unavailable, match="nothing://"):
        sweep(SHORT, grid=LAWS, out="nothing://host/x")


def test_a_shard_that_is_damaged_there_is_run_again(bucket: tuple[str, Any]) -> None:
    address, files = bucket
    sweep(SHORT, grid=LAWS, seeds=2, out=address)
    (shard,) = (name for name in names(files, address) if shards.NAME.fullmatch(Path(name).name))
    files.pipe_file(f"{address}/{shard}", files.cat_file(f"{address}/{shard}")[:-1])
    remote._remotes.clear()
    with pytest.raises(StoreError, match=Path(shard).name):
        Results.load(address)
    with pytest.warns(lfnlab.errors.DamageWarning, match=Path(shard).name):
        sweep(SHORT, grid=LAWS, seeds=2, out=address)
    assert len(Results.load(address).runs) == 4


def test_other_protocols(tmp_path: Path) -> None:
    for address in ("memory://lfn/one", f"file://{tmp_path}/there/one", Path("memory://lfn/two")):
        sweep(SHORT, grid=LAWS, seeds=2, out=address)
        remote._remotes.clear()
        assert len(Results.load(address).runs) == 4
    assert (tmp_path / "there" / "one" / "store.json").is_file()


def test_a_folder_with_the_name_of_a_protocol_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    assert remote.of("s3:/x") is None
    assert remote.of("out") is remote.of(tmp_path) is remote.of("C:\\x") is None


def test_a_folder_imports_nothing_of_it(tmp_path: Path) -> None:
    code = (
        "import sys; from lfnlab import dumbbell, sweep\n"
        "base = dumbbell(rate='10Mbit/s', rtt='10ms', buffer='1bdp', duration='1s').flow('reno')\n"
        f"sweep(base, grid={{'link.rate': ['5Mbit/s']}}, out={str(tmp_path / 'out')!r})\n"
        "assert not {'fsspec', 's3fs', 'distributed'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=os.environ)
