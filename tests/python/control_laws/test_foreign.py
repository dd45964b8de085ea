"""Controllers of files: equal to the built-in law, and harmless when they are wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import lfnlab
from lfnlab import Controller, LabError, LawError, compare, dumbbell
from lfnlab.advise import choices, text
from lfnlab.cli import app as cli
from lfnlab.control_laws import foreign
from lfnlab.experiment import alone

if TYPE_CHECKING:
    from command import Lfn

    from lfnlab import ControllerAck, Run, Scenario

PATHS = {
    "deep": dumbbell(rate="50Mbit/s", rtt="40ms", buffer="1bdp", duration="8s", sample="10ms"),
    "lossy": dumbbell(
        rate="50Mbit/s", rtt="20ms", buffer="0.5bdp", duration="8s", loss=2e-3, sample="10ms"
    ),
    "shallow": dumbbell(
        rate="200Mbit/s", rtt="60ms", buffer="0.1bdp", duration="8s", sample="10ms"
    ),
}
SHORT = dumbbell(rate="10Mbit/s", rtt="20ms", buffer="1bdp", duration="1s")


def made(folder: Path, replacements: dict[str, str] | None = None, name: str = "mine") -> Path:
    """The skeleton in C with other words in it, compiled."""
    text = (foreign.SKELETONS / "c/mine.c").read_text()
    text = text.replace("<stdlib.h>", "<stdlib.h>\n#include <signal.h>\n#include <time.h>")
    for old, new in (replacements or {}).items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source, built = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    command = ["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{foreign.SKELETONS}"]
    subprocess.run([*command, "-o", built, source], check=True)
    return built


def at_an_ack(words: str) -> dict[str, str]:
    """Words of C that run at each ACK."""
    before = "	uint64_t delivered = ack->acked_bytes / mine->packet_bytes;"
    return {before: f"{before}\n\n	{words}"}


def windows(run: Run) -> np.ndarray:
    return run.table("flows", ("cwnd_seg",))["cwnd_seg"].to_numpy()


def build(lfn: Lfn, folder: Path, language: str) -> Path:
    """A fresh skeleton, built by the command that `lfn new controller` says."""
    said = lfn("new", "controller", folder, "--language", language)
    for line in said.splitlines():
        if line.startswith("build: "):
            command = line.removeprefix("build: ")
            subprocess.run(command, shell=True, check=True, capture_output=True)
    law = next(line for line in said.splitlines() if line.startswith("run: "))
    return Path(law.split("--law ")[1].split(",")[0])


@pytest.mark.parametrize("language", ["c", "rust", "go", "python"])
def test_a_skeleton_is_reno_to_the_segment(language: str, tmp_path: Path, lfn: Lfn) -> None:
    tool = {"c": "cc", "rust": "cargo", "go": "go", "python": sys.executable}[language]
    if shutil.which(tool) is None:
        pytest.skip(f"CONTROLLERS IN {language.upper()} NOT TESTED: {tool} is missing")
    built = build(lfn, tmp_path / "own", language)
    for rules in ("linux", "ns2"):
        for name, path in PATHS.items():
            own, reno = (
                windows(compare([law], replace(path, compat=rules), out=tmp_path / "out").runs[0])
                for law in (str(built), "reno:linux")
            )
            assert len(own) > 700
            assert np.array_equal(own, reno), (rules, name)


def test_packets_are_told_each_once(tmp_path: Path) -> None:
    """A packet has a number of its own, and is acknowledged or lost once, or in flight at last."""
    text = """
static uint64_t next, acked, lost, both;
static void sent(void *state, uint64_t now_ns, const struct lfn_packet *packet, uint64_t in_flight,
                 struct lfn_control *control)
{
	(void)state; (void)control;
	if (packet->number != next++ || packet->sent_ns != now_ns || in_flight < packet->bytes)
		abort();
}
static unsigned char seen[1 << 20];
static void once(const struct lfn_packet *packet, unsigned char bit)
{
	if (packet->number >= next || packet->number >= sizeof seen || seen[packet->number] & bit)
		abort();
	seen[packet->number] |= bit;
	both += seen[packet->number] == 3; /* Taken for lost, and delivered. */
}
static void acked_one(void *state, uint64_t now_ns, const struct lfn_packet *packet,
                      struct lfn_control *control)
{
	(void)state; (void)control;
	if (now_ns <= packet->sent_ns)
		abort();
	once(packet, 1);
	acked++;
}
static void lost_one(void *state, uint64_t now_ns, const struct lfn_packet *packet,
                     struct lfn_control *control)
{
	(void)state; (void)control; (void)now_ns;
	once(packet, 2);
	lost++;
}
static void probe(const void *state, double *values)
{
	(void)state;
	values[0] = (double)(next + both - acked - lost);
	values[1] = (double)lost;
	values[2] = (double)acked;
}
static const char *const values[] = { "open", "lost", "acked" };
"""
    before = (foreign.SKELETONS / "c/mine.c").read_text()
    start, end = before.index("static void probe"), before.index("const struct lfn_controller *")
    built = made(
        tmp_path,
        {
            before[start:end]: text,
            ".value_count = 1,": ".value_count = 3, .acked = acked_one, .lost = lost_one,",
            ".destroy = free,": ".destroy = free, .sent = sent,",
        },
    )
    for rules in ("linux", "ns2"):
        path = replace(PATHS["lossy"], compat=rules)
        run = compare([str(built)], path, out=tmp_path / "out").runs[0]
        probes = run.table("probes")
        names = ("open", "lost", "acked")
        last = dict(zip(names, probes["value"][-3:], strict=True))
        flow = json.loads((run.path / "summary.json").read_text())["flows"][0]
        assert last["lost"] > 20
        assert last["lost"] >= flow["retransmits"]
        assert last["open"] == run.table("flows")["inflight_seg"][-1]
        assert last["acked"] > 1000


@pytest.mark.parametrize(
    ("replaced", "wrong"),
    [
        (at_an_ack("control->window_bytes = 10; return;"),
         r"mine.ack at [\d.]+ s: window_bytes 10; allowed: 1448 to "),
        (at_an_ack("control->next_tick_ns = 1;"),
         r"mine.ack at [\d.]+ s: next_tick_ns 1; allowed: 0, or after "),
        ({"	struct mine *mine = calloc(1, sizeof *mine);": "	struct mine *mine = NULL;"},
         r"mine.create at [\d.]+ s: returned NULL"),
        ({"	values[0] = (double)mine->counted;": "	values[0] = -(double)mine->window;"},
         r"mine.probe at .*: -10; allowed: a number of at least 0"),
        (at_an_ack("raise(SIGSEGV);"),
         r"mine: its process ended: signal SIGSEGV"),
        (at_an_ack("exit(7);"),
         r"mine: its process ended: exit code 7"),
    ],
)  # fmt: skip
def test_a_wrong_controller_ends_its_run_alone(
    replaced: dict[str, str], wrong: str, tmp_path: Path
) -> None:
    built = made(tmp_path, replaced)
    with pytest.raises(LabError, match=wrong):
        compare([str(built)], replace(SHORT, sample="100ms"), out=tmp_path / "out")


def test_other_runs_of_an_experiment_are_kept(tmp_path: Path, lfn: Lfn) -> None:
    built = made(tmp_path, at_an_ack("abort();"))
    out = tmp_path / "out"
    path = ["--rate", "10Mbit/s", "--rtt", "20ms", "--duration", "1s", "--out", out]
    assert cli.call([str(word) for word in ["compare", "--law", f"{built},cubic", *path]]) != cli.OK
    assert "mine: its process ended: signal SIGABRT" in lfn.said().err
    assert "cubic" in lfn("table", out)


def test_a_controller_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "STALLS_AFTER_S", 2.0)
    built = made(tmp_path, at_an_ack("for (;;) {}"))
    with pytest.raises(LabError, match="mine: simulated time stood still for 2 s, at "):
        compare([str(built)], SHORT, out=tmp_path / "out")


def test_a_controller_that_draws_from_the_system_is_refused(tmp_path: Path) -> None:
    built = made(
        tmp_path,
        {
            "		mine->counted = 0;\n	} else if (event == LFN_EVENT_TIMEOUT_AGAIN": (
                "		struct timespec now;\n\n		clock_gettime(CLOCK_MONOTONIC, &now);\n"
                "		mine->window += now.tv_nsec % 16;\n"
                "	} else if (event == LFN_EVENT_TIMEOUT_AGAIN"
            ),
        },
    )
    with pytest.raises(LawError, match="two runs of one scenario and seed differ"):
        compare([str(built)], PATHS["lossy"], out=tmp_path / "out")


@pytest.mark.parametrize(
    ("replaced", "wrong"),
    [
        ({"= LFN_CONTROLLER_VERSION": "= 9"}, "version 9; controller.h, version 1"),
        ({'.name = "mine"': '.name = "my law"'}, 'name "my law"; allowed: a letter, then letters'),
        ({".value_count = 1": ".value_count = 9"}, "value_count 9; allowed: at most 8"),
        ({".destroy = free,": ".destroy = NULL,"}, "create, destroy or ack is NULL"),
        ({'.name = "mine"': '.name = "cubic"'}, "cubic is a law of the registry"),
        ({"return &controller": "abort(); return &controller"}, "its process: signal SIGABRT"),
        ({"*lfn_controller(void)\n{": "*other(void)\n{"}, "no function lfn_controller"),
    ],
)  # fmt: skip
def test_what_is_no_controller_is_refused(
    replaced: dict[str, str], wrong: str, tmp_path: Path
) -> None:
    built = made(tmp_path, replaced)
    with pytest.raises(LawError, match=wrong):
        compare([str(built)], SHORT, out=tmp_path / "out")


def test_what_is_no_shared_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no code")
    for name, wrong in (("text.so", "invalid ELF header|too short"), ("none.so", "No such file")):
        with pytest.raises(LawError, match=wrong):
            compare([str(tmp_path / name)], SHORT, out=tmp_path / "out")


def test_a_run_belongs_to_the_bytes_of_its_controller(tmp_path: Path) -> None:
    """The hash is in the name; a stored run is taken while the file is the same."""

    def run(path: Scenario = SHORT) -> Run:
        return compare([str(built)], path, out=tmp_path / "out").runs[0]

    built = made(tmp_path)
    first = run()
    assert run().path.stat().st_mtime_ns == first.path.stat().st_mtime_ns
    assert f"mine@{foreign.digest_of(built)}" in (first.path / "scenario.toml").read_text()
    made(tmp_path, {"mine->window / 2 > 2 ? mine->window / 2 : 2": "mine->window / 3 + 2"})
    assert run().path != first.path


def in_python(folder: Path, body: str) -> str:
    """A controller in Python whose class has these lines at each ACK."""
    text = f"""
import time
import lfnlab

class Own(lfnlab.Controller):
    probes = ("shown",)

    def __init__(self, config):
        self.shown = 1

    def ack(self, ack):
{body}
"""
    (folder / "own.py").write_text(text)
    return str(folder / "own.py")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("        1 / (self.now_ns < 5e8)",
         r"Own.ack at 0.5\d* s: ZeroDivisionError: division by zero \(own.py:12\)"),
        ("        self.window_bytes = 10",
         r"Own.ack at [\d.]+ s: window_bytes 10; allowed: 1448 to "),
        ("        self.window_bytes = float('nan')",
         r"Own.ack at .*: ValueError: window_bytes: found NaN; allowed: a finite number of bytes"),
        ("        self.next_tick_ns = self.now_ns",
         r"Own.ack at .*: ValueError: next_tick_ns: found \d+; allowed: a time after now_ns"),
        ("        self.shown = 'many'",
         r"Own.probes at .*: TypeError: shown: found 'many' of type str; allowed: for a probe"),
        ("        ack.rtt_s",
         r"Own.ack at .*ControllerAck' object has no attribute 'rtt_s' .*did you mean rtt_ns"),
        ("        while True: pass",
         r"Own: simulated time stood still for 2 s, at "),
        ("        self.window_bytes = 30000 + time.monotonic_ns() % 4096",
         r"Own: two runs of one scenario and seed differ"),
    ],
)  # fmt: skip
def test_a_wrong_controller_in_python_ends_its_run_in_one_line(
    body: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "STALLS_AFTER_S", 2.0)
    path = replace(SHORT, sample="100ms")
    with pytest.raises(LabError, match=wrong) as found:
        compare([in_python(tmp_path, body)], path, out=tmp_path / "out")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("replaced", "name", "wrong"),
    [
        (("def ack", "def acknowledged"), "", "Own has no ack; a controller has one"),
        (
            ("(self, ack)", "(self)"),
            "",
            r"Own.ack\(self\) cannot be called; write ack\(self, ack\)",
        ),
        (("(self, config)", "(self)"), "", r"cannot be called; write __init__\(self, config\)"),
        (("window_bytes", "windows_bytes"), "", "sets windows_bytes; did you mean window_bytes"),
        (('"shown",', "*'abcdefghi',"), "", "Own.probes: 9; allowed: at most 8"),
        (("class Own", "class Two(lfnlab.Law): pass\n\nclass Own"), "", "it has Two, Own"),
        (("", ""), ":None", "no law 'None'; it has Own"),
        (("probes =", "name = 'cubic'; probes ="), "", "cubic is a law of the registry"),
    ],
)
def test_what_is_no_controller_in_python_is_refused(
    replaced: tuple[str, str], name: str, wrong: str, tmp_path: Path
) -> None:
    file = Path(in_python(tmp_path, "        self.window_bytes = 14480"))
    file.write_text(file.read_text().replace(*replaced))
    with pytest.raises(LawError, match=wrong):
        compare([f"{file}{name}"], SHORT, out=tmp_path / "out")


def test_a_class_of_the_running_program_is_no_controller(tmp_path: Path) -> None:
    """Another process could not load it; a class that was imported from a file it can."""

    class Own(Controller):
        def ack(self, ack: ControllerAck) -> None:
            pass

    with pytest.raises(LawError, match=r"write it to a file and name it \"./FILE.py:Own\""):
        compare([Own], SHORT, out=tmp_path / "out")


def test_commands_take_a_controller_from_a_folder_with_a_space(
    tmp_path: Path, lfn: Lfn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a path that is relative: in a scenario file to that file, elsewhere to the folder."""
    folder = tmp_path / "my own"
    folder.mkdir()
    shutil.copy(foreign.SKELETONS / "python/mine.py.txt", folder / "mine.py")
    law = "my own/mine.py"
    monkeypatch.chdir(tmp_path)
    link = 'rate = "10Mbit/s"\n'
    sweep = f'[sweep]\nseeds = 1\n[sweep.grid]\n"flow[0].law" = ["reno:linux", "{law}"]\n'
    file = f'schema = 1\nduration = "1s"\n[link]\n{link}[[flow]]\nlaw = "./mine.py"\nrtt = "20ms"\n'
    (folder / "one.toml").write_text(file)
    (folder / "all.toml").write_text(file + sweep)
    summary = json.loads(lfn("run", "my own/one.toml", "--out", "one", "--json"))
    assert summary["runs"][0]["prototypes"][0]["law"] == "mine (prototype)"
    lfn("sweep", "my own/all.toml", "--out", "all")
    first, second = lfnlab.open("all").results().frame()["goodput_bps"]
    assert first == second
    (choice,) = choices.choices(choices.named(law), 1)
    (line,) = text.law_lines(choice)
    assert line == "# mine is a controller: its own stack is told to use it"
    assert "none.so: No such file" in lfn.err("evaluate", "./none.so", "--out", "none")
