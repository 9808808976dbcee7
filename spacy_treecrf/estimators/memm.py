"""The boosted MEMM as an estimator."""

from __future__ import annotations

from collections.abc import Callable

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.estimators.memm_base import LocalEstimator
from spacy_treecrf.models.memm.memm import MEMM, MEMMRecipe
from spacy_treecrf.models.memm.settings import MEMMSettings


class BoostedMEMM(LocalEstimator):
    """A maximum-entropy Markov model by boosted trees: P(label | previous labels, features).

    X is a list of sequences of feature dicts, y a list of sequences of labels, where None means
    "not annotated". Trained position by position on the annotated previous labels, which is fast
    at any order; `BoostedCRF` is trained on whole sequences.

    Parameters
    ----------
    order : int, default=1
        Number of previous labels that a label depends on. Order 0 is the sliding window.
    right_to_left : bool, default=False
        Whether sequences are read from their ends. The "previous" labels are then those that
        follow.
    search : {"auto", "exact", "greedy", "beam"}, default="auto"
        How the best labels are looked for. "exact" finds the most probable sequence, but scores
        every history (n_labels**order). "greedy" takes the best label, position by position.
        "beam" keeps the best `beam_width` histories. "auto" is exact up to 4096 scores a
        position, then a beam. Marginals and n-best lists of a search are those of the label
        sequences in its beam.
    beam_width : int, default=8
        Number of label histories that a beam keeps.
    step : {"newton", "gradient"}, default="newton"
        How a round improves the likelihood: by second or by first order.
    rounds : int or None, default=None
        Number of boosting rounds in all. None means 40 to 150, the more the fewer labels there
        are.
    linear_rounds : int, default=5
        Number of rounds, at the beginning, that are linear. Later rounds grow trees.
    leaves : int, default=64
        Most leaves that a tree may have.
    depth : int, default=0
        Most levels that a tree may have; 0 is no limit.
    min_rows : int, default=3
        Number of rows that each leaf must hold.
    min_count : int, default=2
        Number of rows that a feature needs to be used.
    max_bins : int, default=255
        Most bins of a numeric column.
    penalty : float, default=1.0
        Quadratic penalty on leaf values.
    min_gain : float, default=0.0
        Fall of the loss that a split must bring.
    ridge : float, default=1.0
        Quadratic penalty on linear weights.
    shrinkage : float, default=0.6
        Factor on every tree.
    max_step : float, default=3.0
        Bound of a leaf value under newton.
    trim : float, default=0.1
        Share of the gradient's sum that trees may ignore in their least important rows.
    subsample : float, default=1.0
        Share of the rows that is drawn in each round.
    colsample : float, default=1.0
        Share of the columns that is drawn for each tree.
    node_colsample : float, default=1.0
        Share of the columns that is drawn for each node.
    line_search : bool, default=False
        Whether every round is scaled to the best of several step lengths.
    constraints : {"none", "observed", "bio", "biluo"}, default="none"
        Which transitions are possible at all. "observed" allows those in the training data,
        "bio" and "biluo" those that the scheme allows, "none" all. Constraints bind decoding;
        training does not know them.
    predictor : {"viterbi", "marginal"}, default="viterbi"
        What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).
    patience : int, default=10
        Number of rounds without a better held-out figure before training stops; 0 is never. The
        best round is kept.
    monitor : {"auto", "f1", "accuracy", "log_likelihood"}, default="auto"
        Held-out figure that decides when to stop and which round is the best. All figures are
        those after the annotated previous labels. "auto" is the F1 of spans where the labels
        spell spans (BIO, BILUO, IOBES), and else the log-likelihood.
    dev_share : float, default=0.2
        Share of the sequences that is held out where no held-out part is given. With 0 nothing
        is held out.
    threads : int, default=0
        Number of threads, which never changes the result; 0 means all cores.
    seed : int, default=0
        Seed of all random draws.
    warm_start : bool, default=False
        Whether `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose : bool, default=False
        Whether a progress bar is shown.
    callback : callable or None, default=None
        A function that is called with a RoundInfo after every round.
    """

    # Many parameters: scikit-learn reads them from the signature.
    # Long: a line for each parameter, and one that keeps it.
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
        monitor: str = "auto",
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
