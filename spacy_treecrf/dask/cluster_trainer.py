"""A trainer whose rounds are done by the workers of a cluster."""

from __future__ import annotations

from dataclasses import replace

from spacy_treecrf.dask.checkpoint import Checkpoint
from spacy_treecrf.dask.cluster_booster import ClusterBooster
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.boosting.rounds import BestRound, Callback, RoundInfo
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.model import Trainer


class ClusterTrainer(Trainer):
    """A trainer of a CRF on a cluster."""

    def __init__(self, crf: CRF, booster: ClusterBooster, checkpoint: Checkpoint | None) -> None:
        self._crf, self._booster, self._checkpoint = crf, booster, checkpoint
        self.n_annotated = booster.n_annotated

    @property
    def model(self) -> CRF:
        return self._with(self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def _boost(self, rounds: int, callback: Callback | None) -> Potentials:
        def after_round(info: RoundInfo) -> None:
            if self._checkpoint is not None:
                best = self._booster.best_so_far or BestRound()
                self._checkpoint.after_round(self.model, best)
            if callback is not None:
                callback(info)

        return self._booster.boost(rounds, after_round)

    def _with(self, learned: Potentials) -> CRF:
        return replace(self._crf, potentials=learned)
