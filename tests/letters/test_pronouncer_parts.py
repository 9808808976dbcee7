"""The table of what each part of a pronouncer brings."""

from __future__ import annotations

import numpy as np

from scripts.pronouncer_parts import fewer, shares
from spacy_treecrf.letters.rescoring import Candidates, Pronunciation

WORDS = [
    Candidates("a", [["AA1"], ["EY1"], ["AA0"]], [-1, -2, -3]),
    Candidates("o", [["OW1"]], [0]),
    Candidates("i", [["IH1"], ["AY1"]], [-1, -2]),
]


def test_fewer_candidates_are_the_first_of_each_word() -> None:
    features = np.arange(6.0)[:, None]
    words, kept = fewer(WORDS, features, 2)
    assert [word.labels for word in words] == [[["AA1"], ["EY1"]], [["OW1"]], [["IH1"], ["AY1"]]]
    assert [word.log_p for word in words] == [[-1, -2], [0], [-1, -2]]
    assert kept[:, 0].tolist() == [0, 1, 3, 4, 5]


def test_shares_are_of_first_pronunciations() -> None:
    found = [
        [Pronunciation((phoneme,), 0.4, [phoneme]), Pronunciation(("UW1",), 0.6, ["UW1"])]
        for phoneme in ("AA1", "OW1", "IH1", "ER1")
    ]
    gold = [("AA1",), ("OW0",), ("UW1",), ("ER1",)]
    assert shares(found, gold) == ["50.00", "75.00"]
    not_annotated = [*gold[:3], None]
    assert shares(found, not_annotated) == ["33.33", "66.67"]
