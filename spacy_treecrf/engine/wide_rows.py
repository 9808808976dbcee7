"""Rows that hold more features than most: they go on in further rows of the table.

A table of feature ids is as wide as suits most of its rows. A wider row goes on in a row behind
those of all sequences, which may go on as well; the last cell of such a row tells where. So rows
cost what they hold, and tables whose rows all fit are as they would be without this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

# A last cell of GOES_ON - i: the row goes on in row i. It is far below the marks of missing values.
GOES_ON = -(2**30)
NOWHERE = -1
ROW_CELLS = 8  # the least for shared features, so that rows which go on do so in large steps
LARGE = 2**24  # cells: smaller tables stay as wide as their widest row
LOOSE = 4  # cells for each that the best width takes


@step
def next_row(feature_ids: Ids, row: int) -> int:
    """Return the row where a row goes on, or NOWHERE."""
    n_slots = feature_ids.shape[1]
    if n_slots == 0:
        return NOWHERE
    last = np.int64(feature_ids[row, n_slots - 1])
    return int(GOES_ON - last) if last <= GOES_ON else NOWHERE


def take_rows(feature_ids: Ids, rows: Ints | slice, n_rows: int) -> Ids:
    """The given rows of a table, in their order, and behind them those where they go on.

    n_rows: How many rows of the table begin a row of a sequence.
    """
    taken = feature_ids[rows]
    if len(feature_ids) == n_rows:
        return taken
    parts, n = [taken.copy()], len(taken)
    while (ongoing := parts[-1][:, -1] <= GOES_ON).any():
        following = GOES_ON - parts[-1][ongoing, -1]
        parts[-1][ongoing, -1] = GOES_ON - np.arange(n, n + len(following))
        parts.append(feature_ids[following])
        n += len(following)
    return np.concatenate(parts)


def suitable_width(widths: Ints, n_other: int) -> int:
    """How many shared cells rows should have that hold `widths` each. shape: (n_rows,)

    n_other: Cells that every row has beside them. The widest row decides, unless the table would be
    large and more than LOOSE times as large as that of the best width.
    """
    widest = int(widths.max(initial=0))
    n_rows = len(widths)
    if n_rows * (widest + n_other) <= LARGE:
        return widest
    width = np.arange(ROW_CELLS, max(widest, ROW_CELLS) + 1)
    counts = np.bincount(np.maximum(widths, ROW_CELLS))
    wider = n_rows - np.cumsum(counts)[ROW_CELLS:]  # rows wider than each width
    beyond = np.cumsum(wider[::-1])[::-1]  # what they hold beyond it
    # A row that goes on takes about a row more than that.
    cells = (n_rows + wider) * (width + n_other) + beyond
    best = int(cells.argmin())
    return int(width[best]) if cells[best] * LOOSE < n_rows * (widest + n_other) else widest


def lay_out(
    feature_ids: Ids, rows: Ints, ids: npt.NDArray[np.int64], n_keys: int, n_more: int
) -> Ids:
    """Write shared features into their rows; returns the rows where wider ones go on.

    rows, ids: Pairs of a row and what it holds, in the order of rows.
    n_keys: The slots before the shared ones.
    n_more: How many rows that others go on in there are already, behind those of the table.
    """
    n_slots = feature_ids.shape[1]
    n_shared = n_slots - n_keys
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    held = np.diff(np.append(first, len(rows)))
    place = np.arange(len(rows)) - np.repeat(first, held)
    too_wide = held > n_shared
    if not too_wide.any():
        feature_ids[rows, n_keys + place] = ids
        return np.empty((0, n_slots), np.int32)
    room = np.where(too_wide, n_shared - 1, n_shared)
    inside = place < np.repeat(room, held)
    feature_ids[rows[inside], n_keys + place[inside]] = ids[inside]
    # A row of the rest has a cell for where it goes on, but for the last one of each.
    rest = held[too_wide] - room[too_wide]
    n_parts = np.maximum(1, -(-(rest - 1) // (n_slots - 1)))
    begin = np.cumsum(n_parts) - n_parts
    more = np.full((int(n_parts.sum()), n_slots), -1, np.int32)
    where = len(feature_ids) + n_more + np.arange(len(more))
    feature_ids[rows[first[too_wide]], -1] = GOES_ON - where[begin]
    more[:-1, -1] = GOES_ON - where[1:]
    more[begin + n_parts - 1, -1] = -1
    at = np.arange(int(rest.sum())) - np.repeat(np.cumsum(rest) - rest, rest)
    part = np.minimum(at // (n_slots - 1), np.repeat(n_parts - 1, rest))
    more[np.repeat(begin, rest) + part, at - part * (n_slots - 1)] = ids[~inside]
    return more
