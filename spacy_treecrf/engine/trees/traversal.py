"""Scores of rows under trees that are walked node by node: trees too large for posting lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.trees.contexts import Contexts
from spacy_treecrf.engine.trees.forest import TreeNodes
from spacy_treecrf.engine.trees.posting_lists import ALL_LEAVES, MAX_MASK_LEAVES, ScoredRows
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF, NUMERIC


@step
def note_features(
    feature_ids: npt.NDArray[np.int32], row: int, last_row_with: npt.NDArray[np.int64]
) -> None:
    """Make this row the last one that has its features. last_row_with: (n_features,)"""
    at = np.int64(row)
    while at != NOWHERE:
        for slot in range(feature_ids.shape[1]):
            if 0 <= feature_ids[at, slot] < len(last_row_with):
                last_row_with[feature_ids[at, slot]] = row
        at = next_row(feature_ids, at)


@step
def _contexts_with(contexts: Contexts, n_labels: int) -> npt.NDArray[np.uint64]:
    """Return, as bits, the contexts of so many previous labels that have a label at a place.

    shape: (numbers of previous labels, places, n_labels + 1), nothing for more than 64 contexts.
    """
    n_lags, n_places = len(contexts.first) - 1, contexts.labels.shape[1]
    found = np.zeros((n_lags, n_places, n_labels + 1), np.uint64)
    for lag in range(n_lags):
        first = contexts.first[lag]
        for c in range(min(MAX_MASK_LEAVES, contexts.first[lag + 1] - first)):
            for place in range(n_places):
                label = contexts.labels[first + c, place]
                if 0 <= label <= n_labels:
                    found[lag, place, label] |= np.uint64(1) << np.uint64(c)
    return found


@kernel
def add_tree_scores_by_traversal(
    data: ScoredRows,
    first_row: int,
    last_row: int,
    contexts: Contexts,
    n_features: int,
    nodes: TreeNodes,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the same sums as `add_tree_scores`, node by node; for trees of more than 64 leaves."""
    kind, feature, threshold, labels = nodes.kind, nodes.feature, nodes.threshold, contexts.labels
    last_row_with = np.full(n_features, -1, np.int64)
    contexts_with = _contexts_with(contexts, scores.shape[2])
    one = np.uint64(1)
    for row in range(first_row, last_row):
        note_features(data.feature_ids, row, last_row_with)
        lag = data.lags[row]
        first = contexts.first[lag]
        n_contexts = contexts.first[lag + 1] - first
        for tree in range(len(nodes.tree_class)):
            root, class_ = nodes.tree_first[tree], nodes.tree_class[tree]
            done = np.uint64(0)
            for c in range(n_contexts):
                if c < MAX_MASK_LEAVES and (done >> np.uint64(c)) & one:
                    continue
                # Contexts that go the same way: one walk serves them all.
                same = ALL_LEAVES
                node = root
                while kind[node] != LEAF:
                    test = feature[node]
                    if kind[node] == CATEGORICAL:
                        holds = last_row_with[test] == row
                    elif kind[node] == NUMERIC:
                        holds = data.numeric[row, test] > threshold[node]
                    else:
                        holds = labels[first + c, test] == threshold[node]
                        those = contexts_with[lag, test, threshold[node]]
                        same &= those if holds else ~those
                    node = root + (nodes.right[node] if holds else nodes.left[node])
                scores[row, c, class_] += nodes.value[node]
                done |= same
                for other in range(c + 1, min(n_contexts, MAX_MASK_LEAVES)):
                    if (same >> np.uint64(other)) & one:
                        scores[row, other, class_] += nodes.value[node]
