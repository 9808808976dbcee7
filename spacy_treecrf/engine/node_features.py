"""The categorical histogram of each open leaf, as a list of the features that its rows touch.

The lists are sorted by feature. A bit set of a leaf's features and the number of features before
each of its words give a feature's place in the list at once, so that a split changes only what
the smaller child touches, whatever the size of the vocabulary.

Besides its exact sums a list has them once more in single precision and in units of the loss
(`quick`: gradient; hessian + penalty), for the search that looks at all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.block_bounds import widen
from spacy_treecrf.engine.intrinsics import count_bits, lowest_bit

WORD_BITS = 64


class Units(NamedTuple):
    """Factors from whole-number sums to gradients and hessians, and the quadratic penalty."""

    g: float
    h: float
    penalty: float


@njit(nogil=True, cache=True)
def number_of_words(n_features: int) -> int:
    return (n_features + WORD_BITS - 1) // WORD_BITS


@njit(nogil=True, cache=True)
def mark(features: npt.NDArray[np.int32], words: npt.NDArray[np.uint64]) -> None:
    """Set the bit of each feature."""
    for i in range(len(features)):
        f = np.uint64(features[i])
        words[f >> np.uint64(6)] |= np.uint64(1) << (f & np.uint64(63))


@njit(nogil=True, cache=True)
def subtract(
    words: npt.NDArray[np.uint64],
    dense: npt.NDArray[np.float64],
    leaf_words: npt.NDArray[np.uint64],
    leaf_before: npt.NDArray[np.int32],
    leaf_sums: npt.NDArray[np.float64],
    leaf_quick: npt.NDArray[np.float32],
    leaf_bounds: npt.NDArray[np.float32],
    units: Units,
) -> None:
    """Take the marked features' sums (in `dense`, (n_features, 4)) away from a leaf's.

    leaf_words, leaf_before: its features, and how many of them are before each word.
    leaf_sums: (3, n) gradient, hessian and count of its features. leaf_quick: (2, n).
    leaf_bounds: of its blocks of features.
    """
    one = np.uint64(1)
    for w in range(len(words)):
        held = leaf_words[w]
        common = words[w] & held
        while common:
            bit = lowest_bit(common)
            common &= common - one
            f = np.uint64(w) * np.uint64(WORD_BITS) + bit
            at = np.uint64(leaf_before[w]) + count_bits(held & ((one << bit) - one))
            leaf_sums[0, at] -= dense[f, 0]
            leaf_sums[1, at] -= dense[f, 1]
            leaf_sums[2, at] -= dense[f, 2]
            leaf_quick[0, at] = leaf_sums[0, at] * units.g
            leaf_quick[1, at] = leaf_sums[1, at] * units.h + units.penalty
            widen(leaf_bounds, at, leaf_quick[0, at], leaf_quick[1, at])


@njit(nogil=True, cache=True)
def move(
    words: npt.NDArray[np.uint64],
    dense: npt.NDArray[np.float64],
    min_rows: int,
    leaf_words: npt.NDArray[np.uint64],
    leaf_before: npt.NDArray[np.int32],
    leaf_features: npt.NDArray[np.int32],
    leaf_sums: npt.NDArray[np.float64],
    leaf_quick: npt.NDArray[np.float32],
    units: Units,
) -> int:
    """Make the marked features those of a new leaf; clears the marks and `dense`; returns how many.

    Below min_rows a feature cannot split the leaf, nor any node under it, and is left out.
    """
    one = np.uint64(1)
    n = np.uint64(0)
    for w in range(len(words)):
        left = words[w]
        words[w] = 0
        leaf_before[w] = n
        kept = np.uint64(0)
        while left:
            bit = lowest_bit(left)
            left &= left - one
            f = np.uint64(w) * np.uint64(WORD_BITS) + bit
            leaf_features[n] = f
            leaf_sums[0, n] = dense[f, 0]
            leaf_sums[1, n] = dense[f, 1]
            leaf_sums[2, n] = dense[f, 2]
            leaf_quick[0, n] = dense[f, 0] * units.g
            leaf_quick[1, n] = dense[f, 1] * units.h + units.penalty
            enough = np.uint64(dense[f, 2] >= min_rows)
            kept |= enough << bit
            n += enough
            dense[f, 0] = dense[f, 1] = dense[f, 2] = 0.0
        leaf_words[w] = kept
    return int(n)
