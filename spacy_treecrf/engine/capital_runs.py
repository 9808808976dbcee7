"""Runs of capitalised words: where a document says "Bill Clinton", what "Clinton" is elsewhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.repeats import LOWER_CASE, NO_CASE, NOWHERE, UPPER_CASE

# Rows of what `run_keys` writes.
FIRST, LAST, BEFORE, AFTER, PLACE = range(5)
N_RUN_KEYS = 5
EDGE = np.uint64(1)  # BEFORE, AFTER: the word begins, ends the run
LONGEST = 6  # longer runs are lists or headings
LONG = 4  # of runs as long as this one, the first in the document counts


@njit(nogil=True, cache=True)
def run_keys(
    orth: npt.NDArray[np.uint64],
    words: npt.NDArray[np.int32],
    table: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    doc_offsets: npt.NDArray[np.int64],
    heading: npt.NDArray[np.uint64],
    best: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint64],
) -> None:
    """For each capitalised token, the longest run with its word in another place of the document.

    words, table: as for `document_keys`; heading: its row HEADING, because sequences all in upper
    case have no runs. best: scratch, (n lower-case forms, 2) of NOWHERE; left so: a word's best
    place, and its best one in another run.
    out: (N_RUN_KEYS, n_tokens). FIRST, LAST: orth of the run's ends; BEFORE, AFTER: of the words
        around this one in the run, or EDGE; PLACE: 8 * length + index of the word. 0: no run.
    """
    n_tokens = len(orth)
    run_start = np.empty(n_tokens, np.int64)
    run_end = np.empty(n_tokens, np.int64)
    for s in range(len(offsets) - 1):
        t = offsets[s]
        while t < offsets[s + 1]:
            run_start[t] = NOWHERE
            end = t
            while end < offsets[s + 1] and _is_capital(table[words[end], 1]):
                end += 1
            is_run = heading[t] != UPPER_CASE and end - t <= LONGEST
            for u in range(t, end):
                run_start[u] = t if is_run else NOWHERE
                run_end[u] = end
            t = max(end, t + 1)
    for d in range(len(doc_offsets) - 1):
        start, stop = doc_offsets[d], doc_offsets[d + 1]
        for t in range(start, stop):
            if run_start[t] == NOWHERE:
                continue
            word = table[words[t], 0]
            length = _rank(run_start, run_end, t)
            if length > _rank(run_start, run_end, best[word, 0]):
                best[word, 1] = best[word, 0]
                best[word, 0] = t
            elif run_start[t] != run_start[best[word, 0]] and length > _rank(
                run_start, run_end, best[word, 1]
            ):
                best[word, 1] = t
        for t in range(start, stop):
            for row in range(N_RUN_KEYS):
                out[row, t] = 0
            if not _is_capital(table[words[t], 1]):
                continue
            word = table[words[t], 0]
            where = best[word, 0]
            if where != NOWHERE and _in_run(run_start, run_end, where, t):
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


@njit(nogil=True, cache=True)
def _is_capital(case: int) -> bool:
    return case not in (NO_CASE, LOWER_CASE)


@njit(nogil=True, cache=True)
def _rank(run_start: npt.NDArray[np.int64], run_end: npt.NDArray[np.int64], t: int) -> int:
    return 0 if t == NOWHERE else min(run_end[t] - run_start[t], LONG)


@njit(nogil=True, cache=True)
def _in_run(
    run_start: npt.NDArray[np.int64], run_end: npt.NDArray[np.int64], where: int, t: int
) -> bool:
    inside: bool = run_start[where] <= t < run_end[where]
    return inside
