"""The perceptron as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.perceptron import Perceptron, PerceptronRecipe, PerceptronSettings


class PerceptronTagger(SequenceEstimator):
    """The structured perceptron (Collins 2002): fast, linear, without probabilities of its own.

    X and y are those of `BoostedCRF`. Weights are of features and of label bigrams; each round
    goes once through the training data, labels every sequence by Viterbi and corrects mistakes.

    method: "averaged" predicts with the mean of all weights on the way; "voted" lets weights of
        several moments label the data, and counts their votes at each position.
    order: 1, or 0 for independent positions.
    rounds: passes over the data; None means 10.
    voters: of method "voted", weights of each round that vote; evenly spaced, so that weights are
        the likelier among them the longer they survived.
    beam: follow only so many labels at each position; None: all.
    min_count: rows that a feature needs to be used. max_bins: bins of a numeric column.
    constraints: transitions that are possible at all: "none", "observed" (those in the training
        data), "bio" or "biluo". Votes are not bound by them, only each voter is.
    predictor: "viterbi" (best sequence) or "marginal" (best label at each position).
    patience: with X_dev, y_dev: stop after so many rounds (0: never) without a better held-out
        accuracy, and keep the best round.
    seed: of the order of the sequences. threads: of prediction; 0 means all cores.
    warm_start: `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose: show a progress bar. callback: called with a RoundInfo after every round; its
        log-likelihood is NaN, as none is maximised.

    Probabilities are those of a chain with these scores ("averaged"), or shares of votes ("voted"):
    they rank well and are not calibrated.
    """

    def __init__(
        self,
        method: str = "averaged",
        order: int = 1,
        rounds: int | None = None,
        voters: int = 2,
        beam: int | None = None,
        min_count: int = 1,
        max_bins: int = 255,
        constraints: str = "none",
        predictor: str = "viterbi",
        patience: int = 3,
        threads: int = 0,
        seed: int = 0,
        warm_start: bool = False,
        verbose: bool = False,
        callback: Callable[[RoundInfo], None] | None = None,
    ) -> None:
        self.method = method
        self.order = order
        self.rounds = rounds
        self.voters = voters
        self.beam = beam
        self.min_count = min_count
        self.max_bins = max_bins
        self.constraints = constraints
        self.predictor = predictor
        self.patience = patience
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = Perceptron
    model_: Perceptron

    def _recipe(self) -> PerceptronRecipe:
        names = PerceptronSettings.names()
        return PerceptronRecipe(PerceptronSettings(**{name: getattr(self, name) for name in names}))

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        return {name: getattr(model.settings, name) for name in PerceptronSettings.names()}
