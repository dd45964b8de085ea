"""The output of ``lfn laws`` for each law comes from the registry and the cards."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from lfnlab import LawError, LawInfo, law, laws
from lfnlab.cli.runs import DEMO_LAWS
from lfnlab.control_laws import stacks

if TYPE_CHECKING:
    from command import Lfn

SIGNALS = {"loss", "delay", "rate", "ecn", "router"}


def printed(lfn: Lfn, *arguments: str) -> str:
    return lfn("laws", *arguments)


def test_the_list(lfn: Lfn) -> None:
    first, controllers = printed(lfn).split("\n\n")
    assert [line.split()[0] for line in controllers.splitlines()] == [
        "stack",
        *(stack.name for stack in stacks.stacks()),
    ]
    headings, *lines = first.splitlines()
    assert [line.split()[0] for line in lines] == [law.name for law in laws()]
    assert set(DEMO_LAWS) <= {law.name for law in laws()}
    columns = re.split(r"  +", headings)
    assert columns == ["law", "family", "signals", "targets", "slow start", "variants", "source"]
    cubic = re.split(r"  +", lines[[law.name for law in laws()].index("cubic")])
    assert cubic == [
        "cubic",
        "loss",
        "loss",
        "sim,kernel",
        "hystart",
        "rfc,linux,2005,ns2",
        "RFC 9438",
    ]


@pytest.mark.parametrize("entry", laws(), ids=lambda entry: entry.name)
def test_every_law_has_each_field(entry: LawInfo, lfn: Lfn) -> None:
    (said,) = json.loads(printed(lfn, entry.name, "--json"))
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in said.items()
    }
    assert fields == vars(entry)
    assert entry.title
    assert entry.source
    assert entry.family in entry.signals
    assert set(entry.signals) <= SIGNALS
    assert "sim" in entry.targets
    assert set(entry.targets) <= {"sim", "kernel"}
    assert entry.variants
    card = printed(lfn, entry.name, "--vectors")
    assert card.startswith(f"# {entry.title}\n")
    # UDT's own law is no header that vectors drive; crates/udt tests its values.
    vectors = () if entry.name == "udt" else ("\nexpect ",)
    for part in ("## Equations", "## Range and accuracy", "## Reference", *vectors):
        assert part in card
    reference = printed(lfn, entry.name, "--bibtex")
    assert re.match(r"@\w+\{[\w-]+,\n", reference)
    # The text of this paper that the project has names neither authors nor year.
    fields_due = ("title",) if entry.name == "htcp-be" else ("author", "title", "year")
    for field in fields_due:
        assert re.search(rf"\b{field} = \{{.+\}}", reference), f"{entry.name}: no {field}"
    assert reference.count("{") == reference.count("}")


def test_all_references_at_once_are_a_bibliography(lfn: Lfn) -> None:
    keys = re.findall(r"(?m)^@\w+\{([\w-]+),$", printed(lfn, "--bibtex"))
    assert len(keys) >= len(laws())  # a law may have several
    assert len(set(keys)) == len(keys), "a bibliography has each key once"
    assert [entry["name"] for entry in json.loads(printed(lfn, "--json"))] == [
        entry.name for entry in laws()
    ]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cubc", "cubic"),
        ("BBR", "bbr"),
        ("htcp_be", "htcp-be"),
        ("newreno", "reno"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(LawError, match=f'no law "{name}"; did you mean "{near}"'):
        law(name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hstcp:lnux"], 'law hstcp has no variant "lnux"; did you mean "linux"?'),
        (["./mine.py:Mine"], "./mine.py:Mine is a law in a file or of a stack, which has no card"),
        (["reno", "--json", "--bibtex"], "--json, --bibtex: allowed: one of them"),
    ],
)
def test_mistakes(arguments: list[str], said: str, lfn: Lfn) -> None:
    assert said in lfn.err("laws", *arguments)


def test_colours_and_markers_tell_laws_apart() -> None:
    assert len({(law.color, law.marker) for law in laws()}) == len(laws())
