"""The boosted MEMM as an estimator."""

from __future__ import annotations

from collections.abc import Callable

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.estimators.local import LocalEstimator
from spacy_treecrf.models.local_settings import MEMMSettings
from spacy_treecrf.models.memm import MEMM, MEMMRecipe


class BoostedMEMM(LocalEstimator):
    """A maximum-entropy Markov model by boosted trees: P(label | previous labels, features).

    X is a list of sequences of feature dicts, y a list of sequences of labels, where None means
    "not annotated". Trained position by position on the annotated previous labels, which is fast
    at any order; `BoostedCRF` is trained on whole sequences.

    order: previous labels that a label depends on, 0 to 4; 0 is the sliding window.
    right_to_left: read sequences from their ends: the "previous" labels are those that follow.
    search: "exact" finds the most probable sequence, but scores every history (n_labels**order);
        "greedy" takes the best label, position by position; "beam" keeps the best `beam_width`
        histories; "auto" is exact up to 4096 scores a position, then a beam. Marginals and n-best
        lists of a search are those of the label sequences in its beam.
    step: "newton" (second order) or "gradient".
    rounds: boosting rounds in all; None means 40 to 150, the more the fewer labels there are.
    linear_rounds: how many of them, at the beginning, are linear.
    leaves, depth: limits of a tree; depth 0 means none.
    min_rows: rows that each leaf must hold. min_count: rows that a feature needs to be used.
    penalty: quadratic penalty on leaf values. min_gain: fall of the loss that a split must bring.
    ridge: on linear weights.
    shrinkage: factor on every tree. max_step: bound of a leaf value under newton.
    trim: share of the gradient's sum that trees may ignore in their least important rows.
    subsample: share of the rows drawn in each round. colsample, node_colsample: share of the
        columns drawn for each tree, for each node.
    line_search: scale every round to the best of several step lengths.
    constraints: transitions that are possible at all: "none", "observed" (those in the training
        data), "bio" or "biluo". They bind decoding; training does not know them.
    predictor: "viterbi" (best sequence) or "marginal" (best label at each position).
    patience, monitor: stop after so many rounds (0: never) without a better held-out
        "log_likelihood" or "accuracy", both after the annotated labels, and keep the best round.
    dev_share: share of the sequences that is held out where X_dev, y_dev are not given; 0: none.
    max_bins: bins of a numeric column. seed: of all random draws.
    threads: 0 means all cores; never changes the result.
    warm_start: `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose: show a progress bar. callback: called with a RoundInfo after every round.
    """

    def __init__(
        self,
        order: int = 1,
        right_to_left: bool = False,
        search: str = "auto",
        beam_width: int = 8,
        step: str = "newton",
        rounds: int | None = None,
        linear_rounds: int = 5,
        leaves: int = 64,
        depth: int = 0,
        min_rows: int = 3,
        min_count: int = 2,
        max_bins: int = 255,
        penalty: float = 1.0,
        min_gain: float = 0.0,
        ridge: float = 1.0,
        shrinkage: float = 0.6,
        max_step: float = 3.0,
        trim: float = 0.1,
        subsample: float = 1.0,
        colsample: float = 1.0,
        node_colsample: float = 1.0,
        line_search: bool = False,
        constraints: str = "none",
        predictor: str = "viterbi",
        patience: int = 10,
        monitor: str = "log_likelihood",
        dev_share: float = 0.2,
        threads: int = 0,
        seed: int = 0,
        warm_start: bool = False,
        verbose: bool = False,
        callback: Callable[[RoundInfo], None] | None = None,
    ) -> None:
        self.order = order
        self.right_to_left = right_to_left
        self.search = search
        self.beam_width = beam_width
        self.step = step
        self.rounds = rounds
        self.linear_rounds = linear_rounds
        self.leaves = leaves
        self.depth = depth
        self.min_rows = min_rows
        self.min_count = min_count
        self.max_bins = max_bins
        self.penalty = penalty
        self.min_gain = min_gain
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.max_step = max_step
        self.trim = trim
        self.subsample = subsample
        self.colsample = colsample
        self.node_colsample = node_colsample
        self.line_search = line_search
        self.constraints = constraints
        self.predictor = predictor
        self.patience = patience
        self.monitor = monitor
        self.dev_share = dev_share
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = MEMM
    _settings_type = MEMMSettings
    _recipe_type = MEMMRecipe
    model_: MEMM
