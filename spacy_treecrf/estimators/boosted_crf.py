"""The boosted CRF as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.models.crf import CRF, CRFRecipe
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.pooling import pooled


class BoostedCRF(SequenceEstimator):
    """A conditional random field whose potentials are learned by gradient tree boosting.

    X is a list of sequences of feature dicts, as python-crfsuite takes them; y a list of sequences
    of labels, where None means "not annotated". Leading rounds fit a linear model, later ones
    grow one regression tree for each label.

    family: "separate" learns scores of single labels and one matrix of transitions (Chen 2015);
        "joint" lets trees see the previous labels (Dietterich 2004), which costs the square of the
        number of labels; "auto" takes joint for up to 8 labels and for orders above 1.
    order: previous labels a label depends on: 0 (independent positions), 1, with "joint" up to 4.
    step: "newton" (second order), "gradient" (step 1, as in TreeCRF), or "conjugate" (the gradient
        and part of the step before it, by the formula of Polak and Ribiere).
    gamma: how newton bounds the curvature: "local" looks at single positions and halves a step
        that lowered the likelihood; "mixing" adds the chain's mixing rate (Chen 2015), safer and
        slower.
    rounds: boosting rounds in all; None means 40 to 150, the more the fewer labels there are.
    linear_rounds: how many of them, at the beginning, are linear.
    pseudo_rounds: rounds, at the beginning, that follow the pseudo-likelihood.
    leaves, depth: limits of a tree; depth 0 means none.
    min_rows: rows that each leaf must hold. min_count: rows that a feature needs to be used.
    penalty: quadratic penalty on leaf values. min_gain: fall of the loss that a split must bring.
    ridge: on linear weights and transitions.
    shrinkage: factor on every tree. max_step: bound of a leaf value under newton.
    trim: share of the gradient's sum that trees may ignore in their least important rows.
    subsample: share of the rows drawn in each round. colsample, node_colsample: share of the
        columns drawn for each tree, for each node.
    line_search: scale every round to the best of several step lengths.
    beam: follow only so many labels at each position, those of the largest forward mass (and in
        training the annotated one): faster and less exact, for hundreds of labels; None: all.
    unbiased: trees take the observed label more seriously than all that were not: of the E examples
        that a position gives (one for each label after each context that a tree sees), it counts
        (E - 2) exp(-c (m - 1)^b) + 1 times in the m-th round of trees. unbiased_rate: c.
        unbiased_exponent: b.
    missing: what a value of None or NaN means, and a numeric column without a number. "absent": as
        if it was not mentioned; a missing number is below all others. "instance_weighting": at a
        test of it a row goes both ways, by the shares of the rows that have a value. "surrogate":
        the tests of other columns that agree best with it decide. "imputation": the most common
        value of the column, or the median. "indicator": missing is a value of its own. With the
        second and third, linear rounds see nothing in a missing value, or the mean of a column.
    constraints: transitions that are possible at all: "none", "observed" (those in the training
        data), "bio" or "biluo".
    predictor: "viterbi" (best sequence) or "marginal" (best label at each position).
    patience, monitor: with X_dev, y_dev: stop after so many rounds (0: never) without a better
        held-out "log_likelihood" or "accuracy", and keep the best round.
    max_bins: bins of a numeric column. seed: of all random draws.
    threads: 0 means all cores; never changes the result.
    warm_start: `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose: show a progress bar. callback: called with a RoundInfo after every round.
    """

    def __init__(
        self,
        family: str = "auto",
        order: int = 1,
        step: str = "newton",
        gamma: str = "local",
        rounds: int | None = None,
        linear_rounds: int = 5,
        pseudo_rounds: int = 0,
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
        beam: int | None = None,
        unbiased: bool = False,
        unbiased_rate: float = 0.007,
        unbiased_exponent: float = 2.0,
        missing: str = "absent",
        constraints: str = "none",
        predictor: str = "viterbi",
        patience: int = 10,
        monitor: str = "log_likelihood",
        threads: int = 0,
        seed: int = 0,
        warm_start: bool = False,
        verbose: bool = False,
        callback: Callable[[RoundInfo], None] | None = None,
    ) -> None:
        self.family = family
        self.order = order
        self.step = step
        self.gamma = gamma
        self.rounds = rounds
        self.linear_rounds = linear_rounds
        self.pseudo_rounds = pseudo_rounds
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
        self.beam = beam
        self.unbiased = unbiased
        self.unbiased_rate = unbiased_rate
        self.unbiased_exponent = unbiased_exponent
        self.missing = missing
        self.constraints = constraints
        self.predictor = predictor
        self.patience = patience
        self.monitor = monitor
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = CRF
    model_: CRF

    @classmethod
    def average(cls, models: Sequence[BoostedCRF]) -> BoostedCRF:
        """One model whose scores are the means of theirs: fitted ones that differ by their seeds.

        Where data is small, trees that see different parts of it (`subsample`, `colsample`) are
        better together. The probability of a label sequence is the geometric mean of the
        models', normalised; it is exact, as are all others. Parameters are those of the first.
        """
        for each in models:
            each._fitted()
        model = pooled([each.model_ for each in models])
        estimator = cls(**models[0].get_params())
        estimator.model_ = model
        return estimator

    def _recipe(self) -> CRFRecipe:
        return CRFRecipe(Settings(**{name: getattr(self, name) for name in Settings.names()}))

    def _continued(self, model: SequenceModel) -> SequenceModel:
        assert isinstance(model, CRF)
        asked = self._recipe().settings.resolved(len(model.labels))
        own = model.settings
        if (asked.family, asked.order, asked.missing) != (own.family, own.order, own.missing):
            raise ValueError(
                f"treecrf: warm_start goes on with a model of family={own.family!r}, "
                f"order={own.order}, missing={own.missing!r}; set the same, or warm_start=False"
            )
        return super()._continued(model)

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        return {name: getattr(model.settings, name) for name in Settings.names()}
