"""The MEMM with future features as an estimator."""

from __future__ import annotations

from collections.abc import Callable

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.estimators.local import LocalEstimator
from spacy_treecrf.models.future_features import FutureMEMM, FutureRecipe
from spacy_treecrf.models.local_settings import FutureSettings


class FutureFeatureMEMM(LocalEstimator):
    """A MEMM that also finds out which patterns of later positions tell a label (Hao 2009).

    Such a pattern (a detector) is looked for in the bag of the next positions, wherever in it that
    is. Rounds of trees over the local features and the detectors found so far take turns with
    rounds that learn new detectors, for each label its own; a held-out part decides when.
    `describe_detectors` says in words what they look for.

    X is a list of sequences of feature dicts, y a list of sequences of labels, where None means
    "not annotated".

    order: previous labels that a label depends on, 0 to 4.
    bag: how many of the next positions detectors look at; None: all to the end of the sequence.
        Near the end there are fewer; at the last position no detector finds anything.
    right_to_left: read sequences from their ends: detectors look at what comes before.
    search, beam_width: how labels are decoded, as in `BoostedMEMM`.
    detector_start: score of a detector (its log odds) before it has learned anything, G_0.
    detector_rounds: trees that a detector may have.
    max_alpha, max_beta, max_eta: upper bounds of the line searches for the step of trees, of
        detectors' trees, and of what a detector adds to its label's score.
    step: "gradient", as published, or "newton" for the trees over local features.
    rounds: of both kinds, in all; None: 300. Training ends before when nothing helps any more.
    leaves, depth: limits of a tree of either kind; depth 0 means none.
    min_rows: rows that each leaf must hold. min_count: rows that a feature needs to be used.
    penalty: quadratic penalty on leaf values. min_gain: fall of the loss that a split must bring.
    max_step: bound of a leaf value under newton.
    trim: share of the gradient's sum that trees may ignore in their least important rows.
    subsample: share of the rows drawn in each round. colsample, node_colsample: share of the
        columns drawn for each tree, for each node.
    constraints, predictor: as in `BoostedMEMM`.
    patience: rounds of trees without a better held-out log-likelihood before detectors' turn.
    dev_share: share of the sequences that is held out where X_dev, y_dev are not given; with 0,
        the training data themselves decide.
    max_bins: bins of a numeric column. seed: of all random draws.
    threads: 0 means all cores; never changes the result.
    warm_start: `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose: show a progress bar. callback: called with a RoundInfo after every round.
    """

    def __init__(
        self,
        order: int = 1,
        bag: int | None = None,
        right_to_left: bool = False,
        search: str = "auto",
        beam_width: int = 8,
        detector_start: float = -5.0,
        detector_rounds: int = 10,
        max_alpha: float = 40.0,
        max_beta: float = 1e4,
        max_eta: float = 10.0,
        step: str = "gradient",
        rounds: int | None = None,
        leaves: int = 10,
        depth: int = 0,
        min_rows: int = 3,
        min_count: int = 2,
        max_bins: int = 255,
        penalty: float = 1.0,
        min_gain: float = 0.0,
        max_step: float = 3.0,
        trim: float = 0.0,
        subsample: float = 1.0,
        colsample: float = 1.0,
        node_colsample: float = 1.0,
        constraints: str = "none",
        predictor: str = "viterbi",
        patience: int = 3,
        dev_share: float = 0.2,
        threads: int = 0,
        seed: int = 0,
        warm_start: bool = False,
        verbose: bool = False,
        callback: Callable[[RoundInfo], None] | None = None,
    ) -> None:
        self.order = order
        self.bag = bag
        self.right_to_left = right_to_left
        self.search = search
        self.beam_width = beam_width
        self.detector_start = detector_start
        self.detector_rounds = detector_rounds
        self.max_alpha = max_alpha
        self.max_beta = max_beta
        self.max_eta = max_eta
        self.step = step
        self.rounds = rounds
        self.leaves = leaves
        self.depth = depth
        self.min_rows = min_rows
        self.min_count = min_count
        self.max_bins = max_bins
        self.penalty = penalty
        self.min_gain = min_gain
        self.max_step = max_step
        self.trim = trim
        self.subsample = subsample
        self.colsample = colsample
        self.node_colsample = node_colsample
        self.constraints = constraints
        self.predictor = predictor
        self.patience = patience
        self.dev_share = dev_share
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = FutureMEMM
    _settings_type = FutureSettings
    _recipe_type = FutureRecipe
    model_: FutureMEMM

    def describe_detectors(self, paths: int = 3) -> list[str]:
        """In words: for each detector, which label it favours and what it looks for.

        paths: how many patterns of a detector are named, the strongest first.
        """
        self._fitted()
        return self.model_.describe_detectors(paths)
