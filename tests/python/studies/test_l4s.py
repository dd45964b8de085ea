"""The study of Prague beside CUBIC: its page against its table, and what the table says."""

from __future__ import annotations

import polars as pl
from studies.l4s import RATES_MBIT, RTTS_MS, SEEDS, STUDY, page


def test_the_page_is_of_the_committed_table() -> None:
    table, stamp = STUDY.committed()
    laws = len(STUDY.laws)
    assert table.height == laws * len(RATES_MBIT) * len(RTTS_MS) * SEEDS
    assert STUDY.answer.read_text(encoding="utf-8") == page(table, stamp)


def test_the_queue_of_l4s_is_short_and_the_link_full() -> None:
    table, _ = STUDY.committed()
    assert table.filter(pl.col("rate_mbit") >= 40)["l4s_p99_ms"].max() < 2
    mean = table.group_by("law", "rate_mbit", "rtt_ms").agg(pl.col("utilization").mean())
    assert mean["utilization"].min() >= 0.97
