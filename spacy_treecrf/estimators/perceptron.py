"""The perceptron as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.estimators.linear_features import LinearFeatures, WeightTables
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.perceptron import Perceptron, PerceptronRecipe
from spacy_treecrf.models.perceptron_settings import PerceptronSettings


class PerceptronTagger(LinearFeatures):
    """The structured perceptron (Collins 2002): fast, linear, without probabilities of its own.

    X and y are those of `BoostedCRF`. Weights are of features and of label bigrams; each round
    goes once through the training data, labels every sequence by Viterbi and corrects mistakes.

    Probabilities are those of a chain with these scores ("averaged"), or shares of votes ("voted"):
    they rank well and are not calibrated.

    Parameters
    ----------
    method : {"averaged", "voted"}, default="averaged"
        What predicts: the mean of all weights (averaged) or votes of several weights (voted).
        "averaged" takes the weights at all moments of training. "voted" lets weights of several
        moments label the data, and counts their votes at each position.
    order : int, default=1
        Number of previous labels that a label depends on. Order 0 means independent positions.
    rounds : int or None, default=None
        Number of passes over the data. None means 10.
    voters : int, default=2
        Number of weights of each round that vote, if method is voted. They are evenly spaced,
        so that weights are the likelier among them the longer they survived.
    beam : int or None, default=None
        Number of labels that are followed at each position. None follows all labels.
    min_count : int, default=1
        Number of rows that a feature needs to be used.
    max_bins : int, default=255
        Most bins of a numeric column.
    constraints : {"none", "observed", "bio", "biluo"}, default="none"
        Which transitions are possible at all. "observed" allows those in the training data,
        "bio" and "biluo" those that the scheme allows, "none" all. Votes are not bound by them,
        only each voter is.
    rules : list of str or None, default=None
        Rules that the labels of a predicted sequence follow as a whole. See `BoostedCRF`.
    predictor : {"viterbi", "marginal"}, default="viterbi"
        What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).
    patience : int, default=3
        Number of rounds without a better held-out accuracy before training stops; 0 is never.
        It counts where `fit` is given X_dev and y_dev; the best round is kept.
    threads : int, default=0
        Number of threads of prediction; 0 means all cores.
    seed : int, default=0
        Seed of the order of the sequences.
    warm_start : bool, default=False
        Whether `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose : bool, default=False
        Whether a progress bar is shown.
    callback : callable or None, default=None
        A function that is called with a RoundInfo after every round; its log-likelihood is NaN,
        as none is maximised.
    """

    # Many parameters: scikit-learn reads them from the signature.
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
        rules: Sequence[str] | None = None,
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
        self.rules = rules
        self.predictor = predictor
        self.patience = patience
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = Perceptron
    _settings_type = PerceptronSettings
    model_: Perceptron

    def _linear_part(self) -> WeightTables:
        average = self.model_.learned.average
        return average.categorical, average.numeric, average.edges

    def _recipe(self) -> PerceptronRecipe:
        return PerceptronRecipe(PerceptronSettings.of(self))

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        return model.settings.to_dict()
