"""Handwritten words as feature dicts: dark pixels of letters, and where the word ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.prepare import provide
from spacy_treecrf.corpora import Record, find_corpus, load_corpus
from spacy_treecrf.corpora.ocr import ink

Items = list[dict[str, str]]
Labelled = tuple[list[Items], list[list[str]]]  # X and y of an estimator


def load_fold(fold: int, dev_share: float = 0.0) -> dict[str, list[Record]]:
    provide(find_corpus("ocr"), Path("project.yml"))
    return load_corpus("ocr", split=f"fold{fold}", dev_share=dev_share)


def some_of(records: list[Record], n: int) -> list[Record]:
    """About n of them, spread: the file has the writings of a word one behind the other."""
    return records[:: max(1, len(records) // n)]


def labelled(records: Sequence[Record], pictures: int = 0, ends: int = 0) -> Labelled:
    X = [picture_items(record, pictures, ends) for record in records]
    return X, [record.labels["letter"] for record in records]


def picture_items(record: Record, pictures: int, ends: int) -> Items:
    """pictures: How many letters to both sides are seen, too.

    ends: How many positions away the beginning and the end of the word are seen.
    """
    dark = [ink(pixels) for pixels in record.features["pixels"]]
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
