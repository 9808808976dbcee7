"""Detectors: learned patterns of single positions, looked for in the bag of future positions.

A detector is a score function G over the rows' own features (Hao 2009, eq. 5.10-5.12) and pushes
one label: it adds eta * Q(B_t) to that label's score (eq. 5.9), and Q in 20 bins, from then on a
column that all trees may test: a threshold on the bin is one bit of the thermometer code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.future.noisy_or import log_none
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import NO_CONTEXTS
from spacy_treecrf.engine.trees.forest import Forest, join_forests

N_BITS = 20  # bins of Q, evenly from 0 to 1

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Detector:
    label: int  # whose score it raises
    start: float  # G_0
    eta: float
    forest: Forest  # the trees of G, all of class 0, over the rows' own features


class DetectorScorer:
    """Some detectors prepared for scoring."""

    def __init__(
        self, detectors: Sequence[Detector], n_features: int, n_numeric: int, bag: int
    ) -> None:
        """bag: the number of positions in a bag, or TO_THE_END."""
        self.detectors = detectors
        self.bag = bag
        n = len(detectors)
        forest = join_forests([detector.forest for detector in detectors])
        counts = [detector.forest.n_trees for detector in detectors]
        numbered = {**forest.__dict__, "tree_class": np.repeat(np.arange(n), counts)}
        numbered["tree_class"] = numbered["tree_class"].astype(np.int32)
        self.trees = ForestScorer(Forest(**numbered), max(1, n), n_features, n_numeric, NO_CONTEXTS)

    def instance_scores(self, data: Sequences, workers: Workers) -> Doubles:
        """G of each detector at every row. shape: (n_detectors, n_rows)"""
        scores = np.zeros((data.n_rows, 1, max(1, len(self.detectors))), np.float32)
        self.trees.add(data, np.zeros(data.n_rows, np.uint8), scores, workers)
        starts = np.array([detector.start for detector in self.detectors])
        return np.ascontiguousarray(
            scores[:, 0, : len(self.detectors)].T.astype(np.float64) + starts[:, None]
        )

    def bag_probabilities(self, data: Sequences, workers: Workers) -> Doubles:
        """Q of each detector at every row. shape: (n_detectors, n_rows)"""
        out = np.empty((len(self.detectors), data.n_rows))
        for q, scores in zip(out, self.instance_scores(data, workers), strict=True):
            q[:] = bag_probability(scores, data, self.bag, workers)
        return out


def log_nones(scores: Doubles, data: Sequences, bag: int, workers: Workers) -> Doubles:
    """log(1 - Q) of every row, of the instance scores G. shape: (n_rows,)"""
    out = np.zeros(data.n_rows)
    workers.map(lambda chunk: log_none(scores, data.offsets, *chunk, bag, out), data.chunks)
    return out


def bag_probability(scores: Doubles, data: Sequences, bag: int, workers: Workers) -> Doubles:
    """Q of every row, of the instance scores G. shape: (n_rows,)"""
    return -np.expm1(log_nones(scores, data, bag, workers))


def thermometer(q: Doubles) -> npt.NDArray[np.uint8]:
    """The bin of Q, 1 to N_BITS (0 would be "missing")."""
    return np.clip(np.ceil(q * N_BITS), 1, N_BITS).astype(np.uint8)


def push(detector: Detector, q: Doubles) -> npt.NDArray[np.float32]:
    """What the detector adds to its label's score; on the grid, as all that is added up."""
    return to_grid(detector.eta * q)
