"""Learning an n-gram model: counts, discounts, and what is worth keeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacy_treecrf.letters.ngram_model import (
    BEGIN,
    LEAST,
    Floats,
    Framed,
    Grams,
    Ints,
    NgramModel,
)

# N-grams of fewer symbols are never forgotten.
FORGET_FROM = 3


@dataclass(frozen=True)
class _Counted:
    """The n-grams of one length in the data."""

    keys: Ints  # rising, as in Grams
    first: Ints  # a place in the data where each n-gram ends
    count: Floats  # how often each occurs
    at: Ints  # shape: (n_places,), the n-gram that ends there, or -1


@dataclass(frozen=True)
class _Smoothed:
    """The same n-grams with probabilities: P(last symbol | others), and after one symbol less."""

    keys: Ints
    probability: Floats
    lower: Floats
    kept: Ints  # by n-gram, its place among those that are kept, or -1


def learn_ngrams(
    sequences: Sequence[Sequence[int]], n_symbols: int, order: int, min_count: int = 1
) -> NgramModel:
    """Learn P(symbol | up to order - 1 symbols before it).

    min_count: N-grams of three and more symbols that occur less often are forgotten, after the
    others have learned from them.
    """
    data = Framed.of(sequences)
    positions = data.positions()
    counted = _counted(data.symbols, positions, n_symbols, order)
    smoothed: list[_Smoothed] = []
    for length, grams in enumerate(counted, start=1):
        counts = grams.count
        if length < order:
            # What counts is after how many symbols an n-gram occurs (Kneser and Ney 1995), but
            # nothing comes before those that begin a sequence.
            after = np.bincount(grams.at[counted[length].first], minlength=len(counts))
            begins = positions[grams.first] == length - 1
            counts = np.where(begins, counts, after)
        if length == 1:
            counts[BEGIN] = 0.0
            lower = np.full(n_symbols, 1.0 / (n_symbols - 1))
        else:
            lower = smoothed[-1].probability[counted[length - 2].at[grams.first]]
        probability = _probabilities(grams.keys // n_symbols, counts, lower)
        enough = (grams.count >= min_count) | (length < FORGET_FROM)
        kept = np.where(enough, np.cumsum(enough) - 1, -1)
        smoothed.append(_Smoothed(grams.keys, probability, lower, kept))
    return NgramModel(n_symbols, _tables(smoothed, n_symbols))


def _counted(symbols: Ints, positions: Ints, n_symbols: int, order: int) -> list[_Counted]:
    """The n-grams of each length; of length 1 they are all symbols, seen or not."""
    first = np.zeros(n_symbols, np.int64)
    first[symbols[::-1]] = np.arange(len(symbols))[::-1]
    count = np.bincount(symbols, minlength=n_symbols).astype(float)
    counted = [_Counted(np.arange(n_symbols), first, count, symbols)]
    for length in range(2, order + 1):
        ends = np.flatnonzero(positions >= length - 1)
        keys, first, inverse, number = np.unique(
            counted[-1].at[ends - 1] * n_symbols + symbols[ends],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        at = np.full(len(symbols), -1)
        at[ends] = inverse
        counted.append(_Counted(keys, ends[first], number.astype(float), at))
    return counted


def _probabilities(history: Ints, counts: Floats, lower: Floats) -> Floats:
    """Interpolated probabilities of n-grams of one length, given those after one symbol less."""
    discount = _discounts(counts)[np.minimum(counts, 3).astype(np.int64)]
    totals = np.bincount(history, counts)
    left = np.bincount(history, discount)
    some = np.where(totals > 0, totals, 1.0)  # n-grams that are counted by none: BEGIN alone
    return np.asarray((counts - discount + left[history] * lower) / some[history])


def _discounts(counts: Floats) -> Floats:
    """What is taken from n-grams that count 0, 1, 2, and 3 or more (Chen and Goodman 1999)."""
    n1, n2, n3, n4 = (float((counts == c).sum()) for c in (1, 2, 3, 4))
    if not (n1 and n2 and n3):
        return np.array([0.0, 0.5, 0.75, 1.0])  # too few data to tell
    share = n1 / (n1 + 2 * n2)
    found = [0.0, 1 - 2 * share * n2 / n1, 2 - 3 * share * n3 / n2, 3 - 4 * share * n4 / n3]
    return np.clip(found, [0.0, 0.1, 0.1, 0.1], [0.0, 0.9, 1.8, 2.7])


def _tables(smoothed: Sequence[_Smoothed], n_symbols: int) -> list[Grams]:
    """The n-grams that are kept, with the factors that make all probabilities sum to one."""
    tables = []
    shorter_kept = np.zeros(1, np.int64)
    for length, grams in enumerate(smoothed, start=1):
        kept = grams.kept >= 0
        old = grams.keys[kept]
        backoff = np.ones(len(old))
        if length < len(smoothed):
            longer = smoothed[length]
            own = longer.kept >= 0
            history = grams.kept[longer.keys[own] // n_symbols]
            rest = 1.0 - np.bincount(history, longer.probability[own], len(old))
            lower_rest = 1.0 - np.bincount(history, longer.lower[own], len(old))
            backoff = np.maximum(rest, LEAST) / np.maximum(lower_rest, LEAST)
        tables.append(
            Grams(
                shorter_kept[old // n_symbols] * n_symbols + old % n_symbols,
                np.clip(grams.probability[kept], LEAST, 1.0).astype(np.float32),
                backoff.astype(np.float32),
            )
        )
        shorter_kept = grams.kept
    return tables
