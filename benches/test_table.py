"""The table of benchmarks."""

from __future__ import annotations

from benches.__main__ import PARTS
from benches.row import Row
from benches.table import recorded_parts


def test_every_part_is_recorded() -> None:
    assert list(recorded_parts()) == list(PARTS)


def test_what_is_beyond_its_bar_is_bold() -> None:
    def cells(**given: float | bool | None) -> tuple[str, ...]:
        return Row("x", "3 ms", **given).cells({})  # type: ignore[arg-type]

    assert cells(ratio=2.5, bar=2.4)[1:4] == ("3 ms", "**2.50**", "2.4")
    assert cells(ratio=2.5, bar=2.6)[2] == "2.50"
    assert cells(ratio=25.0, bar=30, at_least=True)[2:4] == ("**25**", "≥ 30")
    assert cells(bar=2)[1:3] == ("**3 ms**", "")
    assert cells()[1:4] == ("3 ms", "", "")
