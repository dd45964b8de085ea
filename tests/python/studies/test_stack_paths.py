"""The study of stacks: its page against its table, and the relations that the page tells."""

from __future__ import annotations

import polars as pl
from studies.stack_paths import BBRS, CUBICS, PATHS, RENO_PATHS, RENOS, SEEDS, STUDY, page


def test_the_page_is_of_the_committed_table() -> None:
    table, stamp = STUDY.committed()
    laws = len(CUBICS) + len(BBRS)
    long = len(PATHS) * (2 + SEEDS)
    assert table.height == laws * long + (1 + len(RENOS)) * len(RENO_PATHS)
    assert STUDY.answer.read_text(encoding="utf-8") == page(table, stamp)


def test_shares_and_drops_are_as_the_page_tells() -> None:
    table, _ = STUDY.committed()
    mean = table.group_by("kind", "law", "bdp").agg(pl.col("share", "dropped").mean())
    found = {(kind, law, bdp): (share, lost) for kind, law, bdp, share, lost in mean.iter_rows()}
    assert all(found["beside", "quiche:cubic", bdp][0] > 0.85 for bdp in (0.2, 1.0))
    assert all(found["beside", "quinn:bbr", bdp][0] > 0.99 for bdp in (0.2, 1.0))
    others = [found["alone", law, 1.0][1] for law in CUBICS if law != "quiche:cubic"]
    assert max(others) < 3e-4
    assert found["alone", "quiche:cubic", 1.0][1] > 100 * max(others)


def test_renos_of_stacks_are_ours() -> None:
    """Within 2 % on all paths but the smallest; smoltcp's reductions are fewer by its rounding."""
    table = STUDY.committed()[0].filter(pl.col("kind") == "reno")
    keys = ["rate_mbit", "rtt_ms", "bdp"]
    ours = table.filter(pl.col("law") == "reno").drop("law", "kind")
    table = table.join(ours, on=keys, suffix="_ours")
    larger = table.filter(pl.col("window_ours") > 45)
    for law, columns in {
        "quinn:new_reno": ("goodput_mbit", "window"),
        "quiche:reno": ("goodput_mbit", "window", "reductions"),
        "smoltcp:reno": ("goodput_mbit", "window"),
    }.items():
        rows = larger.filter(pl.col("law") == law)
        assert rows.height == 11
        for column in columns:
            assert ((rows[column] / rows[f"{column}_ours"] - 1).abs() < 0.02).all(), (law, column)
    # Whole bytes at each ACK: floor(1448 / window) in place of 1448 / window.
    rows = larger.filter(pl.col("law") == "smoltcp:reno").sort("window").tail(1)
    window = rows["window"][0]
    slower = (1448 // window) / (1448 / window)
    assert abs(rows["reductions"][0] / rows["reductions_ours"][0] - slower) < 0.04
