"""Rows that hold more features than most: they go on in further rows of the table.

A table of feature ids is as wide as suits most of its rows. A wider row goes on in a row behind
those of all sequences, which may go on as well; the last cell of such a row tells where. So rows
cost what they hold, and tables whose rows all fit are as they would be without this.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

# A last cell of GOES_ON - i: the row goes on in row i. It is far below the marks of missing values.
GOES_ON = -(2**30)
ROW_CELLS = 8  # the least for shared features, so that rows which go on do so in large steps
LARGE = 2**24  # cells: smaller tables stay as wide as their widest row
LOOSE = 4  # cells for each that the best width takes


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


def join_tables(
    tables: list[Ids], n_rows: list[int], absent: int, storage: RowStorage = IN_MEMORY
) -> Ids:
    """The rows of all tables, and behind them those where they go on.

    n_rows: How many rows of each table begin a row of a sequence. absent: What an empty cell holds.
    """
    width = max(table.shape[1] for table in tables)
    joined = storage.empty((sum(map(len, tables)), width), np.int32)
    joined[:] = absent
    first, behind = 0, sum(n_rows)
    for table, n in zip(tables, n_rows, strict=True):
        at = np.concatenate([first + np.arange(n), behind + np.arange(len(table) - n)])
        joined[at, : table.shape[1]] = table
        if len(table) > n:
            ongoing = table[:, -1] <= GOES_ON
            joined[at[ongoing], table.shape[1] - 1] = absent
            joined[at[ongoing], -1] = GOES_ON - at[GOES_ON - table[ongoing, -1]]
        first, behind = first + n, behind + len(table) - n
    return joined


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


def is_loose(ends: Ints, n_other: int) -> bool:
    """Whether a table as wide as the widest row would be much larger than it need be.

    ends: What all rows before each row hold together, and at last all of them. (n_rows + 1,)
    """
    if (len(ends) - 1) * (int(ends[-1]) + n_other) <= LARGE:  # no row holds more than all
        return False
    widths = np.diff(ends)
    return suitable_width(widths, n_other) < int(widths.max(initial=0))


def rows_behind(widths: Ints, n_shared: int, n_slots: int) -> int:
    """How many rows behind those of all sequences it takes for rows that hold `widths` each.

    n_shared: The last slots of a row, which it has for what is counted; n_slots: all of them. A row
    that goes on gives its last slot to where.
    """
    rest = widths[widths > n_shared] - (n_shared - 1)
    return int(np.maximum(1, -(-(rest - 1) // (n_slots - 1))).sum())
