"""A stranger's folder, names and tables: nothing of them is obeyed, followed or believed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import process as lfn

import lfnlab
from browser import Page, chromium
from lfnlab import Case, Results, StoreError, dumbbell, printable
from lfnlab.analysis.table import Table, csv, markdown_of, plain
from lfnlab.experiment.executor import dask_client
from lfnlab.figures.report import write_report
from lfnlab.results import integrity
from lfnlab.results.output import replacing
from lfnlab.results.store import read_table, replace_file

BASE = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s").flow("reno")
EVIL = "a\x1b[2J\x1b]0;own\x07\nb\x9b31m\u202e<img src=x onerror=alert(1)>|[x](http://x)"


def reseal(file: Path, change: Any) -> None:
    """Change a sealed file as a stranger can who knows how seals are made."""
    document = json.loads(file.read_text())
    document.pop("sha256", None)
    change(document)
    file.write_bytes(integrity.sealed(document))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("doors") / "out"
    lfnlab.execute([Case(BASE, {"=1+1": EVIL})], out=out, title=EVIL)
    return out


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", made, tmp_path / "out"], check=True)
    return tmp_path / "out"


@pytest.mark.parametrize(
    "words",
    ["table", "table --markdown", "table --latex", "report", "metrics", "plot --list"],
)
def test_no_control_character_of_a_name_reaches_the_terminal(
    words: str, store: Path, tmp_path: Path
) -> None:
    command, *options = words.split()
    done = lfn(command, store, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for sign in "\x1b\x07\x9b":
        assert sign not in done.stdout + done.stderr


def test_commands_that_name_what_they_run_show_no_control_characters(tmp_path: Path) -> None:
    sweep = '[sweep.grid]\n"flow[0].name" = ["a\\u001b[2Jb", "c\\nd"]\n'
    (tmp_path / "sweep.toml").write_text(BASE.to_toml() + sweep)
    done = lfn("sweep", "sweep.toml", "--out", "out", cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr
    done = lfn("store", "ls", "out", cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr
    done = lfn("run", "no\x1b[2J\nsuch.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_cells_are_one_line_and_no_markup() -> None:
    table = Table((EVIL, "n"), ((EVIL, "1"), ("plain", "2")), 1)
    assert len(plain(table)) == 3
    assert not any(sign in line for line in plain(table) for sign in "\x1b\x07\x9b\u202e\n")
    lines = [*markdown_of(table)]
    assert len(lines) == 4
    assert all("<" not in line and "](" not in line for line in lines)
    assert [line.replace(r"\|", "").count("|") for line in lines] == [3, 3, 3, 3]
    assert printable.line("Δ ± 3 µs – reno") == "Δ ± 3 µs – reno"


@pytest.mark.parametrize("cell", ["=1+1", "+1+cmd", "-2+3", "@sum(a)", "\t=1", "\r=1"])
def test_no_cell_of_a_table_of_values_is_a_formula(cell: str) -> None:
    frame = pl.DataFrame({cell: [cell, "reno", "-1.5e3", None], "n": [-1.5, 2.0, 3.0, 4.0]})
    said = pl.read_csv(csv(frame).encode(), infer_schema_length=0)
    assert said.columns == [f"'{cell}", "n"]
    assert said[f"'{cell}"].to_list() == [f"'{cell}", "reno", "-1.5e3", None]
    assert said["n"].to_list() == ["-1.5", "2.0", "3.0", "4.0"]


@pytest.mark.parametrize(
    "key", ["../outside", "../../x", "/etc", "", ".", "runs", 3, None, ["a"], "A" * 24, "a" * 25]
)
def test_a_key_of_a_run_is_no_path(key: object, store: Path) -> None:
    reseal(store / "experiment.json", lambda said: said["runs"][0].update(key=key))
    with pytest.raises(StoreError, match="does not list the runs of an experiment"):
        Results.load(store)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", 3),
        ("title", None),
        ("runs", 3),
        ("runs", {"a": 1}),
        ("runs", [3]),
        ("runs", [[]]),
        ("planned", "x"),
        ("planned", 1.5),
    ],
)
def test_an_experiment_of_wrong_types_is_damaged(key: str, value: object, store: Path) -> None:
    reseal(store / "experiment.json", lambda said: said.update({key: value}))
    done = lfn("table", store, cwd=store.parent)
    assert done.returncode == 3, done
    assert done.stderr.startswith("lfn: cannot read results:")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("files", 3),
        ("files", {"a": 3}),
        ("bytes", []),
        ("bytes", {"a": "b"}),
        ("code", 3),
        ("resolved", "x"),
        ("command", ["x"]),
        ("wall_s", "x"),
        ("python", {}),
        ("system", 1),
    ],
)
@pytest.mark.parametrize("command", [["table"], ["report"], ["store", "ls"], ["store", "verify"]])
def test_a_provenance_of_wrong_types_is_damaged(
    command: list[str], key: str, value: object, store: Path
) -> None:
    (run,) = (store / "runs").iterdir()
    reseal(run / "provenance.json", lambda said: said.update({key: value}))
    done = lfn(*command, store, cwd=store.parent)
    assert done.returncode in (1, 3), done
    assert "Traceback" not in done.stderr


def forged(run: Path, rows: int) -> None:
    """A table of so many equal rows, a few bytes each million, which its run's seal names."""
    frame = pl.DataFrame({"t_s": [0.0]}).lazy()
    frame.select(pl.lit(1.0).repeat_by(rows).explode().alias("t_s")).collect().write_parquet(
        run / "flows.parquet", compression="zstd", row_group_size=rows
    )
    data = (run / "flows.parquet").read_bytes()

    def change(said: dict[str, Any]) -> None:
        said["files"]["flows.parquet"] = hashlib.sha256(data).hexdigest()
        said["bytes"]["flows.parquet"] = len(data)

    reseal(run / "provenance.json", change)


def test_a_table_larger_than_its_run_can_fill_is_refused(store: Path) -> None:
    (run,) = (store / "runs").iterdir()
    forged(run, 30_000_000)
    assert (run / "flows.parquet").stat().st_size < 1_000_000
    with pytest.raises(StoreError, match=r"would take 240,[0-9,]+ bytes of memory; at most"):
        read_table(run, "flows")
    done = lfn("report", store, cwd=store.parent)
    assert done.returncode == 3, done
    assert "bytes of memory; at most" in done.stderr


def test_figures_are_not_written_through_a_link(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (store / "figures").symlink_to(other)
    done = lfn("report", store, "--figures", cwd=tmp_path)
    assert done.returncode == 3, done
    assert "is a link or no folder" in done.stderr
    assert not [*other.iterdir()]


def test_figures_replace_no_file_of_another_program(store: Path, tmp_path: Path) -> None:
    results = Results.load(store)
    write_report(results, files=True)
    ours = sorted((store / "figures").iterdir())
    assert ours
    write_report(results, files=True)
    ours[0].write_bytes(b"mine")
    with pytest.raises(StoreError, match="it exists, and lfn did not write it"):
        write_report(results, files=True)
    assert ours[0].read_bytes() == b"mine"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "report.html").write_text("mine")
    done = lfn("report", store, "--out", "elsewhere", cwd=tmp_path)
    assert done.returncode == 3, done
    assert (tmp_path / "elsewhere" / "report.html").read_text() == "mine"


def test_threads_write_to_one_folder(tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(50):
                replace_file(tmp_path / "same", f"{number}" * 1000)
                with replacing(tmp_path / f"own-{number}") as file:
                    file.write(
                        printable.__name__.encode()
                        + b"Written by lfn, which may replace this file."
                    )
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len({*(tmp_path / "same").read_text()}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"own-{n}" for n in range(8)),
        "same",
    ]


def test_experiments_of_threads_share_a_store(tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            lfnlab.execute(BASE.with_seed(number), out=tmp_path / "out")
            write_report(Results.load(tmp_path / "out"))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_dask_cluster_of_this_machine_listens_on_loopback_alone() -> None:
    pytest.importorskip("distributed")
    with dask_client("dask", 1) as client:
        scheduler = client.cluster.scheduler  # type: ignore[union-attr]
        workers = {worker["nanny"] for worker in client.scheduler_info()["workers"].values()}
        addresses = [scheduler.address, *client.scheduler_info()["workers"], *workers]
        assert all("://127.0.0.1:" in address for address in addresses if address)
        assert _listening(os.getpid()) <= {"127.0.0.1"}


def _listening(pid: int) -> set[str]:
    """The addresses on which this process and its children listen for TCP."""
    psutil = pytest.importorskip("psutil")
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = [it for process in processes for it in process.net_connections("tcp")]
    return {it.laddr.ip for it in found if it.status == psutil.CONN_LISTEN}


def test_store_ls_marks_runs_of_another_version(store: Path) -> None:
    done = lfn("store", "ls", store, cwd=store.parent)
    assert "*" not in done.stdout + done.stderr
    (run,) = (store / "runs").iterdir()
    said = json.loads((run / "provenance.json").read_text())
    key = integrity.address("0.1.0+000000000000", said["resolved"])
    reseal(run / "provenance.json", lambda document: document.update(code="0.1.0+000000000000"))
    run.rename(run.with_name(key))
    done = lfn("store", "ls", store, cwd=store.parent)
    assert f"{key}  0.1.0+000000000000*" in done.stdout
    assert "1 of another version than" in done.stderr
    said = json.loads(lfn("store", "ls", store, "--json", cwd=store.parent).stdout)
    assert [entry["current"] for entry in said] == [False]


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("on_ack", None, "on_ack is None, which cannot be called; write on_ack"),
        ("on_loss", 3, "on_loss is 3, which cannot be called"),
        ("__init__", None, "__init__ is None, which cannot be called"),
        ("on_tick", "x", "on_tick is 'x', which cannot be called"),
        ("name", 3, "name: 3; allowed: a letter"),
        ("name", None, "name: None; allowed: a letter"),
        ("name", b"x", "name: b'x'; allowed: a letter"),
        ("slow_start", 1, "slow_start: 1; allowed: a text"),
        ("probes", 5, "probes: 5; allowed: a list of names"),
        ("probes", "ab", "probes: 'ab'; allowed: a list of names"),
        ("probes", (1,), r"probes: \(1,\); allowed: a list of names"),
    ],
)
def test_attributes_of_a_law_of_wrong_types_are_refused(
    attribute: str, value: object, said: str
) -> None:
    class Mine(lfnlab.Law):
        def on_ack(self, n: int, ack: lfnlab.Ack) -> None:
            self.cwnd += n / self.cwnd

        def on_loss(self, loss: lfnlab.Loss) -> None:
            self.ssthresh = self.cwnd / 2

    setattr(Mine, attribute, value)
    with pytest.raises(lfnlab.LawError, match=said):
        BASE.flow(Mine).to_toml()


def test_pages_run_their_own_scripts_alone(store: Path) -> None:
    page = write_report(Results.load(store))
    text = page.read_text(encoding="utf-8")
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    assert all(source.startswith("'sha256-") for source in parts["script-src"].split())
    if chromium() is None:
        pytest.skip("needs chromium")
    injected = "<script>document.title = 'owned'</script></body>"
    page.write_text(text.replace("</body>", injected), encoding="utf-8")
    with Page(1000, 800, dark=False) as browser:
        browser.open(page)
        assert browser.evaluate("document.title") != "owned"
        assert any("Content Security Policy" in said for said in browser.complaints)
