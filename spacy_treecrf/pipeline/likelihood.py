"""How probable the annotation of docs is, and how far probabilities are to be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spacy_treecrf.evaluation.calibration import expected_calibration_error

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.models.predictor import ScoredSequences


def likelihood_of(scored: ScoredSequences, ids: npt.NDArray[np.int32]) -> dict[str, float | None]:
    """-log P(annotation) per annotated token, and calibration error of the most probable labels.

    ids: Of the annotated labels, -1 where there is none.
    """
    known = ids >= 0
    if not known.any():
        return {"treecrf_nll": None, "treecrf_ece": None}
    log_p = scored.log_probability_of(ids)
    nodes = scored.marginals()[known]
    # Constraints may forbid a gold annotation: then nothing can be said of the sequence.
    possible = np.isfinite(log_p)
    n_known = np.add.reduceat(known, scored.data.offsets[:-1])[possible].sum()
    error = expected_calibration_error(nodes.max(axis=1), nodes.argmax(axis=1) == ids[known])
    nll = float(-log_p[possible].sum() / n_known) if n_known else None
    return {"treecrf_nll": nll, "treecrf_ece": error}
