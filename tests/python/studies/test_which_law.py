"""Is docs/which-law.md what its table says?"""

from __future__ import annotations

from studies import which_law_page


def test_the_page_is_made_from_the_committed_table() -> None:
    assert which_law_page.PAGE.read_text(encoding="utf-8") == which_law_page.page()


def test_a_law_within_a_tenth_of_the_best_is_named_and_one_in_doubt_apart() -> None:
    laws = {
        "best": {"percent": 90.0, "half": 4.0},
        "near": {"percent": 82.0, "half": None},
        "wide": {"percent": 60.0, "half": 20.0},
        "poor": {"percent": 60.0, "half": 5.0},
    }
    assert which_law_page.reaching(laws, sure=True) == {"best", "near"}
    assert which_law_page.reaching(laws, sure=False) == {"best", "near", "wide"}
