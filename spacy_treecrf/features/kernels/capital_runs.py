"""Runs of capitalised words: where a document says "Bill Clinton", what "Clinton" is elsewhere.

A kernel finds the best run of each word in a document, then tells each token about that run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.features.kernels.repeats import (
    LOWER_CASE,
    NOWHERE,
    UPPER_CASE,
    Tokens,
)

# Rows of what `run_keys` writes.
FIRST, LAST, BEFORE, AFTER, PLACE = range(5)
N_RUN_KEYS = 5
EDGE = np.uint64(1)  # BEFORE, AFTER: the word begins, ends the run
LONGEST = 6  # longer runs are lists or headings
LONG = 4  # of runs as long as this one, the first in the document counts


Runs = npt.NDArray[np.int64]  # shape: (n_tokens, 2), first token, or NOWHERE, and past the last


@step
def _rank(runs: Runs, t: int) -> int:
    """How good the run of a token is: its length, up to LONG."""
    if t == NOWHERE:
        return 0
    length = runs[t, 1] - runs[t, 0]
    return length if length < LONG else LONG


@step
def _find_runs(tokens: Tokens, heading: npt.NDArray[np.uint64], runs: Runs) -> None:
    """Write the run of each capitalised token; sequences all in upper case have none."""
    offsets, words, table = tokens.offsets, tokens.words, tokens.table
    for s in range(len(offsets) - 1):
        t = offsets[s]
        stop = offsets[s + 1]
        while t < stop:
            runs[t, 0] = NOWHERE
            end = t
            while end < stop and table[words[end], 1] > LOWER_CASE:
                end += 1
            is_run = heading[t] != UPPER_CASE and end - t <= LONGEST
            for u in range(t, end):
                runs[u, 0] = t if is_run else NOWHERE
                runs[u, 1] = end
            t = end if end > t else t + 1


@kernel
def run_keys(
    tokens: Tokens,
    heading: npt.NDArray[np.uint64],
    best: npt.NDArray[np.int64],
    runs: Runs,
    out: npt.NDArray[np.uint64],
) -> None:
    """For each capitalised token, the longest run with its word in another place of the document.

    heading: of `find_headings`, because sequences all in upper case have no runs.
    best: scratch, (n lower-case forms, 2) of NOWHERE; left so: a word's best place, and its best
        one in another run.
    runs: scratch, of any values.
    out: (N_RUN_KEYS, n_tokens). FIRST, LAST: orth of the run's ends; BEFORE, AFTER: of the words
        around this one in the run, or EDGE; PLACE: 8 * length + index of the word. 0: no run.
    """
    orth, words, table = tokens.orth, tokens.words, tokens.table
    doc_offsets = tokens.doc_offsets
    _find_runs(tokens, heading, runs)
    for d in range(len(doc_offsets) - 1):
        start, stop = doc_offsets[d], doc_offsets[d + 1]
        for t in range(start, stop):
            if runs[t, 0] != NOWHERE:
                word = table[words[t], 0]
                rank = _rank(runs, t)
                if rank > _rank(runs, best[word, 0]):
                    best[word, 1] = best[word, 0]
                    best[word, 0] = t
                elif runs[t, 0] != runs[best[word, 0], 0] and rank > _rank(runs, best[word, 1]):
                    best[word, 1] = t
        for t in range(start, stop):
            for row in range(N_RUN_KEYS):
                out[row, t] = 0
            if table[words[t], 1] <= LOWER_CASE:  # or NO_CASE
                continue
            word = table[words[t], 0]
            where = best[word, 0]
            if where != NOWHERE and runs[where, 0] <= t < runs[where, 1]:
                where = best[word, 1]
            if where == NOWHERE:
                continue
            first, end = runs[where, 0], runs[where, 1]
            out[FIRST, t] = orth[first]
            out[LAST, t] = orth[end - 1]
            out[BEFORE, t] = orth[where - 1] if where > first else EDGE
            out[AFTER, t] = orth[where + 1] if where + 1 < end else EDGE
            out[PLACE, t] = 8 * (end - first) + where - first
        for t in range(start, stop):
            best[table[words[t], 0], 0] = NOWHERE
            best[table[words[t], 0], 1] = NOWHERE
