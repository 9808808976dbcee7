"""The MEMM with future features as an estimator."""

from __future__ import annotations

from collections.abc import Callable

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.estimators.memm_base import LocalEstimator
from spacy_treecrf.models.memm.future_features import FutureMEMM, FutureRecipe
from spacy_treecrf.models.memm.settings import FutureSettings


class FutureFeatureMEMM(LocalEstimator):
    """A MEMM that also finds out which patterns of later positions tell a label (Hao 2009).

    Such a pattern (a detector) is looked for in the bag of the next positions, wherever in it that
    is. Rounds of trees over the local features and the detectors found so far take turns with
    rounds that learn new detectors, for each label its own; a held-out part decides when.
    `describe_detectors` says in words what they look for.

    X is a list of sequences of feature dicts, y a list of sequences of labels, where None means
    "not annotated".

    Parameters
    ----------
    order : int, default=1
        Number of previous labels that a label depends on.
    bag : int or None, default=None
        Number of the next positions that detectors look at. None means all to the end of the
        sequence. Near the end there are fewer; at the last position no detector finds anything.
    right_to_left : bool, default=False
        Whether sequences are read from their ends. Detectors then look at what comes before.
    search : {"auto", "exact", "greedy", "beam"}, default="auto"
        How the best labels are looked for. The choices are those of `BoostedMEMM`.
    beam_width : int, default=8
        Number of label histories that a beam keeps.
    detector_start : float, default=-5.0
        Score of a detector (its log odds) before it has learned anything, G_0.
    detector_rounds : int, default=10
        Number of trees that a detector may have.
    max_alpha : float, default=40.0
        Upper bound of the line search for the step of trees.
    max_beta : float, default=10000.0
        Upper bound of the line search for the step of detectors' trees.
    max_eta : float, default=10.0
        Upper bound of the line search for what a detector adds to its label's score.
    step : {"newton", "gradient"}, default="gradient"
        How a round of trees over local features improves the likelihood. "gradient" is the
        published one, of first order; "newton" is of second order.
    rounds : int or None, default=None
        Number of rounds of both kinds in all. None means 300. Training ends before when nothing
        helps any more.
    leaves : int, default=10
        Most leaves that a tree may have. It limits trees of either kind.
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
    max_step : float, default=3.0
        Bound of a leaf value under newton.
    trim : float, default=0.0
        Share of the gradient's sum that trees may ignore in their least important rows.
    subsample : float, default=1.0
        Share of the rows that is drawn in each round.
    colsample : float, default=1.0
        Share of the columns that is drawn for each tree.
    node_colsample : float, default=1.0
        Share of the columns that is drawn for each node.
    constraints : {"none", "observed", "bio", "biluo"}, default="none"
        Which transitions are possible at all. "observed" allows those in the training data,
        "bio" and "biluo" those that the scheme allows, "none" all. Constraints bind decoding;
        training does not know them.
    predictor : {"viterbi", "marginal"}, default="viterbi"
        What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).
    patience : int, default=3
        Number of rounds of trees without a better held-out figure before detectors' turn.
    dev_share : float, default=0.2
        Share of the sequences that is held out where no held-out part is given. With 0 the
        training data themselves decide.
    threads : int, default=0
        Number of threads, which never changes the result; 0 means all cores.
    seed : int, default=0
        Seed of all random draws.
    warm_start : bool, default=False
        Whether `fit` goes on with a fitted or loaded model until it has `rounds` rounds. On the
        same data it goes on in the phase that training had stopped in; other data begin a new
        phase of trees.
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
