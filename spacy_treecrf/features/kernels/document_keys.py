"""The keys of all document columns of few tokens, by one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import carray, pointer_to
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.listed_arrays import int32_table, int32s, int64_table, uint64s
from spacy_treecrf.features.kernels.capital_runs import N_RUN_KEYS, run_keys
from spacy_treecrf.features.kernels.key_table import EMPTY, find_place
from spacy_treecrf.features.kernels.repeats import N_KEYS, Tokens, find_headings, repeat_keys

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

# Rows of what `document_keys` writes: those of `repeat_keys`, those of `run_keys`, and these.
HEADING = N_KEYS + N_RUN_KEYS
OPENING = HEADING + 1
N_DOCUMENT_KEYS = OPENING + 1
UNKNOWN = -1
KEY_BYTES = 8

# Rows of the list: what a table of words has, then scratch of `repeat_keys` and `run_keys`.
TABLE_KEYS, TABLE_ROWS, TABLE, COUNTS, FIRST, BEST = range(6)


@step
def _rows(keys: Keys, first: int, n: int) -> Keys:
    """Return some rows of keys; slices take long to compile."""
    n_tokens = keys.shape[1]
    address = np.int64(keys.ctypes.data) + KEY_BYTES * n_tokens * first
    found: Keys = carray(pointer_to(address), (n, n_tokens), np.uint64)
    return found


@kernel
def document_keys(
    listed: Ints, orth: Keys, offsets: Ints, doc_offsets: Ints, most_repeats: int, keys: Keys
) -> int:
    """Write all keys; returns a bit for each row of keys (N_DOCUMENT_KEYS, n_tokens) that has any.

    Where the table does not have a word, it returns UNKNOWN. Scratch is left as it was.
    """
    n_tokens = len(orth)
    table_keys, table_rows = uint64s(listed, TABLE_KEYS), int32s(listed, TABLE_ROWS)
    words = np.empty(n_tokens, np.int32)
    for t in range(n_tokens):
        words[t] = table_rows[find_place(table_keys, table_rows, orth[t])]
        if words[t] == EMPTY:
            return UNKNOWN
    tokens = Tokens(orth, words, int32_table(listed, TABLE), offsets, doc_offsets)
    bounds = np.empty((n_tokens, 2), np.int64)
    heading = keys[HEADING]
    find_headings(tokens, bounds, heading)
    counts, first = int32_table(listed, COUNTS), int64_table(listed, FIRST)
    repeat_keys(tokens, bounds, counts, first, most_repeats, _rows(keys, 0, N_KEYS))
    runs = np.empty((n_tokens, 2), np.int64)
    best = int64_table(listed, BEST)
    run_keys(tokens, heading, best, runs, _rows(keys, N_KEYS, N_RUN_KEYS))
    for d in range(len(doc_offsets) - 1):
        for t in range(doc_offsets[d], doc_offsets[d + 1]):
            keys[OPENING, t] = orth[doc_offsets[d]]
    found = 0
    for row in range(N_DOCUMENT_KEYS):
        for t in range(n_tokens):
            if keys[row, t] != 0:
                found |= 1 << row
                break
    return found
