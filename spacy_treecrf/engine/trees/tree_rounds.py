"""One round of trees: a tree for each class, all of them over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import NO_CONTEXTS, Contexts
from spacy_treecrf.engine.trees.drawn_slots import grow_on_drawn_columns
from spacy_treecrf.engine.trees.entries import EntryDraw, collect_in
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits

LEAST_GAIN = 1e-9  # what rounding may fake

# g and h, the negative gradient and the bound of its curvature: each (n_rows, n_contexts)
Gradient = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
GrowTree = Callable[[TreeInput, Entries, TreeLimits, np.uint64], Tree]


class TreeSettings(Protocol):
    """Settings that decide how a round of trees is grown."""

    @property
    def leaves(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def min_rows(self) -> int: ...
    @property
    def penalty(self) -> float: ...
    @property
    def min_gain(self) -> float: ...
    @property
    def trim(self) -> float: ...
    @property
    def subsample(self) -> float: ...
    @property
    def colsample(self) -> float: ...
    @property
    def node_colsample(self) -> float: ...


def tree_input(
    data: Sequences,
    columns: Columns,
    min_rows: int,
    lags: npt.NDArray[np.uint8] | None = None,
    contexts: Contexts = NO_CONTEXTS,
    n_labels: int = 1,
    storage: RowStorage = IN_MEMORY,
) -> TreeInput:
    """What the trees of all rounds are grown on. min_rows: rows that a feature needs to be tested.

    lags, contexts, n_labels: the previous labels that trees may test, by default none.
    """
    return TreeInput(
        data.feature_ids,
        storage.transposed(data.feature_ids),
        data.numeric,
        int(np.searchsorted(-columns.counts, -min_rows, side="right")),
        columns.slot_range,
        columns.column_of,
        len(columns.column_names),
        np.zeros(data.n_rows, np.uint8) if lags is None else lags,
        contexts.first,
        contexts.labels,
        n_labels,
    )


def tree_limits(settings: TreeSettings) -> TreeLimits:
    return TreeLimits(
        settings.leaves,
        settings.depth,
        settings.min_rows,
        settings.penalty,
        max(settings.min_gain, LEAST_GAIN),
        settings.colsample,
        settings.node_colsample,
    )


def round_seed(seed: int, *items: int) -> np.uint64:
    """The seed of a round (and of a part of it), drawn from that of the settings."""
    drawn = np.uint64(seed)
    for item in items:
        # numba hands back a Python int, which it would read as int64
        drawn = np.uint64(mix(drawn, np.uint64(item)))
    return drawn


def grow_trees(
    rows: TreeInput,
    gradient_of: Callable[[int], Gradient],
    classes: Sequence[int],
    settings: TreeSettings,
    seed: np.uint64,
    workers: Workers,
    grow: GrowTree = grow_on_drawn_columns,
) -> list[Tree]:
    """A tree for each class, fitted to the gradient of the class.

    seed: of the round. The i-th tree draws by it and i. grow: makes one tree of its entries.
    """
    limits, draw = tree_limits(settings), EntryDraw(settings.trim, settings.subsample, seed)

    def tree_of(i: int) -> Tree:
        g, h = gradient_of(classes[i])
        entries = collect_in(workers.storage, g, h, rows.lags, rows.n_labels, draw)
        return grow(rows, entries, limits, np.uint64(mix(seed, np.uint64(i))))

    return workers.map(tree_of, range(len(classes)))


def stepped(forest: Forest, step: float, limit: float) -> Forest:
    """The trees times a step; no value leaves the limit, whatever range the step is from."""
    scaled = forest.scaled(step)
    return replace(scaled, value=np.clip(scaled.value, -limit, limit))
