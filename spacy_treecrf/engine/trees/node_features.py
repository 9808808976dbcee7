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

from spacy_treecrf.engine.intrinsics import count_bits, lowest_bit
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.trees.block_bounds import widen

WORD_BITS = 64


class Units(NamedTuple):
    """Factors from whole-number sums to gradients and hessians, and the quadratic penalty."""

    g: float
    h: float
    penalty: float


class TouchedFeatures(NamedTuple):
    """The sums of all features over some rows, and which of the features these rows touch."""

    sums: npt.NDArray[np.float64]  # shape: (n_features, 4), 0 where not touched
    listed: npt.NDArray[np.int32]  # shape: (n_features + 1,), in no order
    words: npt.NDArray[np.uint64]  # shape: (n_words,), a bit for each feature


class LeafFeatures(NamedTuple):
    """The features that an open leaf keeps, and their sums."""

    features: npt.NDArray[np.int32]  # shape: (n,), rising
    sums: npt.NDArray[np.float64]  # shape: (3, n), gradient, hessian and count
    quick: npt.NDArray[np.float32]  # shape: (2, n)
    words: npt.NDArray[np.uint64]  # shape: (n_words,), a bit for each feature
    before: npt.NDArray[np.int32]  # shape: (n_words,), how many of them are before each word
    bounds: npt.NDArray[np.float32]  # shape: (n_blocks, 4), see block_bounds


@kernel
def number_of_words(n_features: int) -> int:
    """Return how many words hold a bit for each feature."""
    return (n_features + WORD_BITS - 1) // WORD_BITS


@kernel
def nothing_touched(n_features: int) -> TouchedFeatures:
    """Return sums of no rows."""
    return TouchedFeatures(
        np.zeros((n_features, 4)),
        np.empty(n_features + 1, np.int32),
        np.zeros(number_of_words(n_features), np.uint64),
    )


@kernel
def mark(features: npt.NDArray[np.int32], words: npt.NDArray[np.uint64]) -> None:
    """Set the bit of each feature."""
    for i in range(len(features)):
        f = np.uint64(features[i])
        words[f >> np.uint64(6)] |= np.uint64(1) << (f & np.uint64(63))


@kernel
def rising_features(touched: TouchedFeatures, n: int) -> npt.NDArray[np.int32]:
    """Return the first n listed features in rising order. The bit set is 0 before and after."""
    one = np.uint64(1)
    mark(touched.listed[:n], touched.words)
    features = np.empty(n, np.int32)
    i = 0
    for w in range(len(touched.words)):
        left = touched.words[w]
        touched.words[w] = 0
        while left:
            features[i] = np.uint64(w) * np.uint64(WORD_BITS) + lowest_bit(left)
            left &= left - one
            i += 1
    return features


@step
def take_sums(
    touched: TouchedFeatures,
    n: int,
    features: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
) -> None:
    """Move the first n listed features, in rising order, and their sums away; leave zeros behind.

    features: (n,) and sums: (n, 3) to be filled. The bit set is 0 before and after.
    """
    one = np.uint64(1)
    mark(touched.listed[:n], touched.words)
    i = np.uint64(0)
    for w in range(len(touched.words)):
        left = touched.words[w]
        touched.words[w] = 0
        while left:
            f = np.uint64(w) * np.uint64(WORD_BITS) + lowest_bit(left)
            left &= left - one
            features[i] = f
            for j in range(3):
                sums[i, j] = touched.sums[f, j]
                touched.sums[f, j] = 0.0
            i += one


@step
def clear_sums(touched: TouchedFeatures, features: npt.NDArray[np.int32]) -> None:
    """Make the sums of these features 0."""
    for i in range(len(features)):
        for j in range(4):
            touched.sums[features[i], j] = 0.0


@kernel
def subtract(child: TouchedFeatures, leaf: LeafFeatures, units: Units) -> None:
    """Take the sums of the features that a child has marked away from the leaf's."""
    one = np.uint64(1)
    sums, quick = leaf.sums, leaf.quick
    for w in range(len(child.words)):
        held = leaf.words[w]
        common = child.words[w] & held
        while common:
            bit = lowest_bit(common)
            common &= common - one
            f = np.uint64(w) * np.uint64(WORD_BITS) + bit
            at = np.uint64(leaf.before[w]) + count_bits(held & ((one << bit) - one))
            sums[0, at] -= child.sums[f, 0]
            sums[1, at] -= child.sums[f, 1]
            sums[2, at] -= child.sums[f, 2]
            quick[0, at] = sums[0, at] * units.g
            quick[1, at] = sums[1, at] * units.h + units.penalty
            widen(leaf.bounds, at, quick[0, at], quick[1, at])


@kernel
def move(touched: TouchedFeatures, leaf: LeafFeatures, min_rows: int, units: Units) -> int:
    """Make the marked features those of a new leaf, and return how many it keeps.

    The marks and sums of the touched features become 0. A feature of fewer than min_rows rows
    cannot split the leaf, nor any node under it, and is left out.
    """
    one = np.uint64(1)
    sums, quick = leaf.sums, leaf.quick
    n = np.uint64(0)
    for w in range(len(touched.words)):
        left = touched.words[w]
        touched.words[w] = 0
        leaf.before[w] = n
        kept = np.uint64(0)
        while left:
            bit = lowest_bit(left)
            left &= left - one
            f = np.uint64(w) * np.uint64(WORD_BITS) + bit
            g, h, count = touched.sums[f, 0], touched.sums[f, 1], touched.sums[f, 2]
            leaf.features[n] = f
            sums[0, n] = g
            sums[1, n] = h
            sums[2, n] = count
            quick[0, n] = g * units.g
            quick[1, n] = h * units.h + units.penalty
            enough = np.uint64(count >= min_rows)
            kept |= enough << bit
            n += enough
            touched.sums[f, 0] = touched.sums[f, 1] = touched.sums[f, 2] = 0.0
        leaf.words[w] = kept
    return int(n)
