"""Labelled sequences as feature dicts for estimators: the words around each position."""

from __future__ import annotations

from collections.abc import Sequence

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence

PAD = "_"

Items = list[dict[str, str]]


def window_items(words: Sequence[str], width: int) -> Items:
    """The words in a window of `width` words around each word."""
    if width < 1 or width % 2 == 0:
        raise ValueError(f"treecrf: width of a window is {width}; use an odd number of words")
    half = width // 2
    padded = [PAD] * half + list(words) + [PAD] * half
    return [{f"word[{d - half}]": padded[t + d] for d in range(width)} for t in range(len(words))]


def labelled_items(
    sequences: Sequence[LabelledSequence], layer: str, width: int
) -> tuple[list[Items], list[list[str]]]:
    """X and y for an estimator."""
    X = [window_items(sequence.words, width) for sequence in sequences]
    return X, [sequence.labels[layer] for sequence in sequences]
