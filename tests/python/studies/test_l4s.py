"""The study of Prague beside CUBIC: its page against its table, and what the table says."""

from __future__ import annotations

import polars as pl
from studies import l4s_classic, l4s_fast, l4s_paths
from studies.l4s import RATES_MBIT, RTTS_MS, SEEDS, STUDY, fair_cells, page, with_causes


def test_the_page_is_of_the_committed_table() -> None:
    table, stamp = STUDY.committed()
    laws = len(STUDY.laws)
    assert table.height == laws * len(RATES_MBIT) * len(RTTS_MS) * SEEDS
    assert STUDY.answer.read_text(encoding="utf-8") == page(table, stamp)


def test_half_of_the_link_in_nearly_all_cells() -> None:
    table, _ = STUDY.committed()
    fair = {law: fair_cells(table.filter(pl.col("law") == law)) for law in table["law"].unique()}
    assert fair["prague echo"] <= fair["prague"] < 23 <= fair["prague:steady"]


def test_the_window_of_steady_is_nearer_to_the_formula() -> None:
    # 2 (1 - p)/p, where a window has more than a few packets and p swings.
    table, _ = STUDY.committed()
    rows = with_causes(table).filter(pl.col("rate_mbit") >= 40, pl.col("rtt_ms") >= 20)
    draft, steady = (
        rows.filter(pl.col("law") == law).sort("rate_mbit", "rtt_ms")["product"]
        for law in ("prague", "prague:steady")
    )
    assert ((steady - 2).abs() < (draft - 2).abs()).all()


def test_the_page_of_other_paths_is_of_its_table() -> None:
    table, stamp = l4s_paths.STUDY.committed()
    shorts = len(l4s_paths.SHORT_LAWS) * len(l4s_paths.SHORT_QUEUES) * len(l4s_paths.SHORT_CELLS)
    assert table.height == len(l4s_paths.LAWS) * len(l4s_paths.PLACES) + shorts
    assert l4s_paths.STUDY.answer.read_text(encoding="utf-8") == l4s_paths.page(table, stamp)


def test_the_queue_of_l4s_is_short_and_the_link_full() -> None:
    table, _ = STUDY.committed()
    assert table.filter(pl.col("rate_mbit") >= 40)["l4s_p99_ms"].max() < 2
    mean = table.group_by("law", "rate_mbit", "rtt_ms").agg(pl.col("utilization").mean())
    assert mean["utilization"].min() >= 0.97


def test_the_page_of_fast_paths_is_that_of_its_table() -> None:
    table, stamp = l4s_fast.STUDY.committed()
    cells = len(l4s_fast.LAWS) * len(l4s_fast.RATES_MBIT) * len(l4s_fast.RTTS_MS)
    assert table.height == cells + len(l4s_fast.VARIED)
    assert l4s_fast.STUDY.answer.read_text(encoding="utf-8") == l4s_fast.page(table, stamp)
    # Each cause varies a cell that is not fair without it.
    steady = l4s_fast.of(table, "prague:steady")
    for _, rate, rtt in l4s_fast.VARIED:
        [cell] = steady.filter(rate_mbit=rate, rtt_ms=rtt).to_dicts()
        assert cell["utilization"] < 0.95 or not 0.4 <= cell["share"] <= 0.6, (rate, rtt)


def test_the_page_of_classic_queues_is_that_of_its_table() -> None:
    table, stamp = l4s_classic.STUDY.committed()
    assert l4s_classic.STUDY.answer.read_text(encoding="utf-8") == l4s_classic.page(table, stamp)
    beside = table.filter(pl.col("queue").is_in([*l4s_classic.CLASSIC]))
    plain, fallback = (
        beside.filter(law=law)["share"].is_between(0.4, 0.6).sum() for law in l4s_classic.STUDY.laws
    )
    assert plain < 4
    assert fallback > 40
    assert table.filter(queue=l4s_classic.DUAL, jitter_ms=0)["classic"].max() == 0
