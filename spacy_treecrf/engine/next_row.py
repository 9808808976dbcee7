"""Where a wide row goes on, as kernels ask for it; see `wide_rows`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.wide_rows import GOES_ON

NOWHERE = -1


@step
def next_row(feature_ids: npt.NDArray[np.int32], row: int) -> int:
    """Return the row where a row goes on, or NOWHERE."""
    n_slots = feature_ids.shape[1]
    if n_slots == 0:
        return NOWHERE
    last = np.int64(feature_ids[row, n_slots - 1])
    return int(GOES_ON - last) if last <= GOES_ON else NOWHERE
