"""Word dropout: in training, a share of the rows sees rare values as unknown.

Whatever is used on other text meets words that training has not seen. A model that knew every word
of its training data has not learned what such rows look like; rows without their rare values are
like them, and teach shapes, endings and neighbours instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import ABSENT, BLOCK_ROWS, Sequences, cut_rows
from spacy_treecrf.engine.wide_rows import GOES_ON

RARE_ROWS = 20  # values of fewer training rows are rare: words, and not letters, tags or shapes


def with_unknown_words(
    data: Sequences,
    counts: npt.NDArray[np.int64],
    share: float,
    seed: int,
    storage: RowStorage,
) -> Sequences:
    """The sequences, with rare features absent in a random share of their rows.

    counts: (n_features,), training rows of each feature. storage: Where the new rows are kept.
    """
    ids = data.feature_ids
    drawn = np.zeros(len(ids), np.bool_)
    drawn[: data.n_rows] = np.random.default_rng(seed).random(data.n_rows) < share
    ongoing = np.flatnonzero(drawn)
    while ids.shape[1] and len(ongoing):  # wide rows, with the rows where they go on
        last = ids[ongoing, -1].astype(np.int64)
        ongoing = GOES_ON - last[last <= GOES_ON]
        drawn[ongoing] = True
    is_rare = np.append(counts < RARE_ROWS, False)
    changed = storage.empty(ids.shape, np.int32)
    for piece in cut_rows(len(ids), BLOCK_ROWS):
        own = ids[piece]
        feature = np.where((own >= 0) & (own < len(counts)), own, len(counts))
        changed[piece] = np.where(is_rare[feature] & drawn[piece, None], ABSENT, own)
    return replace(data, feature_ids=changed)
