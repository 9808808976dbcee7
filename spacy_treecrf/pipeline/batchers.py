"""Batches for boosting, which by nature looks at all data in every round."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.util import registry


def whole_corpus() -> Callable[[Iterable[Any]], Iterable[list[Any]]]:
    """All examples of an epoch in one batch: a training step is an epoch."""
    return _all_at_once


def _all_at_once(items: Iterable[Any]) -> Iterator[list[Any]]:
    batch = list(items)
    if batch:
        yield batch


registry.batchers("spacy_treecrf.WholeCorpus.v1", func=whole_corpus)
