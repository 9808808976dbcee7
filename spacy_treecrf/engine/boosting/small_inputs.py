"""Labels and marginals of a few short sequences in one call of one kernel.

The ordinary way from feature dicts to labels calls a kernel for each step, and hands it its many
arrays each time, which takes longer than the work itself where a sequence has ten positions. Here
the arrays of a model are listed once, by their addresses, and one kernel takes all steps: the very
ones that the ordinary way takes, so that results are the same to the bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear_scoring import add_linear_scores
from spacy_treecrf.engine.chain.chain import ScoredChunk, StepPotentials
from spacy_treecrf.engine.chain.chain_kernels import Marginals, scaled_pass
from spacy_treecrf.engine.chain.decoding import viterbi_bigram, viterbi_general
from spacy_treecrf.engine.encoding.placing import Places, place_events
from spacy_treecrf.engine.intrinsics import carray, pointer_to
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.listed_arrays import (
    float32_table,
    float64_table,
    float64s,
    int32s,
    int64_table,
    int64s,
    listed_arrays,
    uint8s,
    uint32s,
    uint64_table,
    uint64s,
)
from spacy_treecrf.engine.trees.posting_lists import Postings, ScoredRows, add_tree_scores

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


class ModelArrays(NamedTuple):
    """What a model knows, as kernels take it."""

    places: Places
    weights: npt.NDArray[np.float32]  # shape: (n_features, n_labels)
    bin_scores: npt.NDArray[np.float32]  # shape: (n_numeric, N_BINS, n_labels)
    context_first: Ints
    postings: Postings
    steps: StepPotentials
    edges: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), see `scaled_pass`


class Sizes(NamedTuple):
    """Numbers that kernels need beside the arrays, in the first row of their list."""

    n_tables: int  # contexts that have scores of their own
    context_order: int
    order: int
    first_bin: int


def listed(arrays: ModelArrays, sizes: Sizes) -> tuple[Ints, list[npt.NDArray[np.generic]]]:
    """Addresses and lengths of all arrays, and the arrays, which must live as long as these.

    The shape of the list is (1 + n_arrays, 4): address and up to three lengths.
    """
    parts: list[npt.NDArray[Any]] = [
        *arrays.places,
        arrays.weights,
        arrays.bin_scores,
        arrays.context_first,
        *arrays.postings,
        arrays.steps.moves,
        arrays.steps.end,
        arrays.edges,
    ]
    rows, kept = listed_arrays(parts)
    return np.array([list(sizes), *rows], np.int64), kept


@step
def _places(listed: Ints) -> Places:
    """Return the first arrays of the list, in the order of `listed`, as the next steps do."""
    return Places(
        int32s(listed, 1),
        int32s(listed, 2),
        int32s(listed, 3),
        int32s(listed, 4),
        int32s(listed, 5),
    )


@step
def _linear(listed: Ints) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    shape = listed[7, 1], listed[7, 2], listed[7, 3]
    return float32_table(listed, 6), carray(pointer_to(listed[7, 0]), shape, np.float32)


@step
def _postings(listed: Ints) -> Postings:
    return Postings(
        tree_class=int32s(listed, 9),
        leaf_first=uint64s(listed, 10),
        leaf_units=int32s(listed, 11),
        class_first=int64s(listed, 12),
        dense_of=int32s(listed, 13),
        dense=uint64_table(listed, 14),
        feature_first=int32s(listed, 15),
        feature_tree=uint32s(listed, 16),
        feature_mask=uint64s(listed, 17),
        numeric_first=int32s(listed, 18),
        numeric_column=int32s(listed, 19),
        numeric_threshold=uint8s(listed, 20),
        numeric_mask=uint64s(listed, 21),
        context_mask=uint64_table(listed, 22),
        held_first=int32s(listed, 23),
        held_context=int32s(listed, 24),
        held_mask=uint64s(listed, 25),
        held_units=int32s(listed, 26),
        usual_units=int64s(listed, 27),
        context_units=int64_table(listed, 28),
    )


@step
def _steps(listed: Ints) -> StepPotentials:
    return StepPotentials(listed[0, 2], float64_table(listed, 29), float64s(listed, 30))


@step
def _placed(listed: Ints, ends: Ints, ids: Ids) -> tuple[Ids, npt.NDArray[np.uint8]]:
    """Return feature ids and bins of rows, as wide as their widest."""
    places = _places(listed)
    n_rows = len(ends) - 1
    widest = 0
    for row in range(n_rows):
        widest = max(widest, ends[row + 1] - ends[row])
    feature_ids = np.empty((n_rows, len(places.missing_ids) + widest), np.int32)
    numeric = np.empty((n_rows, listed[7, 1]), np.uint8)
    shared = np.empty(widest, np.int32)
    place_events(ends, ids, places, shared, listed[0, 3], feature_ids, numeric)
    return feature_ids, numeric


@step
def _add_scores(
    listed: Ints,
    feature_ids: Ids,
    numeric: npt.NDArray[np.uint8],
    offsets: Ints,
    scores: npt.NDArray[np.float32],
) -> None:
    """Set the scores (n_rows, n_tables, n_labels) of rows."""
    n_rows = len(numeric)
    weights, bin_scores = _linear(listed)
    n_labels = weights.shape[1]
    linear = np.zeros((n_rows, n_labels), np.float32)
    add_linear_scores(feature_ids, numeric, weights, bin_scores, 0, linear)
    n_tables = listed[0, 0]
    lags = np.empty(n_rows, np.uint8)
    rows = np.empty(n_rows, np.int64)
    for s in range(len(offsets) - 1):
        for row in range(offsets[s], offsets[s + 1]):
            lags[row] = min(row - offsets[s], listed[0, 1])
            rows[row] = row
            for c in range(n_tables):
                for k in range(n_labels):
                    scores[row, c, k] = linear[row, k]
    data = ScoredRows(feature_ids, numeric, lags)
    add_tree_scores(data, rows, int64s(listed, 8), n_labels, _postings(listed), scores)


@step
def _scored(listed: Ints, ends: Ints, ids: Ids, offsets: Ints) -> ScoredChunk:
    """Return sequences of dicts with the scores (n_rows, n_tables, n_labels) of their rows."""
    feature_ids, numeric = _placed(listed, ends, ids)
    scores = np.empty((len(numeric), listed[0, 0], listed[6, 2]), np.float32)
    _add_scores(listed, feature_ids, numeric, offsets, scores)
    return ScoredChunk(scores, offsets, 0, len(offsets) - 1)


@step
def _add_marginals(listed: Ints, chunk: ScoredChunk, nodes: npt.NDArray[np.float64]) -> int:
    """Write P(y_t = k) into nodes, which are 0; returns -1 where the scaled pass gives up.

    Empty nodes stay so.
    """
    if len(nodes) == 0:
        return 0
    out = Marginals(np.empty((0, 0, 0), np.float32), nodes, np.empty(chunk.last))
    allowed = np.empty((0, 0), np.uint8)
    scaled_pass(chunk, _steps(listed), float64_table(listed, 31), allowed, out)
    for s in range(chunk.last):
        if np.isnan(out.log_z[s]):
            return -1
    return 0


@kernel
def small_rows(
    listed: Ints,
    feature_ids: Ids,
    numeric: npt.NDArray[np.uint8],
    offsets: Ints,
    scores: npt.NDArray[np.float32],
    labels: Ids,
    nodes: npt.NDArray[np.float64],
) -> int:
    """Write scores, best labels and marginals of encoded rows; -1 where the scaled pass gives up.

    nodes: 0 before, or empty if no marginals are wanted.
    """
    _add_scores(listed, feature_ids, numeric, offsets, scores)
    chunk = ScoredChunk(scores, offsets, 0, len(offsets) - 1)
    viterbi_bigram(chunk, _steps(listed), labels, np.empty(chunk.last))
    return int(_add_marginals(listed, chunk, nodes))


@kernel
def small_rows_of_any_order(
    listed: Ints,
    feature_ids: Ids,
    numeric: npt.NDArray[np.uint8],
    offsets: Ints,
    scores: npt.NDArray[np.float32],
    labels: Ids,
    nodes: npt.NDArray[np.float64],
) -> int:
    """Do the same for chains of any order and scores that depend on the context."""
    _add_scores(listed, feature_ids, numeric, offsets, scores)
    chunk = ScoredChunk(scores, offsets, 0, len(offsets) - 1)
    viterbi_general(chunk, _steps(listed), labels, np.empty(chunk.last))
    return int(_add_marginals(listed, chunk, nodes))


@kernel
def small_labels(
    listed: Ints,
    ends: Ints,
    ids: Ids,
    offsets: Ints,
    labels: Ids,
) -> int:
    """Write the best labels of sequences of dicts. ids: Of all entries. ends: Those before each."""
    chunk = _scored(listed, ends, ids, offsets)
    viterbi_bigram(chunk, _steps(listed), labels, np.empty(chunk.last))
    return 0


@kernel
def small_labels_of_any_order(
    listed: Ints,
    ends: Ints,
    ids: Ids,
    offsets: Ints,
    labels: Ids,
) -> int:
    """Do the same for chains of any order and scores that depend on the context."""
    chunk = _scored(listed, ends, ids, offsets)
    viterbi_general(chunk, _steps(listed), labels, np.empty(chunk.last))
    return 0


@kernel
def small_marginals(
    listed: Ints,
    ends: Ints,
    ids: Ids,
    offsets: Ints,
    nodes: npt.NDArray[np.float64],
) -> int:
    """Write P(y_t = k) into nodes, which are 0; -1 where the scaled pass gives up."""
    return int(_add_marginals(listed, _scored(listed, ends, ids, offsets), nodes))
