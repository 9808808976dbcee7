"""Scores and best labels of few rows by numpy alone, for the first calls after an installation.

The kernels that do the same take seconds to compile, and whoever wants the labels of one sentence
should not wait for them. Learned values lie on a grid, and sums are made in the same order as in
kernels, so that results are the same to the bit.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearScorer
from spacy_treecrf.engine.chain.chain import StepPotentials
from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.trees.contexts import Contexts
from spacy_treecrf.engine.trees.posting_lists import ALL_LEAVES, Postings
from spacy_treecrf.engine.wide_rows import GOES_ON

Ids = npt.NDArray[np.int32]
Bins = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def are_few(feature_ids: Ids, most: int) -> bool:
    """Whether there are rows, at most so many, none of which goes on in another one."""
    return 0 < len(feature_ids) <= most and not bool(np.any(feature_ids <= GOES_ON))


def linear_scores_of_few(linear: LinearScorer, feature_ids: Ids, numeric: Bins) -> Floats:
    """What `LinearScorer.score` returns. shape: (n_rows, n_labels)"""
    out = np.zeros((len(feature_ids), linear.categorical.shape[1]), np.float32)
    if linear.is_zero:
        return out
    for features in feature_ids.T:
        rows = np.flatnonzero((features >= 0) & (features < len(linear.categorical)))
        out[rows] += linear.categorical[features[rows]]
    for of_column, bins in zip(linear.bin_scores, numeric.T, strict=True):
        out += of_column[bins]
    return out


def tree_scores_of_few(
    postings: Postings,
    contexts: Contexts,
    lags: npt.NDArray[np.uint8],
    feature_ids: Ids,
    numeric: Bins,
    n_labels: int,
) -> Floats:
    """What `add_tree_scores` adds. shape: (n_rows, n_tables, n_labels)"""
    masks = _masks_of_bins(postings, numeric)
    for own, features in zip(masks, feature_ids, strict=True):
        _apply_features(postings, features, own)
    n_plain = int(postings.class_first[n_labels])
    units = _units_of(postings, slice(0, n_plain), masks[:, :n_plain, None])[:, :, 0]
    sums = np.zeros((len(masks), n_plain + 1), np.int64)
    np.cumsum(units, axis=1, out=sums[:, 1:])
    after_any = np.diff(sums[:, postings.class_first[: n_labels + 1]], axis=1)
    n_tables = n_labels ** (len(contexts.first) - 2)
    scores = np.zeros((len(masks), n_tables, n_labels), np.float32)
    for row, lag in enumerate(lags.tolist()):
        own_contexts = slice(contexts.first[lag], contexts.first[lag + 1])
        left = masks[row, n_plain:, None] & postings.context_mask[:, own_contexts]
        units = _units_of(postings, slice(n_plain, None), left[None])[0]
        total = np.repeat(after_any[row][:, None], left.shape[1], axis=1)
        np.add.at(total, postings.tree_class[n_plain:], units)
        scores[row, : left.shape[1]] = (total.T / GRID).astype(np.float32)
    return scores


def _units_of(
    postings: Postings, trees: slice, masks: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """The values of the leaves that masks (n_rows, n_trees, n) leave, in steps of the grid."""
    # The exponent of the lowest bit that is left, which a float holds exactly.
    leaves = np.frexp((masks & (~masks + np.uint64(1))).astype(np.float64))[1] - 1
    first = postings.leaf_first[:-1].astype(np.int64)[trees]
    units: npt.NDArray[np.int64] = postings.leaf_units[first[:, None] + leaves].astype(np.int64)
    return units


def _masks_of_bins(postings: Postings, numeric: Bins) -> npt.NDArray[np.uint64]:
    """The leaves that the bins of rows leave in each tree. shape: (n_rows, n_trees)"""
    masks = np.full((len(numeric), len(postings.tree_class)), ALL_LEAVES, np.uint64)
    first = postings.numeric_first
    asking = np.flatnonzero(np.diff(first))
    if len(asking):
        holds = numeric[:, postings.numeric_column] > postings.numeric_threshold
        left = np.where(holds, postings.numeric_mask, ALL_LEAVES)
        masks[:, asking] = np.bitwise_and.reduceat(left, first[asking], axis=1)
    return masks


def _apply_features(postings: Postings, features: Ids, masks: npt.NDArray[np.uint64]) -> None:
    """Clear the leaves that a row's features rule out from its masks (n_trees,)."""
    known = features[(features >= 0) & (features < len(postings.dense_of))]
    dense = postings.dense_of[known]
    masks &= np.bitwise_and.reduce(postings.dense[dense[dense >= 0]], axis=0, initial=ALL_LEAVES)
    for feature in known[dense < 0].tolist():
        own = slice(postings.feature_first[feature], postings.feature_first[feature + 1])
        np.bitwise_and.at(masks, postings.feature_tree[own], postings.feature_mask[own])


def labels_of_few(
    scores: Floats, offsets: npt.NDArray[np.int64], steps: StepPotentials
) -> npt.NDArray[np.int32]:
    """What Viterbi's kernels of order 1 write. scores: (n_rows, 1 or n_labels, n_labels)"""
    labels = np.zeros(len(scores), np.int32)
    for begin, end in pairwise(offsets.tolist()):
        if begin < end:
            labels[begin:end] = _best_path(scores[begin:end].astype(np.float64), steps)
    return labels


def _best_path(scores: npt.NDArray[np.float64], steps: StepPotentials) -> list[int]:
    """The best labels of a sequence, the lower ones among equals; all 0 if none are allowed."""
    moves = steps.moves[:-1]
    delta = steps.moves[-1] + scores[0, 0]
    back = []
    for own in scores[1:]:
        reached = (delta[:, None] + moves) + own
        back.append(reached.argmax(axis=0))
        delta = reached.max(axis=0)
    delta = delta + steps.end
    path = [int(delta.argmax())]
    if delta[path[0]] == -np.inf:
        return [0] * len(scores)
    for before in reversed(back):
        path.append(int(before[path[-1]]))
    return path[::-1]
