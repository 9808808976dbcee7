"""Smaller CRFs: without what no prediction needs, and without small weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.kept_features import (
    in_order_of_names,
    may_drop_features,
    with_features,
)
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF

# Values of pruned models are multiples of this: 16 bits hold all of them up to 64.
COARSE_STEP = 2.0**-9


def compacted(potentials: Potentials, columns: Columns) -> tuple[Potentials, Columns]:
    """What a CRF needs for prediction alone: its labels and probabilities are the same bit for bit.

    Left out are features without a weight or a split, gains of splits, counts of rows and features,
    and the state of a training that would go on.
    """
    forest, linear = _for_prediction(potentials.forest), potentials.linear
    if may_drop_features(columns):
        kept = in_order_of_names(columns, _used_features(linear, forest))
        columns = with_features(columns, kept)
        linear = LinearWeights(np.ascontiguousarray(linear.categorical[kept]), linear.numeric)
        forest = _renumbered(forest, kept)
    nothing = LinearWeights.nothing(*linear.shape)
    small = Potentials(
        potentials.edges,
        linear,
        nothing,
        (forest,),
        potentials.rounds,
        temperature=potentials.temperature,
        outside=potentials.outside,
        curve=potentials.curve,
    )
    return small, columns


def without_small_weights(potentials: Potentials, threshold: float) -> Potentials:
    """Potentials without weights of features below the threshold; other weights, leaves rounded.

    Rounded values still lie on the grid of exact sums. Features keep their numbers.
    """
    linear, forest = potentials.linear, potentials.forest
    small = np.abs(linear.categorical) < threshold
    kept = _rounded(np.where(small, np.float32(0.0), linear.categorical))
    return replace(
        potentials,
        linear=LinearWeights(kept, linear.numeric),
        forests=(replace(forest, value=_rounded(forest.value)),),
        direction=None,
    )


def _rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (np.rint(values / np.float64(COARSE_STEP)) * COARSE_STEP).astype(np.float32)


def _for_prediction(forest: Forest) -> Forest:
    """The trees without values of inner nodes, gains and counts of rows."""
    leaf = forest.kind == LEAF
    return replace(
        forest,
        value=np.where(leaf, forest.value, np.float32(0.0)) + np.float32(0.0),  # no -0.0
        gain=np.zeros_like(forest.gain),
        rows=np.zeros_like(forest.rows),
    )


def _used_features(linear: LinearWeights, forest: Forest) -> npt.NDArray[np.int64]:
    """Features with a weight or a split, rising."""
    used = np.zeros(len(linear.categorical), np.bool_)
    used[linear.categorical.any(axis=1)] = True
    used[forest.feature[forest.kind == CATEGORICAL]] = True
    return np.flatnonzero(used)


def _renumbered(forest: Forest, kept: npt.NDArray[np.int64]) -> Forest:
    """The trees with their tests of features renumbered. kept: the old feature of each new one."""
    n_old = int(max(kept.max(initial=-1), forest.feature.max(initial=-1))) + 1
    new_id = np.full(n_old, -1, np.int32)
    new_id[kept] = np.arange(len(kept), dtype=np.int32)
    feature = forest.feature.copy()
    tests = forest.kind == CATEGORICAL
    feature[tests] = new_id[feature[tests]]
    return replace(forest, feature=feature)
