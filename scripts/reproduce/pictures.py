"""Handwritten words as feature dicts: dark pixels of letters, and where the word ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.prepare import provide
from spacy_treecrf.corpora import LabelledSequence, find_corpus, load_corpus
from spacy_treecrf.corpora.ocr import ink

Items = list[dict[str, str]]
Labelled = tuple[list[Items], list[list[str]]]  # X and y of an estimator


def load_fold(fold: int, dev_share: float = 0.0) -> dict[str, list[LabelledSequence]]:
    provide(find_corpus("ocr"), Path("project.yml"))
    return load_corpus("ocr", split=f"fold{fold}", dev_share=dev_share)


def some_of(sequences: list[LabelledSequence], n: int) -> list[LabelledSequence]:
    """About n of the sequences, spread: the file has the writings of a word one after the other."""
    return sequences[:: max(1, len(sequences) // n)]


def labelled(sequences: Sequence[LabelledSequence], pictures: int = 0, ends: int = 0) -> Labelled:
    X = [picture_items(sequence, pictures, ends) for sequence in sequences]
    return X, [sequence.labels["letter"] for sequence in sequences]


def picture_items(sequence: LabelledSequence, pictures: int, ends: int) -> Items:
    """The feature dicts of a word.

    pictures: How many letters on both sides are seen, too.
    ends: How many positions away the beginning and the end of the word are seen.
    """
    dark = [ink(pixels) for pixels in sequence.features["pixels"]]
    n = len(dark)
    items: Items = []
    for t in range(n):
        item = {}
        for d in range(-pictures, pictures + 1):
            if 0 <= t + d < n:
                item |= {f"{name}[{d}]": "dark" for name in dark[t + d]}
        for d in range(-ends, ends + 1):
            if not 0 <= t + d < n:
                item[f"end[{d}]"] = "yes"
        items.append(item)
    return items
