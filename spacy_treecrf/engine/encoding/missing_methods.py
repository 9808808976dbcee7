"""Missing values: how they may be treated, and how encoded rows mark them.

A value is missing where a feature is None or NaN, and where a numeric column has no number. Three
treatments are part of the encoding, so that trees see complete rows:

"absent": no test holds: as if the feature was not mentioned; a missing number is below all others.
"imputation": the most common value of the training column, the median for numbers.
"indicator": missing is a value of its own, of numbers the lowest one.

The others mark the cell, and trees decide (Hao 2009, chapter 4):

"instance_weighting": a row goes to both children, with the weights n_left / n and n_right / n of
the rows whose value is known; a prediction is the average (C4.5).
"surrogate": other tests that agree best with the missing one decide in its stead (CART).

In linear rounds a marked or absent cell adds nothing: to a missing number that is the score of the
column's mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # settings name the methods, and are read without numpy
    import numpy as np
    import numpy.typing as npt

ABSENT_METHOD = "absent"
INSTANCE_WEIGHTING = "instance_weighting"
SURROGATE = "surrogate"
IMPUTATION = "imputation"
INDICATOR = "indicator"
METHODS = (ABSENT_METHOD, INSTANCE_WEIGHTING, SURROGATE, IMPUTATION, INDICATOR)
# Methods that leave missing values to the trees.
IN_TREES = (INSTANCE_WEIGHTING, SURROGATE)

# What "indicator" makes of a missing value: {"word": None} becomes {"word": "<missing>"}.
MISSING_VALUE = "<missing>"


class ColumnMap(NamedTuple):
    """The column that each feature and slot belongs to; numeric d is column n_columns + d."""

    column_of: npt.NDArray[np.int32]  # shape: (n_features,)
    slot_column: npt.NDArray[np.int32]  # shape: (n_own_slots,), of MISSING in a slot; -1: none
    n_columns: int


class Incomplete(NamedTuple):
    """A treatment of missing values that is left to the trees."""

    columns: ColumnMap
    averages: bool  # instance weighting, else surrogates


def in_trees(method: str, columns: ColumnMap) -> Incomplete | None:
    """What trees have to know of the method; None if they have nothing to do with it."""
    return Incomplete(columns, method == INSTANCE_WEIGHTING) if method in IN_TREES else None
