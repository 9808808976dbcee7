"""The keys of all document columns of few tokens, by one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.features.kernels.capital_runs import N_RUN_KEYS, run_keys
from spacy_treecrf.features.kernels.repeats import N_KEYS, Tokens, find_headings, repeat_keys

Keys = npt.NDArray[np.uint64]

# Rows of what `document_keys` writes: those of `repeat_keys`, those of `run_keys`, and these.
HEADING = N_KEYS + N_RUN_KEYS
OPENING = HEADING + 1
N_DOCUMENT_KEYS = OPENING + 1


@kernel
def document_keys(
    orth: npt.NDArray[np.uint64],
    words: npt.NDArray[np.int32],
    table: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    doc_offsets: npt.NDArray[np.int64],
    scratch: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]],
    most_repeats: int,
    out: tuple[Keys, Keys, Keys, Keys, Keys],
) -> int:
    """Write all keys; returns a bit for each row of keys (N_DOCUMENT_KEYS, n_tokens) that has any.

    The first arrays are those of `Tokens`. scratch: counts and first places of `repeat_keys`, and
    the best places of `run_keys`; left as they were. out: All keys, and parts of the same array:
    those of `repeat_keys`, of `run_keys`, HEADING and OPENING. Slices take long to compile.
    """
    tokens = Tokens(orth, words, table, offsets, doc_offsets)
    keys, repeats, run_parts, heading, opening = out
    n_tokens = len(orth)
    bounds = np.empty((n_tokens, 2), np.int64)
    find_headings(tokens, bounds, heading)
    counts, first, best = scratch
    repeat_keys(tokens, bounds, counts, first, most_repeats, repeats)
    runs = np.empty((n_tokens, 2), np.int64)
    run_keys(tokens, heading, best, runs, run_parts)
    for d in range(len(doc_offsets) - 1):
        for t in range(doc_offsets[d], doc_offsets[d + 1]):
            opening[t] = orth[doc_offsets[d]]
    found = 0
    for row in range(N_DOCUMENT_KEYS):
        for t in range(n_tokens):
            if keys[row, t] != 0:
                found |= 1 << row
                break
    return found
