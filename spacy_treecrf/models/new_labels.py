"""Learned parts widened for labels and features that are added to a model later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.memm.label_history import LabelHistory
from spacy_treecrf.engine.trees.forest import Forest, grow_forest
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF

# Score of a label that no round has seen: about one in four hundred where all else is equal, so
# that it takes hardly anything from the old labels before it is learned.
UNSEEN_LABEL_SCORE = -6.0


def new_label_forests(
    forests: Sequence[Forest], classes: Sequence[int], rounds: int
) -> tuple[Forest, ...]:
    """The forests of the old labels and, if anything is learned, trees that hold new ones back."""
    if not rounds:
        return tuple(forests)
    return (*forests, stumps(classes, UNSEEN_LABEL_SCORE, rounds - 1))


def history_moved(forest: Forest, old: LabelHistory, new: LabelHistory) -> Forest:
    """The forest with its tests of previous labels renumbered, after labels were added."""
    own = (forest.kind == CATEGORICAL) & (forest.feature < old.n_features)
    other = (forest.kind == CATEGORICAL) & ~own
    lag, label = np.divmod(forest.feature, old.n_labels + 1)
    label = np.where(label == old.n_labels, new.n_labels, label)  # before the start
    moved = np.where(own, lag * (new.n_labels + 1) + label, forest.feature)
    moved = moved + np.where(other, new.n_features - old.n_features, 0)
    return replace(forest, feature=moved.astype(np.int32))


def stumps(classes: Sequence[int], value: float, round_: int) -> Forest:
    """Trees of one leaf, which give each of the classes the same score everywhere."""
    nothing = np.array([-1], np.int32)
    zero = np.zeros(1)
    kind = np.array([LEAF], np.uint8)
    leaf = Tree(kind, nothing, np.zeros(1, np.int32), nothing, nothing, zero + value, zero, zero)
    return grow_forest([leaf] * len(classes), classes, round_)


def wider(weights: LinearWeights, n_new: int) -> LinearWeights:
    def pad(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.pad(array, ((0, 0), (0, n_new)))

    return LinearWeights(pad(weights.categorical), pad(weights.numeric))


def longer(weights: LinearWeights, n_features: int, n_numeric: int) -> LinearWeights:
    """The weights with zeros for features and numeric columns that were added later."""

    def pad(array: npt.NDArray[np.float32], n: int) -> npt.NDArray[np.float32]:
        return np.pad(array, ((0, n - len(array)), (0, 0)))

    return LinearWeights(pad(weights.categorical, n_features), pad(weights.numeric, n_numeric))


def start_moved(forest: Forest, n_old: int, n_labels: int) -> Forest:
    """The forest of the joint family with its tests of "before the start" renumbered.

    That context has the number of labels as its id.
    """
    start = (forest.kind == CONTEXT) & (forest.threshold == n_old)
    threshold = np.where(start, n_labels, forest.threshold).astype(np.int32)
    return replace(forest, threshold=threshold)
