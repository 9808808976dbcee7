"""Previous labels as features of a row: what a locally normalised model is trained on.

P(y_t | y_{t-k..t-1}, x) is trained on the annotated labels, so that a row has one context, and its
previous labels are columns like any other: boosting is that of independent positions. For
prediction the tests of these features become tests of contexts, as in the joint family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS, Columns
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sequences import ABSENT, UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.trees.contexts import count_lags
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT
from spacy_treecrf.engine.wide_rows import take_rows


@dataclass(frozen=True)
class LabelHistory:
    """The last `order` labels as features, which come before all other features.

    Feature lag * (K + 1) + y says that the label lag + 1 positions back is y, where y = K means
    "before the start". The ids of all other features rise accordingly.
    """

    n_labels: int
    order: int

    @property
    def n_features(self) -> int:
        return self.order * (self.n_labels + 1)

    def columns(self, columns: Columns) -> Columns:
        """The columns with columns of the previous labels before them; these are never stored."""
        names = [f"label[-{lag + 1}]" for lag in range(self.order)]
        lags = np.repeat(np.arange(self.order, dtype=np.int32), self.n_labels + 1)
        # ids must fall in frequency: previous labels count as the most frequent
        most = int(columns.counts[0]) if len(columns.counts) else 1
        slots = np.minimum(columns.slot_range.astype(np.int64) + self.order, PAST_ALL_SLOTS)
        return replace(
            columns,
            feature_names=[f"{names[lag]}={y}" for lag, y in self._pairs()] + columns.feature_names,
            counts=np.concatenate([np.full(self.n_features, max(most, 2**31)), columns.counts]),
            column_of=np.concatenate([lags, columns.column_of + self.order]).astype(np.int32),
            slot_range=np.concatenate([np.stack([lags, lags + 1], axis=1), slots]).astype(np.int32),
            slot_keys=names + columns.slot_keys,
            column_names=names + columns.column_names,
        )

    def _pairs(self) -> list[tuple[int, int]]:
        return [(lag, y) for lag in range(self.order) for y in range(self.n_labels + 1)]

    def rows(self, data: Sequences) -> Sequences:
        """The rows with their annotated previous labels; a label that is not known is absent."""
        return replace(
            data,
            feature_ids=np.concatenate(
                [self._feature_ids(data), self.shifted(data.feature_ids)], axis=1
            ),
        )

    def shifted(self, feature_ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Features of rows by the ids they have after those of previous labels."""
        return np.where(
            feature_ids >= 0, feature_ids + np.int32(self.n_features), feature_ids
        ).astype(np.int32)

    def _feature_ids(self, data: Sequences) -> npt.NDArray[np.int32]:
        """The features of the annotated previous labels. shape: (n_rows + n_more, order)"""
        feature_ids = np.full((len(data.feature_ids), self.order), ABSENT, np.int32)
        lags = count_lags(data.offsets, self.order)
        for lag in range(self.order):
            before = np.full(data.n_rows, UNKNOWN_LABEL, np.int32)
            before[lag + 1 :] = data.labels[: max(0, data.n_rows - lag - 1)]
            before[lags <= lag] = self.n_labels
            known = before != UNKNOWN_LABEL
            feature_ids[: data.n_rows][known, lag] = lag * (self.n_labels + 1) + before[known]
        return feature_ids

    def as_contexts(self, forest: Forest) -> Forest:
        """The trees with tests of contexts for those of previous labels; other ids stay."""
        own = (forest.kind == CATEGORICAL) & (forest.feature < self.n_features)
        other = (forest.kind == CATEGORICAL) & ~own
        lag, label = np.divmod(forest.feature, self.n_labels + 1)
        feature = np.where(own, lag, forest.feature - np.where(other, self.n_features, 0))
        return replace(
            forest,
            kind=np.where(own, CONTEXT, forest.kind).astype(np.uint8),
            feature=feature.astype(np.int32),
            threshold=np.where(own, label, forest.threshold).astype(np.int32),
        )

    def tests(self, forest: Forest) -> npt.NDArray[np.bool_]:
        """Which trees test a previous label. shape: (n_trees,)"""
        own = (forest.kind == CATEGORICAL) & (forest.feature < self.n_features)
        tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_first))
        return np.bincount(tree_of[own], minlength=forest.n_trees) > 0


def reversal(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The row that takes the place of each row when every sequence is turned round."""
    lengths = np.diff(offsets)
    first_and_last = np.repeat(offsets[:-1] + offsets[1:] - 1, lengths)
    return first_and_last - np.arange(int(offsets[-1]))


def turned_round(data: Sequences) -> Sequences:
    """The sequences with their rows in the opposite order."""
    rows = reversal(data.offsets)
    return Sequences(
        data.offsets,
        take_rows(data.feature_ids, rows, data.n_rows),
        data.numeric[rows],
        data.labels[rows],
        data.weights[rows],
    )


@kernel
def normalise(scores: npt.NDArray[np.float32], lags: npt.NDArray[np.uint8]) -> None:
    """Turn scores (n_rows, n_contexts, n_labels) into log P(y | context), in place.

    Contexts that a row cannot have stay as they are.
    """
    n_rows, n_contexts, n_labels = scores.shape
    for row in range(n_rows):
        n_valid = min(n_contexts, n_labels ** np.int64(lags[row]))
        for c in range(n_valid):
            top = scores[row, c, 0]
            for y in range(1, n_labels):
                top = max(top, scores[row, c, y])
            total = 0.0
            for y in range(n_labels):
                total += np.exp(np.float64(scores[row, c, y] - top))
            log_z = np.float64(top) + np.log(total)
            for y in range(n_labels):
                scores[row, c, y] = np.float64(scores[row, c, y]) - log_z


@kernel
def turn_scores(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    order: int,
    out: npt.NDArray[np.float32],
) -> None:
    """Write scores of a right-to-left model as those of a left-to-right chain of the same order.

    scores: log P(y_t | the labels after t) of the rows turned round. A factor of the labels t to
    t + order is put where its last label is; factors that end with the sequence all belong to its
    last row.
    """
    n_labels = scores.shape[2]
    labels = np.empty(order + 1, np.int64)  # labels[i]: of position s - i
    for q in range(len(offsets) - 1):
        begin = offsets[q]
        length = offsets[q + 1] - begin
        for s in range(length):
            first = s - order
            last = s - order
            if s == length - 1:
                first = max(0, first)
                last = s
            for c in range(n_labels ** min(s, order)):
                rest = c
                for i in range(1, order + 1):
                    labels[i] = rest % n_labels
                    rest //= n_labels
                for y in range(n_labels):
                    labels[0] = y
                    total = 0.0
                    if first >= 0:
                        for t in range(first, last + 1):
                            # the context of t: labels of t + 1, t + 2, ... up to the end
                            context = 0
                            for j in range(min(order, length - 1 - t), 0, -1):
                                context = context * n_labels + labels[s - t - j]
                            total += scores[begin + length - 1 - t, context, labels[s - t]]
                    out[begin + s, c, y] = total
