"""Is an attack the same whatever its threads and interruptions, and are its accusations true?"""

from __future__ import annotations

import fcntl
import json
import math
import re
import shutil
import tomllib
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from lfnlab import Results, _core
from lfnlab.attacker import SAYS, Weakness, attack, confirm, draws, harm, on_draws, scenarios, space
from lfnlab.attacker.files import scenario, write_all
from lfnlab.attacker.harm import Figures
from lfnlab.attacker.judge import SAFE, Judge, Law
from lfnlab.attacker.runs import Ask, Runs
from lfnlab.attacker.shrink import MOST_KEYS, shrink
from lfnlab.cli import app as cli
from lfnlab.errors import UsageError
from lfnlab.experiment.executor import Simulator
from lfnlab.figures.weakness import save

if TYPE_CHECKING:
    from command import Lfn

RUNS = 100
RENO, CUBIC, BBR3 = (Law(name, name) for name in ("reno", "cubic", "bbr3"))


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an attack on one thread."""
    out = tmp_path_factory.mktemp("attacked")
    write_all(attack("vegas", runs=RUNS, out=out, jobs=1), out)
    return out


@pytest.fixture(scope="module")
def weakness() -> Weakness:
    """A weakness of Reno that was shrunk from six keys."""
    found = shrink(
        space.valid(
            {
                "rate_mbps": 13.0,
                "rtt_ms": 31.0,
                "buffer_bdp": 17.0,
                "jitter_ms": 1.1,
                "ack_batch_ms": 1.3,
                "flows": 2.0,
            }
        ),
        "queue",
        Judge(RENO, (CUBIC, BBR3), Runs(None, {}, 2)),
    )
    assert found is not None
    return Weakness("queue-buffer", RENO, found.path, found.confirmed)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_threads_change_nothing(attacked: Path, tmp_path: Path) -> None:
    write_all(attack("vegas", runs=RUNS, out=tmp_path, jobs=2), tmp_path)
    assert bytes_of(tmp_path) == bytes_of(attacked)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) > 0.8 * RUNS


def test_an_attack_that_was_killed_goes_on(attacked: Path, tmp_path: Path) -> None:
    whole = (attacked / "runs.jsonl").read_bytes()
    # Within a line, as a kill leaves it.
    (tmp_path / "runs.jsonl").write_bytes(whole[: len(whole) * 2 // 3 + 7])
    write_all(attack("vegas", runs=RUNS, out=tmp_path), tmp_path)
    assert bytes_of(tmp_path) == bytes_of(attacked)


def test_a_law_is_not_accused_where_the_other_fares_as_badly() -> None:
    """The relation: CUBIC beside CUBIC; no ratio is above 1."""
    judge = Judge(CUBIC, (CUBIC,), Runs(None, {}, 2))
    random = Random(3)
    verdicts = [
        one for several in judge([space.drawn(random) for _ in range(40)]) for one in several
    ]
    assert any(verdict.other for verdict in verdicts), "CUBIC came near to a harm"
    # So an attack beside CUBIC alone has no weakness to confirm.
    assert max(verdict.margin for verdict in verdicts) <= 1 / harm.TIMES


def test_shrinking_leaves_what_is_needed(weakness: Weakness) -> None:
    assert set(weakness.path) <= {"rate_mbps", "rtt_ms", "buffer_bdp"}
    assert "buffer_bdp" in weakness.path
    assert len(weakness.path) <= MOST_KEYS
    assert weakness.other == "bbr3"
    assert weakness.confirmed.margin >= SAFE
    # One digit of each value, or two where one was too coarse.
    assert all(re.fullmatch(r"\d{1,2}\.0", str(value)) for value in weakness.path.values())


def test_lfn_run_shows_the_harm(weakness: Weakness, tmp_path: Path, lfn: Lfn) -> None:
    file = tmp_path / "weak.toml"
    file.write_text(scenario(weakness), encoding="utf-8")
    for law, figures in (
        ("reno", weakness.confirmed.law_figures),
        ("bbr3", weakness.confirmed.other_figures),
    ):
        lfn("run", file, "--set", f"flow[0].law={law}", "--out", tmp_path / law, "--no-report")
        (run,) = Results.load(tmp_path / law).runs
        assert Figures.of(run.summary, weakness.path) == figures[0]
    assert f"# reno {SAYS['queue']}" in file.read_text(encoding="utf-8")


def test_margins_are_those_of_the_harm() -> None:
    """Ten cases beside the bounds."""
    path = {"neighbour": "cubic"}
    link = scenarios.link_bps(path)
    good = Figures(0.4 * link, 0.4 * link, 0.01, 0.001)
    for share in (0.05, 0.0999, 0.1001, 0.134):
        bad = Figures(share * link, 0.4 * link, 0.01, 0.001)
        assert (harm.own("starved", path, bad) >= 1.0) is (share < 0.10)
        assert harm.times("starved", bad, good) == pytest.approx(0.4 / share)
    held = Figures(0.8 * link, 0.09 * link, 0.01, 0.001)
    assert harm.margin("neighbour", path, held, good) == pytest.approx(10 / 9)
    assert harm.margin("neighbour", path, held, Figures(0, 0.26 * link, 0, 0)) < 1.0
    slow = Figures(0.9 * link, 0, 0.21, 0.0)
    assert harm.own("queue", path, slow) == pytest.approx(0.21 / harm.LEAST_QUEUE_S)
    # The other law keeps a short queue because it hardly sends.
    assert harm.margin("queue", path, slow, Figures(0.8 * link, 0, 0.001, 0)) == 0.0
    assert harm.margin("queue", path, slow, Figures(0.85 * link, 0, 0.001, 0)) > 1.0
    wasteful = Figures(0.9 * link, 0, 0.01, 0.06)
    assert harm.margin("waste", path, wasteful, Figures(0.9 * link, 0, 0, 0.019)) > 1.0
    assert harm.margin("waste", path, wasteful, Figures(0.9 * link, 0, 0, 0.021)) < 1.0
    assert "stuck" in harm.kinds(space.valid({"loss": 0.01, "ends_s": 5.0}))


def test_every_path_is_within_the_bounds() -> None:
    random = Random(7)
    for _ in range(600):
        one, two = space.drawn(random), space.drawn(random)
        for path in (one, space.changed(one, two, random)):
            assert space.valid(path) == path
            document = scenarios.document(path, "reno", 1, 20.0)
            loss = document["link"].get("loss", 0.0)
            if isinstance(loss, dict):
                loss = loss["p"] / (loss["p"] + loss["r"])
            assert loss <= space.MOST_LOSS * 1.000001
            udp = space.number(path, "udp") * space.number(path, "udp_for_s")
            assert udp <= space.MOST_UDP * space.number(path, "udp_every_s") * 1.000001
    # The simulator takes them, and so do both ends of each key.
    ends = [
        space.valid({**({key.needs: 1e9} if key.needs else {}), name: end})
        for name, key in space.KEYS.items()
        for end in ((0.0, 1e9) if not key.words else key.words)
        if key.needs != "neighbour"
    ]
    for path in [*ends, *(space.drawn(random) for _ in range(100))]:
        _core.Scenario(Ask(path, "reno", 1, 20.0).text)


def test_draws_are_a_function_of_their_place() -> None:
    paths = draws(5, 12)
    assert paths == draws(5, 30)[:12]
    assert paths != draws(6, 12)
    assert all(path and "neighbour" not in path for path in paths)
    table = on_draws("cubic", paths, jobs=2)
    assert table["goodput_bps"].to_list() == table["cubic_bps"].to_list()
    beside = table["beside"].drop_nulls()
    assert len(beside) == 12
    assert 0.2 < beside.median() < 0.8
    assert table.equals(on_draws("cubic", paths, jobs=1))


def test_another_tcp_confirms_or_says_why_not(weakness: Weakness, tmp_path: Path) -> None:
    """The simulator in the place of Linux: its figures are those that are known."""

    class Other(Simulator):
        name = "other"

        def check(self, scenario: _core.Scenario, limit_bytes: int | None = None) -> None:
            if "loss" in tomllib.loads(scenario.text)["link"]:
                raise cli.UsageError("no loss here")

    found = confirm([weakness], Other(), "one", out=tmp_path)["queue-buffer"]
    assert found.holds
    assert found.law_figures == weakness.confirmed.law_figures
    assert found.other == "bbr"  # Linux has no BBRv3
    assert found.says.startswith("holds: reno keeps a queue of")
    lossy = Weakness("lossy", RENO, {"loss": 0.01}, weakness.confirmed)
    refused = confirm([lossy], Other(), "one", out=tmp_path)["lossy"]
    assert (refused.holds, refused.why_not) == (None, "no loss here")
    with pytest.raises(cli.UsageError, match="holds another attack, with on one, here two"):
        confirm([weakness], Other(), "two", out=tmp_path)


MISTAKES = [
    ("nolaw", "nolaw"),
    ("xcp", "a law of a router protocol"),
    ("udt", "over UDT"),
    ("reno --runs 0", "--runs 0; allowed: at least 100"),
    ("reno --seed -1", "--seed -1; allowed: at least 0"),
    ("reno --minutes 0", "--minutes 0; allowed: above 0"),
    ("reno --beside cubic,reno", "--beside reno is the law itself"),
    ("reno --beside vcp", "vcp is a law of a router protocol"),
    ("reno --out OTHER", "holds another attack, with law vegas, here reno"),
    ("vegas --seed 9 --out OTHER", "holds another attack, with seed 1, here 9"),
    ("reno --out FOREIGN", "holds other files, and no attack"),
    ("vegas --out BROKEN", "runs.jsonl:3: no run of an attack"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_a_mistake_is_one_line(
    words: str, says: str, attacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {name: tmp_path / name for name in ("FOREIGN", "BROKEN")}
    folders["FOREIGN"].mkdir()
    (folders["FOREIGN"] / "letter.txt").write_text("dear")
    shutil.copytree(attacked, folders["BROKEN"])
    kept = (attacked / "runs.jsonl").read_text().splitlines(keepends=True)
    (folders["BROKEN"] / "runs.jsonl").write_text("".join([*kept[:2], '["x", 1]\n', *kept[3:]]))
    folders["OTHER"] = attacked
    arguments = [str(folders.get(word, word)) for word in words.split()]
    assert cli.call(["attack", *arguments]) in (cli.USAGE, cli.STORE)
    printed = capsys.readouterr()
    assert not printed.out
    assert says in printed.err
    assert printed.err.count("\n") == 1
    assert not list(Path.cwd().glob("lfn-attack-*"))


def test_a_folder_has_one_attack_at_a_time(attacked: Path, tmp_path: Path) -> None:
    out = tmp_path / "busy"
    shutil.copytree(attacked, out)
    with (out / "runs.jsonl").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another attack runs there"):
            attack("vegas", runs=RUNS, out=out)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ({"losss": 0.01}, r'paths\[1\]: no key "losss"; allowed: rate_mbps'),
        ({"loss": math.nan}, r"paths\[1\]: loss nan; allowed: 1e-05 to 0.01"),
        ({"loss": 1.0}, r"paths\[1\]: loss 1.0; allowed"),
        ({"queue": "dropp"}, r"paths\[1\]: queue 'dropp'; allowed: drop-head"),
        ({"flows": "many"}, r"paths\[1\]: flows 'many'; allowed: 2 to 8"),
    ],
)
def test_a_path_outside_the_space_is_refused(path: dict[str, float | str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        on_draws("reno", [{}, path])
    with pytest.raises(UsageError, match="--jobs -1"):
        on_draws("reno", [{}], jobs=-1)


def test_the_command_writes_what_it_says(
    attacked: Path, weakness: Weakness, tmp_path: Path, lfn: Lfn
) -> None:
    out = tmp_path / "again"
    shutil.copytree(attacked, out)
    said = json.loads(
        lfn("attack", "vegas", "--runs", RUNS, "--out", out, "--json", "--no-figures")
    )
    assert said == json.loads((out / "attack.json").read_text(encoding="utf-8"))
    assert said["law"] == "vegas"
    assert said["others"] == ["cubic", "bbr3"]
    assert all(len(one["keys"]) <= MOST_KEYS for one in said["weaknesses"])
    save(weakness, tmp_path / "weak.png")
    assert (tmp_path / "weak.png").read_bytes()[1:4] == b"PNG"
    assert Weakness.from_json("reno", weakness.to_json()) == weakness
