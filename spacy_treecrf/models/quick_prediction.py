"""A model prepared for short inputs: from dicts or rows to labels by one kernel, in this thread.

And for the first ones, by no kernel at all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.few_rows import (
    are_few,
    labels_of_few,
    linear_scores_of_few,
    tree_scores_of_few,
)
from spacy_treecrf.engine.boosting.potentials import Scorer
from spacy_treecrf.engine.boosting.small_inputs import (
    ModelArrays,
    Sizes,
    listed,
    small_labels,
    small_labels_of_any_order,
    small_marginals,
    small_rows,
    small_rows_of_any_order,
)
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.decoding import marginal_argmax
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.entry_tables import first_bin
from spacy_treecrf.engine.encoding.few_items import encode_few
from spacy_treecrf.engine.encoding.missing_methods import IMPUTATION, IN_TREES
from spacy_treecrf.engine.encoding.placing import Places
from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.engine.trees.contexts import count_lags
from spacy_treecrf.engine.trees.histogram import N_BINS

MAX_ROWS = 256
MAX_FIRST_ROWS = 64
MAX_CELLS = 2**17  # of scores, and of feature ids in the slots of keys

Labels = npt.NDArray[np.int32]
Nodes = npt.NDArray[np.float64]


class QuickRows:
    """What a model knows, listed for kernels that go from encoded rows to labels and marginals."""

    def __init__(self, scorer: Scorer, transitions: Chain) -> None:
        nothing = np.empty(0, np.int32)
        places = Places(*[nothing] * 5)
        arrays, self._sizes = _known(places, scorer, transitions, 0)
        self._listed, self._kept = listed(arrays, self._sizes)
        self._n_labels = scorer.n_labels
        is_bigram = transitions.order == 1 and self._sizes.n_tables == 1
        self._find = small_rows if is_bigram else small_rows_of_any_order
        self._has_marginals = transitions.scaled_moves.fit

    def find(
        self, feature_ids: Labels, numeric: npt.NDArray[np.uint8], offsets: Any, marginals: bool
    ) -> tuple[npt.NDArray[np.float32], Labels, Nodes] | None:
        """Scores, the best labels and, if they are wanted, marginals; None: not this way."""
        n_rows, n_tables, n_labels = len(numeric), self._sizes.n_tables, self._n_labels
        if not 0 < n_rows <= MAX_ROWS or n_rows * n_tables * n_labels > MAX_CELLS:
            return None
        if marginals and not self._has_marginals:
            return None
        scores = np.empty((n_rows, n_tables, n_labels), np.float32)
        labels = np.zeros(n_rows, np.int32)
        nodes = np.zeros((n_rows if marginals else 0, n_labels))
        left = self._find(self._listed, feature_ids, numeric, offsets, scores, labels, nodes)
        return (scores, labels, nodes) if left == 0 else None


class FirstRows:
    """A model that gives few rows their labels before any kernel is compiled."""

    def __init__(self, scorer: Scorer, transitions: Chain) -> None:
        self._scorer, self._steps = scorer, transitions.steps

    def find(
        self, feature_ids: Labels, numeric: npt.NDArray[np.uint8], offsets: Any
    ) -> tuple[npt.NDArray[np.float32], Labels] | None:
        """Scores and the best labels; None: not this way."""
        if not are_few(feature_ids, MAX_FIRST_ROWS):
            return None
        scorer = self._scorer
        linear = linear_scores_of_few(scorer.linear, feature_ids, numeric)
        trees, lags = scorer.trees, count_lags(offsets, scorer.order)
        scores = linear[:, None, :] + tree_scores_of_few(
            trees.postings, trees.contexts, lags, feature_ids, numeric, scorer.n_labels
        )
        return scores, labels_of_few(scores, offsets, self._steps)


def _known(
    places: Places, scorer: Scorer, transitions: Chain, first_bin: int
) -> tuple[ModelArrays, Sizes]:
    """The arrays of a model, and the numbers that kernels need beside them."""
    linear = scorer.linear
    if linear.is_zero:
        weights = np.zeros((0, scorer.n_labels), np.float32)
        bin_scores = np.zeros((scorer.n_numeric, N_BINS, scorer.n_labels), np.float32)
    else:
        weights, bin_scores = linear.categorical, linear.bin_scores
    arrays = ModelArrays(
        places=places,
        weights=weights,
        bin_scores=bin_scores,
        context_first=scorer.trees.contexts.first,
        postings=scorer.trees.postings,
        steps=transitions.steps,
        edges=transitions.scaled_moves.factors,
    )
    n_tables = scorer.n_labels**scorer.order
    return arrays, Sizes(n_tables, scorer.order, transitions.order, first_bin)


class QuickPredictor:
    """What a model knows, listed for kernels; calls change no state but their number.

    The first ones need no kernel, unless it is there already. Whatever it does not treat it leaves
    to the ordinary way, and says so by None: inputs that are large, not lists of lists of flat
    dicts, or wrong.
    """

    def __init__(self, columns: Columns, scorer: Scorer, transitions: Chain) -> None:
        self._columns, self._ids = columns, columns.item_ids
        self._first = first_rows(scorer, transitions)
        self._n_first = 0  # calls without kernels
        self._n_labels = scorer.n_labels
        first = first_bin(columns.nothing, 0)
        arrays, sizes = _known(columns.places, scorer, transitions, first)
        self._row_cells = sizes.n_tables * scorer.n_labels + len(columns.slot_keys)
        is_bigram = transitions.order == 1 and sizes.n_tables == 1
        self._find_labels = small_labels if is_bigram else small_labels_of_any_order
        self._has_marginals = transitions.scaled_moves.fit
        self._listed, self._kept = listed(arrays, sizes)

    def labels(self, X: Any, predictor: str) -> list[list[int]] | None:
        """Ids of the labels of each sequence, or None."""
        if predictor == "marginal":
            found = self._nodes(X)
            if found is None:
                return None
            return _cut(marginal_argmax(found[0]).tolist(), found[1])
        if (first := self._first_labels(X)) is not None:
            return first
        found_labels = self._run(X, self._find_labels, _no_labels)
        return None if found_labels is None else _cut(found_labels[0].tolist(), found_labels[1])

    def _first_labels(self, X: Any) -> list[list[int]] | None:
        """What `labels` returns, without kernels; None: it is not this way, or no longer."""
        if self._first is None or self._n_first >= QUICK_AFTER:
            return None
        if getattr(self._find_labels, "signatures", True):  # there already
            self._n_first = QUICK_AFTER
            return None
        try:
            if type(X) is not list or not 0 < sum(map(len, X)) <= MAX_FIRST_ROWS:
                return None
            offsets, feature_ids, numeric = encode_few(self._columns, X)
            found = self._first.find(feature_ids, numeric, offsets)
        except Exception:  # wrong or just unusual: the ordinary way knows
            return None
        self._n_first += 1
        return None if found is None else _cut(found[1].tolist(), offsets.tolist())

    def marginals(self, X: Any) -> list[list[list[float]]] | None:
        """P(y_t = k) for all k of each position of each sequence, or None."""
        found = self._nodes(X)
        return None if found is None else _cut(found[0].tolist(), found[1])

    def _nodes(self, X: Any) -> tuple[Nodes, list[int]] | None:
        if not self._has_marginals:
            return None
        return self._run(X, small_marginals, lambda n: np.zeros((n, self._n_labels)))

    def _run(
        self, X: Any, kernel: Callable[..., int], new: Callable[[int], Any]
    ) -> tuple[Any, list[int]] | None:
        """What a kernel writes for the rows of X, and where sequences begin; None: not this way."""
        try:
            if type(X) is not list or len(X) > MAX_ROWS:
                return None
            if len(X) == 1:
                items = X[0]
                offsets = [0, len(items)]
            else:
                offsets = [*accumulate(map(len, X), initial=0)]
                items = [*chain.from_iterable(X)] if offsets[-1] <= MAX_ROWS else None
            if type(items) is not list or not 0 < len(items) <= MAX_ROWS:
                return None
            if len(items) != offsets[-1]:  # a sequence that yields another number than its length
                return None
            if len(items) * self._row_cells > MAX_CELLS:
                return None
            ends, ids = self._ids.find(items)
            out = new(len(items))
            left = kernel(self._listed, ends, ids, np.array(offsets), out)
            return (out, offsets) if left == 0 else None
        except Exception:  # wrong or just unusual: the ordinary way knows
            return None


def quick_predictor(columns: Columns, scorer: Scorer, transitions: Chain) -> QuickPredictor | None:
    """A model prepared for short inputs, or None where its kind takes other steps."""
    if type(columns) is not Columns:  # attributes of CRFsuite are looked up in another way
        return None
    if columns.missing in IN_TREES or columns.missing == IMPUTATION:
        return None
    return QuickPredictor(columns, scorer, transitions) if _is_plain(scorer, transitions) else None


def quick_rows(scorer: Scorer, transitions: Chain) -> QuickRows | None:
    """A model prepared for few rows, or None where its kind takes other steps."""
    return QuickRows(scorer, transitions) if _is_plain(scorer, transitions) else None


def first_rows(scorer: Scorer, transitions: Chain) -> FirstRows | None:
    """A model prepared for few rows without kernels, or None where its kind takes other steps."""
    is_bigram = transitions.order == 1 and scorer.order <= 1
    return FirstRows(scorer, transitions) if is_bigram and _is_plain(scorer, transitions) else None


def _is_plain(scorer: Scorer, transitions: Chain) -> bool:
    """Whether small trees and exact inference are all that a model has."""
    trees = scorer.trees
    return not (trees.large.n_trees or trees.incomplete is not None or transitions.pruned)


def _no_labels(n: int) -> Labels:
    return np.zeros(n, np.int32)


def _cut(rows: list[Any], offsets: list[int]) -> list[list[Any]]:
    if len(offsets) == 2:
        return [rows]
    return [rows[a:b] for a, b in pairwise(offsets)]
