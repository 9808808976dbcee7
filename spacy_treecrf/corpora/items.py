"""Records as feature dicts for estimators: the words in a window around each position."""

from __future__ import annotations

from collections.abc import Sequence

from spacy_treecrf.corpora.record import Record

PAD = "_"

Items = list[dict[str, str]]


def window_items(words: Sequence[str], width: int) -> Items:
    """For each word those in a window of `width` words, with it in the middle."""
    if width < 1 or width % 2 == 0:
        raise ValueError(f"treecrf: width of a window is {width}; use an odd number of words")
    half = width // 2
    padded = [PAD] * half + list(words) + [PAD] * half
    return [{f"word[{d - half}]": padded[t + d] for d in range(width)} for t in range(len(words))]


def labelled_items(
    records: Sequence[Record], layer: str, width: int
) -> tuple[list[Items], list[list[str]]]:
    """X and y of an estimator."""
    X = [window_items(record.words, width) for record in records]
    return X, [record.labels[layer] for record in records]
