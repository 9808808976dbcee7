"""One round of trees: a tree for each gradient, over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.contexts import NO_CONTEXTS
from spacy_treecrf.engine.entries import collect
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.grower import Limits, Tree, TreeInput, grow_tree
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers

LEAST_GAIN = 1e-9  # what rounding may fake

Gradient = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]  # g and h: (n_rows, 1)


def independent_rows(data: Sequences, columns: Columns, min_rows: int) -> TreeInput:
    """What trees are grown on where rows have no contexts. min_rows: of a feature to be tested."""
    n_tested = int(np.searchsorted(-columns.counts, -min_rows, side="right"))
    return TreeInput(
        data.codes,
        np.ascontiguousarray(data.codes.T),
        data.numeric,
        n_tested,
        columns.slot_range,
        columns.column_of,
        len(columns.column_names),
        np.zeros(data.n_rows, np.uint8),
        NO_CONTEXTS.first,
        NO_CONTEXTS.labels,
        1,
    )


def grow_trees(
    rows: TreeInput,
    gradients: Sequence[Gradient],
    limits: Limits,
    trim: float,
    subsample: float,
    seed: np.uint64,
    workers: Workers,
) -> list[Tree]:
    def grow(i: int) -> Tree:
        g, h = gradients[i]
        entries = collect(g, h, rows.lags, rows.n_labels, trim, subsample, seed)
        tree: Tree = grow_tree(rows, entries, limits, np.uint64(mix(seed, np.uint64(i))))
        return tree

    return workers.map(grow, range(len(gradients)))


def stepped(forest: Forest, step: float, limit: float) -> Forest:
    """The trees times a step; no value leaves the limit, whatever range the step is from."""
    scaled = forest.scaled(step)
    return replace(scaled, value=np.clip(scaled.value, -limit, limit))
