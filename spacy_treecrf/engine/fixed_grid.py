"""Learned values lie on a grid of 2**-16, so that sums of them in float32 are exact up to 256.

Scores are then bit for bit the same in whatever order trees and weights are added: cached over
rounds, by posting lists, by traversal, or anew by a loaded model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

GRID = 2.0**16


def to_grid(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """The values, each rounded to the nearest point of the grid."""
    return (np.rint(values.astype(np.float64) * GRID) / GRID).astype(np.float32)
