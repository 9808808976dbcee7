"""Several boosted CRFs averaged into one, whose scores are the means of the given models' scores.

The average is their logarithmic opinion pool: P(y | x) is proportional to prod_i P_i(y | x)^(1/n).
It is a CRF again, with the trees of all models, and so has exact probabilities and a file as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spacy_treecrf.engine.boosting.potentials import mean_potentials
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.storage import container

SAME = ("family", "order", "missing", "constraints")


def pooled(crfs: Sequence[CRF]) -> CRF:
    """The average of CRFs that have learned from the same data, with the settings of the first."""
    if not crfs:
        raise ValueError("treecrf: there is no model to average; give one or more")
    first = crfs[0]
    if any(crf.curve is not None for crf in crfs):
        raise ValueError(
            "treecrf: a model is calibrated by a curve, which an average cannot keep; average "
            "models first, and calibrate the average"
        )
    for i, other in enumerate(crfs[1:], 2):
        _refuse_different(first, other, f"treecrf: models 1 and {i} cannot be averaged: ")
    mean = mean_potentials([crf.potentials for crf in crfs])
    in_order = np.argsort(mean.forest.tree_round, kind="stable")
    mean = replace(
        mean,
        edges=to_grid(mean.edges),
        forests=(mean.forest.reordered(in_order),),
        rounds=max(crf.rounds for crf in crfs),
        temperature=float(np.exp(np.mean([np.log(crf.temperature) for crf in crfs]))),
        outside=float(np.mean([crf.potentials.outside for crf in crfs])),
    )
    return replace(first, potentials=mean)


def _refuse_different(first: CRF, other: CRF, message: str) -> None:
    for name in SAME:
        a, b = getattr(first.settings, name), getattr(other.settings, name)
        if a != b:
            raise ValueError(f"{message}{name} is {a!r} and {b!r}")
    if first.compact != other.compact:
        raise ValueError(f"{message}one of them is compact; average them before you compact them")
    if first.labels != other.labels:
        raise ValueError(f"{message}their labels differ; train them on the same data")
    if not all(map(np.array_equal, first.masks, other.masks)):
        raise ValueError(f"{message}their possible transitions differ; train them on the same data")
    states = [container.dump(crf.columns.to_state()) for crf in (first, other)]
    if states[0] != states[1]:
        raise ValueError(
            f"{message}their columns differ; train them on the same data, with the same min_count "
            "and max_bins"
        )
