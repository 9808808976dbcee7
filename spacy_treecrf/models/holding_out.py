"""A part of the training data that decides when to stop, where no other data are given for it."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences


def hold_out(
    data: Sequences, share: float, n_labels: int, seed: int
) -> tuple[Sequences, Sequences | None]:
    """The rest, and about this share of the annotated sequences, drawn at random.

    Every label keeps a sequence to learn it from, so that less may be held out, or nothing at all
    (None): of a single sequence, say.
    """
    known = data.labels != UNKNOWN_LABEL
    sequence_of = np.repeat(np.arange(data.n_sequences), np.diff(data.offsets))
    shows = np.zeros((data.n_sequences, n_labels), bool)
    shows[sequence_of[known], data.labels[known]] = True
    left = shows.sum(axis=0)  # sequences that show each label
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
