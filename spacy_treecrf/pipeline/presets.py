"""Labels that are on docs already and must stay: as scores for a chain, as a mask for a search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Added to the scores of labels that a preset annotation rules out. Not -inf: where presets
# contradict each other, the others must still have a best labelling.
RULED_OUT = -1e4


def rule_out(scores: npt.NDArray[np.float32], rows: list[int], kept: list[int]) -> None:
    """Change scores (n_rows, n_contexts, n_labels): these rows keep these labels."""
    for row, label in zip(rows, kept, strict=True):
        before = scores[row, :, label].copy()
        scores[row] += np.float32(RULED_OUT)
        scores[row, :, label] = before


def allowed_by(
    rows: list[int], kept: list[int], n_rows: int, n_labels: int
) -> npt.NDArray[np.uint8] | None:
    """The same as a mask of labels; None if nothing is ruled out."""
    if not rows:
        return None
    allowed = np.ones((n_rows, n_labels), np.uint8)
    allowed[rows] = 0
    allowed[rows, kept] = 1
    return allowed
