"""Held-out data, which decide when to stop: how they are chosen."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences


def hold_out(
    data: Sequences, share: float, n_labels: int, seed: int
) -> tuple[Sequences, Sequences | None]:
    """The data without a part, and that part: about `share` of the annotated sequences, at random.

    Every label keeps a sequence to be learned from, so less may be held out, or nothing at all: the
    part is then None, as for a single sequence.
    """
    known = data.labels != UNKNOWN_LABEL
    sequence_of = np.repeat(np.arange(data.n_sequences), np.diff(data.offsets))
    shows = np.zeros((data.n_sequences, n_labels), bool)
    shows[sequence_of[known], data.labels[known]] = True
    left = shows.sum(axis=0)  # sequences with each label that are not held out
    annotated = np.flatnonzero(shows.any(axis=1))
    wanted = int(np.floor(share * len(annotated)))
    held = np.zeros(data.n_sequences, bool)
    for s in np.random.default_rng(seed).permutation(annotated):
        if held.sum() == wanted:
            break
        if np.all(left[shows[s]] > 1):
            left[shows[s]] -= 1
            held[s] = True
    if not held.any():
        return data, None
    return data.subset(np.flatnonzero(~held)), data.subset(np.flatnonzero(held))
