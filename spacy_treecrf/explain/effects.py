"""Interventions: a feature is taken away or replaced, and the chain runs again.

All interventions of all explained positions are scored as one block of rows. Where a row's scores
depend on no other row, only the changed rows are, and messages of the chain give probabilities;
otherwise whole sequences are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Mask
from spacy_treecrf.engine.encoding.missing_methods import IMPUTATION
from spacy_treecrf.engine.sequences import ABSENT, MISSING_BIN, Sequences
from spacy_treecrf.explain.messages import Messages
from spacy_treecrf.explain.players import Name, Players, Row, cells_of
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.models.scored_blocks import RULED_OUT, Evidence

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Intervention:
    """A row with one feature changed."""

    name: Name  # of the feature as it was, and of its column
    replaced_by: str | None
    cells: npt.NDArray[np.int32]
    bins: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ChangedPosition:
    """A position of a data set and what is to be changed there."""

    row: int
    sequence: int
    interventions: Sequence[Intervention]


def removals(players: Players, row: Row, n_numeric: int) -> list[Intervention]:
    """Every feature of a row taken away. n_numeric: numeric columns without detectors."""
    found = []
    bins = row.bins[:n_numeric]
    for cell in np.flatnonzero(row.cells >= 0).tolist():
        cells = row.cells.copy()
        cells[cell] = ABSENT
        name = players.feature_name(int(row.cells[cell]))
        found.append(Intervention(name, None, cells, bins))
    columns = players.columns
    imputed = columns.imputed_bins if columns.missing == IMPUTATION else None
    for column in np.flatnonzero(bins != MISSING_BIN).tolist():
        without = bins.copy()
        without[column] = MISSING_BIN if imputed is None else imputed[column]
        found.append(Intervention(players.numeric_name(column, row), None, row.cells, without))
    return found


def probabilities_after(
    predictor: Predictor,
    data: Sequences,
    changed: Sequence[ChangedPosition],
    messages: dict[int, Messages],
    context_order: int,
    allowed: Mask | None,
    evidence: Evidence | None,
) -> list[Doubles]:
    """P(label) at each changed position after each of its interventions. shapes: (n, n_labels)

    messages: Of the sequences, where a row's scores depend on its own features alone; empty where
    whole sequences have to be scored. context_order: How many previous labels trees look at.
    evidence: What is added to scores (n_rows, n_labels), whatever a feature is.
    """
    changed_rows = [one for one in changed if one.interventions]
    if not changed_rows:
        return [np.zeros((0, len(predictor.model.labels))) for _ in changed]
    block, rows, at = _block(data, changed_rows, context_order if messages else None)
    if not messages:
        scored = predictor.apply(block, None if allowed is None else allowed[rows])
        if evidence is not None:
            scored = scored.with_evidence(evidence[rows])
        return _dealt(scored.marginals()[at], changed)
    scores = predictor.model.scores(block, predictor.workers)[at]
    found = []
    first = 0
    for one in changed:
        last = first + len(one.interventions)
        own = scores[first:last]
        if allowed is not None:
            own = own + np.where(allowed[one.row], 0.0, RULED_OUT).astype(np.float32)
        if evidence is not None:
            own = own + evidence[one.row]
        t = one.row - int(data.offsets[one.sequence])
        found.append(messages[one.sequence].probabilities(t, own))
        first = last
    return found


def _dealt(nodes: Doubles, changed: Sequence[ChangedPosition]) -> list[Doubles]:
    """Rows (n, n_labels) of all interventions, position by position."""
    ends = np.cumsum([len(one.interventions) for one in changed])
    return np.split(nodes, ends[:-1])


def _block(
    data: Sequences,
    changed: Sequence[ChangedPosition],
    context_order: int | None,
) -> tuple[Sequences, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A sequence for each intervention, the rows of data that it is made of, and its changed row.

    context_order: How many rows before a changed one are needed; None: the whole sequence is.
    """
    ids, bins, rows, lengths, at = [], [], [], [], []
    n_rows = 0
    for one in changed:
        first, last = data.offsets[one.sequence : one.sequence + 2].tolist()
        if context_order is not None:
            first, last = max(first, one.row - context_order), one.row + 1
        around = [cells_of(data, row) for row in range(first, last)]
        place = one.row - first
        for change in one.interventions:
            ids += [*around[:place], change.cells, *around[place + 1 :]]
            changed_bins = data.numeric[first:last].copy()
            changed_bins[place] = change.bins
            bins.append(changed_bins)
            rows.append(np.arange(first, last))
            lengths.append(last - first)
            at.append(n_rows + place)
            n_rows += last - first
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    block = Sequences.unlabelled(offsets, _table(ids), np.concatenate(bins))
    return block, np.concatenate(rows), np.array(at)


def _table(rows: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    """Rows of cells as a table that is as wide as the widest of them."""
    width = max(map(len, rows))
    if all(len(row) == width for row in rows):
        return np.stack(rows)
    table = np.full((len(rows), width), ABSENT, np.int32)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
