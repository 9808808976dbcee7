"""Training of all bits of an output code together, by the likelihood of the labels."""

from __future__ import annotations

from dataclasses import replace

from spacy_treecrf.engine.boosting.rounds import Callback
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.engine.codes.coded_boosting import CodedBooster
from spacy_treecrf.engine.codes.course import Course
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.secoc.model import SECOCModel


class JointTrainer(Trainer):
    """A trainer whose rounds grow a tree for each bit."""

    def __init__(
        self, model: SECOCModel, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        settings = model.settings
        assert isinstance(settings.base, Settings)  # SECOCSettings allow no other base
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
            model.course or Course.start(model.potentials),
            held_out,
        )
        self._booster.spans = span_labels(model.labels)
        self.data = self._booster.train.data
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> SECOCModel:
        return self._with(self._booster.course)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def _boost(self, rounds: int, callback: Callback | None) -> Course:
        return self._booster.boost(rounds, callback)

    def _with(self, learned: Course) -> SECOCModel:
        if not learned.steps:
            return self._model
        potentials = learned.potentials
        chain = replace(self._model.label_chain, edges=potentials.edges)
        return replace(self._model, potentials=potentials, label_chain=chain, course=learned)
