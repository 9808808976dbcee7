"""Windows over the words of sequences."""

from __future__ import annotations

import pytest

from scripts.reproduce.windows import labelled_items, window_items
from spacy_treecrf.corpora import Synthetic


def test_windows_are_padded_at_both_ends() -> None:
    assert window_items("ab", 3) == [
        {"word[-1]": "_", "word[0]": "a", "word[1]": "b"},
        {"word[-1]": "a", "word[0]": "b", "word[1]": "_"},
    ]
    assert window_items("ab", 1) == [{"word[0]": "a"}, {"word[0]": "b"}]
    with pytest.raises(ValueError, match=r"^treecrf: width of a window is 2; use an odd"):
        window_items("ab", 2)


def test_sequences_become_x_and_y() -> None:
    sequences = Synthetic().sample(3, length=4)
    X, y = labelled_items(sequences, "tag", 1)
    assert [len(x) for x in X] == [4, 4, 4]
    assert X[0][0] == {"word[0]": sequences[0].words[0]}
    assert y == [sequence.labels["tag"] for sequence in sequences]
