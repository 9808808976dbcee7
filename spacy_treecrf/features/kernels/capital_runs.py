"""Runs of capitalised words: where a document says "Bill Clinton", what "Clinton" is elsewhere.

A kernel finds the best run of each word in a document, then tells each token about that run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.features.kernels.repeats import (
    LOWER_CASE,
    NO_CASE,
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


class _Runs(NamedTuple):
    """The run that each token belongs to."""

    start: npt.NDArray[np.int64]  # shape: (n_tokens,), first token, or NOWHERE without a run
    end: npt.NDArray[np.int64]  # shape: (n_tokens,), past the last token, where there is a run


@kernel
def _is_capital(case: int) -> bool:
    """Whether a word of this case may be part of a run."""
    return case not in (NO_CASE, LOWER_CASE)


@kernel
def _find_runs(tokens: Tokens, heading: npt.NDArray[np.uint64]) -> _Runs:
    """The run of each capitalised token; sequences all in upper case have none."""
    offsets, words, table = tokens.offsets, tokens.words, tokens.table
    run_start = np.empty(len(words), np.int64)
    run_end = np.empty(len(words), np.int64)
    for s in range(len(offsets) - 1):
        t = offsets[s]
        stop = offsets[s + 1]
        while t < stop:
            run_start[t] = NOWHERE
            end = t
            while end < stop and _is_capital(table[words[end], 1]):
                end += 1
            is_run = heading[t] != UPPER_CASE and end - t <= LONGEST
            for u in range(t, end):
                run_start[u] = t if is_run else NOWHERE
                run_end[u] = end
            t = max(end, t + 1)
    return _Runs(run_start, run_end)


@kernel
def _rank(runs: _Runs, t: int) -> int:
    """How good the run of a token is: its length, up to LONG."""
    return 0 if t == NOWHERE else min(runs.end[t] - runs.start[t], LONG)


@kernel(inline="always")
def _note_run(runs: _Runs, t: int, word: int, best: npt.NDArray[np.int64]) -> None:
    """Note the token if it is the best place of its word, or the best one in another run."""
    rank = _rank(runs, t)
    if rank > _rank(runs, best[word, 0]):
        best[word, 1] = best[word, 0]
        best[word, 0] = t
    elif runs.start[t] != runs.start[best[word, 0]] and rank > _rank(runs, best[word, 1]):
        best[word, 1] = t


@kernel
def run_keys(
    tokens: Tokens,
    heading: npt.NDArray[np.uint64],
    best: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint64],
) -> None:
    """For each capitalised token, the longest run with its word in another place of the document.

    heading: row HEADING of `document_keys`, because sequences all in upper case have no runs.
    best: scratch, (n lower-case forms, 2) of NOWHERE; left so: a word's best place, and its best
        one in another run.
    out: (N_RUN_KEYS, n_tokens). FIRST, LAST: orth of the run's ends; BEFORE, AFTER: of the words
        around this one in the run, or EDGE; PLACE: 8 * length + index of the word. 0: no run.
    """
    orth, words, table = tokens.orth, tokens.words, tokens.table
    doc_offsets = tokens.doc_offsets
    runs = _find_runs(tokens, heading)
    run_start, run_end = runs
    for d in range(len(doc_offsets) - 1):
        start, stop = doc_offsets[d], doc_offsets[d + 1]
        for t in range(start, stop):
            if run_start[t] != NOWHERE:
                _note_run(runs, t, table[words[t], 0], best)
        for t in range(start, stop):
            for row in range(N_RUN_KEYS):
                out[row, t] = 0
            if not _is_capital(table[words[t], 1]):
                continue
            word = table[words[t], 0]
            where = best[word, 0]
            if where != NOWHERE and run_start[where] <= t < run_end[where]:
                where = best[word, 1]
            if where == NOWHERE:
                continue
            first, end = run_start[where], run_end[where]
            out[FIRST, t] = orth[first]
            out[LAST, t] = orth[end - 1]
            out[BEFORE, t] = orth[where - 1] if where > first else EDGE
            out[AFTER, t] = orth[where + 1] if where + 1 < end else EDGE
            out[PLACE, t] = 8 * (end - first) + where - first
        for t in range(start, stop):
            best[table[words[t], 0], 0] = NOWHERE
            best[table[words[t], 0], 1] = NOWHERE
