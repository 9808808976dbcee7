"""Training of all columns of a code together."""

from __future__ import annotations

from dataclasses import replace

from spacy_treecrf.engine.boosting import Callback
from spacy_treecrf.engine.coded_boosting import CodedBooster
from spacy_treecrf.engine.potentials import Potentials
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.secoc import SECOC


class JointTrainer(Trainer):
    """A round grows a tree for each bit."""

    def __init__(
        self, model: SECOC, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        settings = model.settings
        assert isinstance(settings.base, Settings)  # settings of joint training are checked
        self._model = model
        self._booster = CodedBooster(
            data,
            model.columns,
            model.code,
            model.masks,
            replace(
                settings.base,
                beam=settings.training_beam(len(model.labels)),
                constraints=settings.constraints,
                predictor=settings.predictor,
                seed=settings.seed,
            ),
            workers,
            model.potentials,
            held_out,
        )
        self.data = self._booster.train.data
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> SECOC:
        return self._with(self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def train(self, rounds: int, callback: Callback | None = None) -> SECOC:
        return self._with(self._booster.boost(rounds, callback))

    def _with(self, potentials: Potentials) -> SECOC:
        chain = replace(self._model.label_chain, edges=potentials.edges)
        return replace(self._model, potentials=potentials, label_chain=chain)
