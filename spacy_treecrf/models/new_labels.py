"""Labels added to a model that has learned already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.constraints import constrain
from spacy_treecrf.engine.forest import Forest, grow_forest
from spacy_treecrf.engine.grower import Tree
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.potentials import Potentials
from spacy_treecrf.engine.splitting import CONTEXT, LEAF

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
    if old.rounds:
        forests.append(_stumps(range(n_old, len(names)), UNSEEN_LABEL_SCORE, old.rounds - 1))
    potentials = Potentials(
        edges=edges,
        linear=_wider(old.linear, n_new),
        previous_linear=_wider(old.previous_linear, n_new),
        forests=tuple(forests),
        rounds=old.rounds,
        direction=old.direction and old.direction.left(n_new if old.rounds else 0, len(names)),
    )
    if crf.settings.constraints == "observed":  # nothing is known of how the new labels follow
        start, trans, end = (np.pad(mask, (0, n_new)) for mask in crf.masks)
        masks = (start, trans, end)
    else:
        masks = constrain(crf.settings.constraints, names, order=crf.settings.order)
    return replace(crf, labels=names, masks=masks, potentials=potentials)


def _stumps(classes: Sequence[int], value: float, round_: int) -> Forest:
    """Trees of one leaf, which give each of the classes the same score everywhere."""
    nothing = np.array([-1], np.int32)
    zero = np.zeros(1)
    kind = np.array([LEAF], np.uint8)
    leaf = Tree(kind, nothing, np.zeros(1, np.int32), nothing, nothing, zero + value, zero)
    return grow_forest([leaf] * len(classes), classes, round_)


def _wider(weights: LinearWeights, n_new: int) -> LinearWeights:
    def pad(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.pad(array, ((0, 0), (0, n_new)))

    return LinearWeights(pad(weights.categorical), pad(weights.numeric))


def _moved_start(forest: Forest, n_old: int, n_labels: int) -> Forest:
    """Trees of the joint family call "before the start" by the number of labels."""
    start = (forest.kind == CONTEXT) & (forest.threshold == n_old)
    threshold = np.where(start, n_labels, forest.threshold).astype(np.int32)
    return replace(forest, threshold=threshold)
