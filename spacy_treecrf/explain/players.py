"""Players: what the value of a tree is attributed to, and what users call it.

All tests of a column belong to one player: that the word is Rome and that it is not Paris are both
said of the word. Features that a row has several of, as those of a list, have no such column: each
of them is a player, present or not. A numeric column, a previous label and a detector are others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import MISSING_VALUE
from spacy_treecrf.engine.sequences import MISSING, MISSING_BIN, Sequences
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.shapley import NOBODY
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, NUMERIC
from spacy_treecrf.engine.wide_rows import GOES_ON
from spacy_treecrf.explain.explanation import END, START
from spacy_treecrf.explain.score_parts import ScoreParts

# The value of a column whose feature training did not see often enough, or that is not there.
OTHER_VALUE = "<other>"

Name = tuple[str, str]  # a feature as it is at a row, and its column


@dataclass(frozen=True)
class Row:
    """One row as features."""

    cells: npt.NDArray[np.int32]  # of all slots; a wide row's are joined
    bins: npt.NDArray[np.uint8]  # shape: (n_numeric,), those of detectors included
    labels: tuple[int, ...]  # previous labels, the nearest first; K is "before the start"

    @cached
    def features(self) -> npt.NDArray[np.int32]:
        """The ids of the row's features."""
        return self.cells[self.cells >= 0]


def row_of(data: Sequences, row: int, labels: tuple[int, ...] = ()) -> Row:
    """A row of sequences, after the previous labels."""
    return Row(cells_of(data, row), data.numeric[row], labels)


def cells_of(data: Sequences, row: int) -> npt.NDArray[np.int32]:
    """The cells of a row, also where it goes on in further rows of the table."""
    cells: npt.NDArray[np.int32] = data.feature_ids[row]
    if not len(cells) or cells[-1] > GOES_ON:
        return cells
    parts = []
    while cells[-1] <= GOES_ON:
        parts.append(cells[:-1])
        cells = data.feature_ids[GOES_ON - cells[-1]]
    return np.concatenate([*parts, cells])


class Players:
    """The players of a model's trees, by number.

    First columns, then numeric columns and detectors, then previous labels, then single features.
    """

    def __init__(self, parts: ScoreParts, labels: list[str]) -> None:
        self.parts = parts
        self.columns: Columns = parts.columns
        # The label lag positions away; what is beyond the sequence comes last.
        self.labels = [*labels, END if parts.right_to_left else START]
        n_keys = len(self.columns.slot_keys)
        self.first_numeric = len(self.columns.column_names)
        self.first_lag = self.first_numeric + len(self.columns.numeric_names) + len(parts.detectors)
        self.first_feature = self.first_lag + parts.context_order
        alone = self.columns.slot_range[:, 0] >= n_keys
        numbers = np.arange(len(alone), dtype=np.int32)
        self.of_feature = np.where(alone, self.first_feature + numbers, self.columns.column_of)

    @cached
    def _slot_of_column(self) -> dict[int, int]:
        columns = {name: c for c, name in enumerate(self.columns.column_names)}
        keys = enumerate(self.columns.slot_keys)
        return {columns[key]: slot for slot, key in keys if key in columns}

    def of_nodes(self, forest: Forest) -> npt.NDArray[np.int32]:
        """The player who decides each test. shape: (n_nodes,)"""
        player = np.full(len(forest.kind), NOBODY, np.int32)
        for kind, first in ((NUMERIC, self.first_numeric), (CONTEXT, self.first_lag)):
            own = forest.kind == kind
            player[own] = first + forest.feature[own]
        own = forest.kind == CATEGORICAL
        player[own] = self.of_feature[forest.feature[own]]
        return player

    def name(self, player: int, row: Row) -> Name:
        """What users call a player, with its value at a row."""
        if player >= self.first_feature:
            feature = player - self.first_feature
            name, column = self.feature_name(feature)
            return (name if feature in row.features else f"not {name}"), column
        if player >= self.first_lag:
            return self.label_name(player - self.first_lag, row)
        if player >= self.first_numeric:
            return self.numeric_name(player - self.first_numeric, row)
        column = self.columns.column_names[player]
        cell = int(row.cells[self._slot_of_column[player]])
        if cell >= 0:
            return self.columns.feature_names[cell], column
        return f"{column}={MISSING_VALUE if cell == MISSING else OTHER_VALUE}", column

    def feature_name(self, feature: int) -> Name:
        column = int(self.columns.column_of[feature])
        return self.columns.feature_names[feature], self.columns.column_names[column]

    def label_name(self, lag: int, row: Row) -> Name:
        sign = "+" if self.parts.right_to_left else "-"
        column = f"label[{sign}{lag + 1}]"
        return f"{column}={self.labels[row.labels[lag]]}", column

    def numeric_name(self, column: int, row: Row) -> Name:
        """A numeric column as the range that its bin stands for, or a detector in words."""
        n_own = len(self.columns.numeric_names)
        if column >= n_own:
            return self.parts.detector_names[column - n_own], f"detector {column - n_own + 1}"
        name, edges = self.columns.numeric_names[column], self.columns.bin_edges[column]
        at = int(row.bins[column])
        if at == MISSING_BIN:
            return f"{name}={MISSING_VALUE}", name
        # bin b holds values above edges[b - 2] up to edges[b - 1]
        low = f"{edges[at - 2]:g}<" if at >= 2 and len(edges) else ""
        high = f"<={edges[at - 1]:g}" if at - 1 < len(edges) else ""
        if low and not high:
            return f"{name}>{edges[at - 2]:g}", name
        return f"{low}{name}{high}", name
