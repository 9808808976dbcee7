"""Blocks of whole sequences, whose scores fit into memory together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Mask
from spacy_treecrf.engine.memm.beam_search import Beams
from spacy_treecrf.engine.sequences import Sequences, cut_sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import SequenceModel

# Added to the scores of labels that a mask rules out. Not -inf: where masks contradict hard
# constraints, the others must still have a best labelling.
RULED_OUT = -1e4

# Scores are made for so many sequences at a time as fit into this, and always for whole ones.
BLOCK_BYTES = 2**28
MAX_SEQUENCE_BYTES = 2**31

ScalarT = TypeVar("ScalarT", bound=np.generic)
Evidence = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Block:
    """Some sequences of a data set: their rows in it, what a search found, and their scores."""

    rows: slice
    data: Sequences
    beams: Beams | None
    scores: npt.NDArray[np.float32]

    def under(self, allowed: Mask) -> Block:
        """The same block where a further mask rules labels out."""
        twin = replace(self, scores=self.scores.copy())
        _rule_out(twin.scores, allowed[self.rows])
        return twin

    def with_evidence(self, evidence: Evidence) -> Block:
        """The same block where evidence (n_rows, n_labels) is added to the scores."""
        return replace(self, scores=self.scores + evidence[self.rows][:, None, :])


def scored_block(
    model: SequenceModel,
    workers: Workers,
    data: Sequences,
    chunk: tuple[int, int],
    masks: tuple[Mask, ...],
) -> Block:
    """The sequences first to last - 1 of a data set, scored by a model. chunk: (first, last)

    masks: uint8 (n_rows, n_labels) of the whole data set, 0 where a label is ruled out.
    """
    rows = data.rows_of(chunk)
    own = data.part(*chunk)
    masks = tuple(mask[rows] for mask in masks)
    beams = model.search(own, workers, masks[-1] if masks else None)
    scores = model.scores(own, workers) if beams is None else beams.scores
    for mask in masks:
        _rule_out(scores, mask)
    return Block(rows, own, beams, scores)


def blocks(offsets: npt.NDArray[np.int64], row_bytes: int) -> list[tuple[int, int]]:
    """Ranges of whole sequences whose rows take about BLOCK_BYTES together."""
    n_bytes = int(offsets[-1]) * row_bytes
    if len(offsets) > 1 and n_bytes < min(BLOCK_BYTES, MAX_SEQUENCE_BYTES):
        return [(0, len(offsets) - 1)]
    lengths = np.diff(offsets)
    n_rows = int(lengths.max(initial=0))
    if n_rows * row_bytes > MAX_SEQUENCE_BYTES:
        longest = int(lengths.argmax())
        raise ValueError(
            f"treecrf: sequence {longest} has {n_rows} positions, whose scores take "
            f"{n_rows * row_bytes / 2**30:.1f} GB ({row_bytes} bytes each), beyond the limit of "
            f"{MAX_SEQUENCE_BYTES / 2**30:.0f} GB; cut it, or train a model with a lower order"
        )
    return cut_sequences(offsets, most_rows(row_bytes))


def most_rows(row_bytes: int) -> int:
    """How many rows of a size fit into a block."""
    return max(1, BLOCK_BYTES // row_bytes)


def joined(parts: list[npt.NDArray[ScalarT]]) -> npt.NDArray[ScalarT]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _rule_out(scores: npt.NDArray[np.float32], allowed: Mask) -> None:
    """Lower the scores (n_rows, n_contexts, n_labels) of labels that are not allowed."""
    rows = np.flatnonzero(~allowed.all(axis=1))
    scores[rows] += np.where(allowed[rows], 0.0, RULED_OUT).astype(np.float32)[:, None, :]
