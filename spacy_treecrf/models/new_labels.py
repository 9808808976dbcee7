"""Labels added to a model that has learned already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.forest import Forest, grow_forest
from spacy_treecrf.engine.grower import Tree
from spacy_treecrf.engine.history import History
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.potentials import Potentials
from spacy_treecrf.engine.splitting import CATEGORICAL, CONTEXT, LEAF
from spacy_treecrf.models.parts import wider_masks

if TYPE_CHECKING:
    from spacy_treecrf.models.crf import CRF

# Score of a label that no round has seen: about one in four hundred where all else is equal, so
# that it takes hardly anything from the old labels before it is learned.
UNSEEN_LABEL_SCORE = -6.0


def add_labels(crf: CRF, labels: Sequence[str]) -> CRF:
    """The same model with further labels, improbable until more rounds learn them."""
    new = [label for label in dict.fromkeys(labels) if label not in crf.labels]
    if not new:
        return crf
    names = [*crf.labels, *new]
    crf.settings.check_labels(len(names))
    old, n_old, n_new = crf.potentials, len(crf.labels), len(new)
    edges = np.zeros((len(names) + 1, len(names)), np.float32)
    edges[:n_old, :n_old] = old.edges[:-1]
    edges[-1, :n_old] = old.edges[-1]
    forests = [_moved_start(forest, n_old, len(names)) for forest in old.forests]
    potentials = Potentials(
        edges=edges,
        linear=wider(old.linear, n_new),
        previous_linear=wider(old.previous_linear, n_new),
        forests=new_label_forests(forests, range(n_old, len(names)), old.rounds),
        rounds=old.rounds,
        direction=old.direction and old.direction.left(n_new if old.rounds else 0, len(names)),
    )
    masks = wider_masks(crf.masks, crf.settings.constraints, names, crf.settings.order)
    return replace(crf, labels=names, masks=masks, potentials=potentials)


def new_label_forests(
    forests: Sequence[Forest], classes: Sequence[int], rounds: int
) -> tuple[Forest, ...]:
    """The forests of the old labels and, if anything is learned, trees that hold new ones back."""
    if not rounds:
        return tuple(forests)
    return (*forests, stumps(classes, UNSEEN_LABEL_SCORE, rounds - 1))


def history_moved(forest: Forest, old: History, new: History) -> Forest:
    """Trees over the features of `History`, after labels were added."""
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
    leaf = Tree(kind, nothing, np.zeros(1, np.int32), nothing, nothing, zero + value, zero)
    return grow_forest([leaf] * len(classes), classes, round_)


def wider(weights: LinearWeights, n_new: int) -> LinearWeights:
    def pad(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.pad(array, ((0, 0), (0, n_new)))

    return LinearWeights(pad(weights.categorical), pad(weights.numeric))


def _moved_start(forest: Forest, n_old: int, n_labels: int) -> Forest:
    """Trees of the joint family call "before the start" by the number of labels."""
    start = (forest.kind == CONTEXT) & (forest.threshold == n_old)
    threshold = np.where(start, n_labels, forest.threshold).astype(np.int32)
    return replace(forest, threshold=threshold)
