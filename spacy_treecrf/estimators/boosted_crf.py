"""The boosted CRF as an estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.encoding.attribute_columns import AttributeColumns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.estimators.annotators import Confusions, given_by, named_confusions
from spacy_treecrf.estimators.base import encoded
from spacy_treecrf.estimators.calibrating import correction_by, cross_fitted, lowers_outside
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences
from spacy_treecrf.estimators.linear_features import LinearFeatures, WeightTables
from spacy_treecrf.estimators.soft_targets import Lattice, refuse_gaps
from spacy_treecrf.estimators.spans import possible_spans, spans_of, with_others
from spacy_treecrf.models.averaging import pooled
from spacy_treecrf.models.calibration.search import Wanted
from spacy_treecrf.models.crf import CRF, CRFRecipe
from spacy_treecrf.models.crfsuite import crf_of_crfsuite, on_grid
from spacy_treecrf.models.model import SequenceModel, Trainer
from spacy_treecrf.models.spans.probable_spans import ProbableSpan
from spacy_treecrf.models.spans.spans_for_f1 import highest_f1
from spacy_treecrf.storage.crfsuite_file import read_crfsuite

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11


class BoostedCRF(LinearFeatures):
    """A conditional random field whose potentials are learned by gradient tree boosting.

    X is a list of sequences of feature dicts, as python-crfsuite takes them; y a list of sequences
    of labels, where None means "not annotated". Leading rounds fit a linear model, later ones
    grow one regression tree for each label.

    Parameters
    ----------
    family : {"auto", "separate", "joint"}, default="auto"
        How scores depend on the previous label: by one matrix (separate) or in trees (joint).
        "separate" learns scores of single labels and one matrix of transitions (Chen 2015).
        "joint" lets trees see the previous labels (Dietterich 2004), which costs the square of
        the number of labels. "auto" takes joint for up to 8 labels and for orders above 1.
    order : int, default=1
        Number of previous labels that a label depends on. Order 0 means independent positions.
        Orders above 1 need the joint family.
    step : {"newton", "gradient", "conjugate"}, default="newton"
        How a round improves the likelihood: by second or first order, or conjugate gradients.
        "newton" is of second order, "gradient" takes steps of 1 as in TreeCRF, and "conjugate"
        adds to the gradient a part of the step before it, by the formula of Polak and Ribiere.
    gamma : {"local", "mixing"}, default="local"
        How newton bounds the curvature: by positions (local) or the mixing rate too (mixing).
        "local" looks at single positions and halves a step that lowered the likelihood.
        "mixing" adds the chain's mixing rate (Chen 2015), which is safer and slower.
    rounds : int or None, default=None
        Number of boosting rounds in all. None means 40 to 150, the more the fewer labels there
        are.
    linear_rounds : int, default=5
        Number of rounds, at the beginning, that are linear. Later rounds grow trees.
    pseudo_rounds : int, default=0
        Number of rounds, at the beginning, that follow the pseudo-likelihood.
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
        Quadratic penalty on linear weights and transitions.
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
    word_dropout : float, default=0.0
        Share of the training rows that see rare values, such as words, as unknown. Rare are
        values of fewer than 20 rows. For text of another kind than the training data, where
        many words are new: 0.2 to 0.5.
    line_search : bool, default=False
        Whether every round is scaled to the best of several step lengths.
    beam : int or None, default=None
        Number of labels that are followed at each position. The labels of the largest forward
        mass are followed, and in training the annotated one. This is faster and less exact, for
        hundreds of labels. None follows all labels.
    unbiased : bool, default=False
        Whether trees take the observed label more seriously than all others. A position gives E
        examples, one for each label after each context that a tree sees. In the m-th round of
        trees the observed one counts (E - 2) exp(-c (m - 1)^b) + 1 times.
    unbiased_rate : float, default=0.007
        How fast the extra weight of the observed label falls (c).
    unbiased_exponent : float, default=2.0
        Power of the round in the fall of the extra weight (b).
    missing : {"absent", "instance_weighting", "surrogate", "imputation", "indicator"}, default="absent"
        What a missing value means. A value is missing where it is None or NaN, and where a
        numeric column has no number. "absent" takes it as not mentioned; a missing number is
        below all others. "instance_weighting" sends a row both ways at a test of it, by the
        shares of the rows that have a value. "surrogate" lets the tests of other columns decide
        that agree best with it. "imputation" takes the most common value of the column, or the
        median. "indicator" makes missing a value of its own. With the second and third, linear
        rounds see nothing in a missing value, or the mean of a column.
    constraints : {"none", "observed", "bio", "biluo"}, default="none"
        Which transitions are possible at all. "observed" allows those in the training data,
        "bio" and "biluo" those that the scheme allows, "none" all.
    rules : list of str or None, default=None
        Rules that the labels of a predicted sequence follow as a whole. "Street once" lets all
        positions of a label be one run, "Zip after City" asks for the other label somewhere
        before it, "City not after Zip" rules it out. Labels of spans are named by their type.
        Training does not look at rules, so that they may be changed at any time. Probabilities
        are those given that the rules hold.
    predictor : {"viterbi", "marginal"}, default="viterbi"
        What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).
    soft_labels : {"evidence", "distill"}, default="evidence"
        What weights of labels mean: noisy measurements (evidence), a distribution (distill). It
        counts where y holds distributions, weights or lattices. "evidence" maximizes the log of
        sum_y p(y | x) w(y), "distill" sum_y q(y) log p(y | x), where w(y) is the product of the
        weights along y, and q is w normalised.
    patience : int, default=10
        Number of rounds without a better held-out figure before training stops; 0 is never. It
        counts where `fit` is given X_dev and y_dev; the best round is kept.
    monitor : {"auto", "f1", "accuracy", "log_likelihood"}, default="auto"
        Held-out figure that decides when to stop and which round is the best. It counts where
        `fit` is given X_dev and y_dev. "auto" is the F1 of spans where the labels spell spans
        (BIO, BILUO, IOBES), and else the log-likelihood.
    threads : int, default=0
        Number of threads, which never changes the result; 0 means all cores.
    spill : str or None, default=None
        Folder for arrays of the rows in training, if they do not fit into memory. They are
        memory-mapped files, of which nothing is left afterwards. The model is the same.
    seed : int, default=0
        Seed of all random draws.
    warm_start : bool, default=False
        Whether `fit` goes on with a fitted or loaded model until it has `rounds` rounds.
    verbose : bool, default=False
        Whether a progress bar is shown.
    callback : callable or None, default=None
        A function that is called with a RoundInfo after every round.
    """  # noqa: E501

    # Many parameters: scikit-learn reads them from the signature.
    # Long: a line for each parameter, and one that keeps it.
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
        word_dropout: float = 0.0,
        line_search: bool = False,
        beam: int | None = None,
        unbiased: bool = False,
        unbiased_rate: float = 0.007,
        unbiased_exponent: float = 2.0,
        missing: str = "absent",
        constraints: str = "none",
        rules: Sequence[str] | None = None,
        predictor: str = "viterbi",
        soft_labels: str = "evidence",
        patience: int = 10,
        monitor: str = "auto",
        threads: int = 0,
        spill: str | None = None,
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
        self.word_dropout = word_dropout
        self.line_search = line_search
        self.beam = beam
        self.unbiased = unbiased
        self.unbiased_rate = unbiased_rate
        self.unbiased_exponent = unbiased_exponent
        self.missing = missing
        self.constraints = constraints
        self.rules = rules
        self.predictor = predictor
        self.soft_labels = soft_labels
        self.patience = patience
        self.monitor = monitor
        self.threads = threads
        self.spill = spill
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = CRF
    _settings_type = Settings
    _takes_soft_labels = True
    model_: CRF
    confusions_: Confusions

    def fit(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        X_dev: FeatureSequences | None = None,
        y_dev: LabelSequences | None = None,
        sample_weight: Sequence[float] | None = None,
        annotators: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from sequences; with a held-out part, stop early and keep the best round.

        y: A label for each position, or None where it is not annotated. Instead of a label, a dict
        of labels with their weights, or a pair of a label and its weight from 0 to 1; instead of
        the labels of a sequence, a `Lattice`. `soft_labels` says what weights mean.
        X, y: Where X is an iterator, its sequences are encoded one by one as they are read, and so
        never in memory all together; y is read in step with it.
        sample_weight: One weight for each sequence.
        annotators: Who has labelled each sequence. How often each one takes a label for another is
        learned with the model, and is in `confusions_` afterwards.
        Ctrl-C keeps the rounds that are done: save the model, or go on with warm_start=True.
        """
        self._annotator_names = [] if annotators is None else list(dict.fromkeys(annotators))
        return self._fit(X, y, X_dev, y_dev, sample_weight, annotators)

    def _check_targets(self, y: LabelSequences) -> None:
        if self.soft_labels == "distill":
            refuse_gaps(y, "y")

    def _annotated(self, data: Sequences, annotators: Sequence[Any], n_labels: int) -> Sequences:
        return given_by(annotators, self._annotator_names, data, n_labels)

    def _train(self, trainer: Trainer) -> None:
        super()._train(trainer)
        confusions = getattr(trainer, "confusions", None)
        if confusions is None:
            self.__dict__.pop("confusions_", None)
            return
        self.confusions_ = named_confusions(confusions, self._annotator_names, self.classes_)

    def predict_spans(
        self,
        X: FeatureSequences,
        threshold: float | str = 0.5,
        beside: Sequence[BoostedCRF] = (),
    ) -> list[list[ProbableSpan]]:
        """The spans whose probability is above a threshold: start, end, name, probability.

        Labels are BIO, IOE2, BIOES or BILUO; IOB1 is to be converted. With one half the F1 of spans
        is a little better than that of the best label sequences, which `predict` returns; a higher
        threshold has fewer spans, more of them right. Below one half spans may exclude each other:
        those are returned whose probabilities, less the threshold, have the highest sum.

        threshold: From 0.01 to below 1. Half of the F1 that a model reaches serves F1 best. "f1" is
        half of `expected_f1(X)`, for models whose probabilities are honest (`cross_calibrate`):
        what is found in a sequence then depends on all of X.
        beside: Further fitted models. Probabilities are then the means of all models'; labels may
        spell spans in another scheme in each of them.
        """
        return spans_of(with_others(self, beside, BoostedCRF), X, threshold)

    def expected_f1(self, X: FeatureSequences, beside: Sequence[BoostedCRF] = ()) -> float:
        """The F1, from 0 to 1, that the model itself expects of spans in X that serve F1 best.

        It is the number of spans expected to be right, in relation to those found and those
        expected in X, and as good as the probabilities are: calibrate before you ask. No labels of
        X are needed. Half of it is the best threshold of `predict_spans`.
        """
        return highest_f1(*possible_spans(with_others(self, beside, BoostedCRF), X))

    def predict_lattices(self, X: FeatureSequences) -> list[Lattice]:
        """The distribution over the labels of each sequence, with its edges: a teacher's lesson.

        Rules and beams do not count.
        """
        labels = self.classes_
        found = []
        with self._predictor() as predictor:
            for data in encoded(self.model_, X):
                marginals, pairs = predictor.without_rules().apply(data).lattice()
                nodes = marginals.astype(np.float32)
                for first, last in pairwise(data.offsets.tolist()):
                    found.append(Lattice(labels, nodes[first:last], pairs[first + 1 : last]))
        return found

    def calibrate(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        outside: bool | None = False,
        curve: bool = False,
    ) -> Self:
        """Divide all scores by the temperature that makes held-out data honest.

        There predicted labels are right as often as their probabilities say, in the mean. It is
        one number for the whole chain: probabilities of labels, spans and label sequences stay
        those of one distribution, and the best labels stay the best. X, y: Annotated sequences
        that the model was not trained on; a few hundred do. Positions whose label training never
        saw do not count. `temperature_` says what was found.

        outside: Whether the score of the label O is lowered as well, at all positions alike, which
        `outside_` tells. Both numbers are then those that make held-out labels most probable, and
        predicted labels change: there are more spans, or fewer. None: Where labels spell spans.

        curve: Whether scores of a position are also divided by a number that depends on the
        entropy of its labels, so that labels of every probability are right as often as they say,
        not only in the mean. There is still one distribution; some of its best labels may be
        others, and predictions are slower. `curve_` says what was found. Not with `outside`.
        """
        self._fitted()
        wanted = Wanted(lowers_outside(self, outside), curve)
        self.model_ = self.model_.corrected(correction_by([(self, X, y)], wanted))
        return self

    def cross_calibrate(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        folds: int = 5,
        new: str | None = None,
        outside: bool | None = None,
    ) -> Self:
        """Calibrate a fitted model by its own training data, without any held-out part.

        The data are cut into folds, and each is judged by a model of the others, with the same
        parameters and rounds; so this takes `folds` trainings. What makes their probabilities
        honest is applied to this model, which has learned from all of it.

        X, y: The training data, without weights of sequences. folds: How many parts of sequences
        that follow each other.
        new: A key of the feature dicts, for text of another kind, whose names are new: that of the
        word. What judges a fold has then not seen the words of its spans in other spans; words
        that are more often outside of spans do not count.
        outside: As in `calibrate`.
        """
        self._fitted()
        if self.temperature_ != 1.0 or self.outside_ or self.curve_:
            raise ValueError(
                "treecrf: this model is calibrated already; fit it again before you cross-calibrate"
            )
        wanted = Wanted(lowers_outside(self, outside))
        judged = list(cross_fitted(self, X, y, folds, new))
        self.model_ = self.model_.corrected(correction_by(judged, wanted))
        return self

    @property
    def temperature_(self) -> float:
        """What calibration has divided scores by; 1.0: nothing, or training went on since then."""
        self._fitted()
        return self.model_.potentials.temperature

    @property
    def outside_(self) -> float:
        """What calibration has taken off the score of O; 0.0: nothing, or training went on."""
        self._fitted()
        return self.model_.potentials.outside

    @property
    def curve_(self) -> TemperatureCurve | None:
        """What calibration divides scores of positions by besides; None: nothing."""
        model = self._fitted()
        assert isinstance(model, CRF)
        return model.curve

    @classmethod
    def average(cls, models: Iterable[BoostedCRF]) -> BoostedCRF:
        """One model whose scores are the means of theirs: fitted ones that differ by their seeds.

        Where data is small, trees that see different parts of it (`subsample`, `colsample`) are
        better together. The probability of a label sequence is the geometric mean of the
        models', normalised; it is exact, as are all others. Parameters are those of the first.
        """
        if not isinstance(models, Iterable):
            raise ValueError(
                f"treecrf: models is a {type(models).__name__}; use a list of fitted BoostedCRFs"
            )
        given = list(models)
        for i, each in enumerate(given, 1):
            if not isinstance(each, BoostedCRF):
                raise ValueError(
                    f"treecrf: model {i} is a {type(each).__name__}; only fitted BoostedCRFs can "
                    "be averaged"
                )
            each._fitted()
            if each.integer_labels_ != given[0].integer_labels_:
                raise ValueError(
                    f"treecrf: labels of model {i} are {'not ' * (not each.integer_labels_)}"
                    "integers, those of model 1 are the other; train them on the same data"
                )
        model = pooled([each.model_ for each in given])
        estimator = cls(**given[0].get_params())
        estimator.model_ = model
        estimator.integer_labels_ = given[0].integer_labels_
        return estimator

    @classmethod
    def from_crfsuite(
        cls,
        path: str | os.PathLike[str],
        *,
        numbers: Iterable[str] | None = None,
        **parameters: Any,
    ) -> BoostedCRF:
        """Read a model that CRFsuite, python-crfsuite or sklearn-crfsuite has trained.

        It takes the same dicts, and predicts what CRFsuite predicts. With warm_start=True, `fit`
        boosts it further: the old weights stay as the linear part, and trees are added.

        numbers: Names of attributes that may have any number as their value, of which CRFsuite
        takes a multiple of the weight; others may have whole numbers from 0 to 1000. None means
        all attributes that seem to be no texts of a key.
        parameters: Those of the estimator. family is "separate" and linear_rounds is 0 unless
        given.
        """
        estimator = cls(**{"family": "separate", "linear_rounds": 0, **parameters})
        settings = estimator._recipe().settings
        estimator.model_ = crf_of_crfsuite(read_crfsuite(path), settings, numbers)
        return estimator

    def _linear_part(self) -> WeightTables:
        potentials, columns = self.model_.potentials, self.model_.columns
        categorical = potentials.linear.categorical
        if isinstance(columns, AttributeColumns):  # without multiples of their weights
            categorical = categorical[: columns.n_attributes]
        return categorical, potentials.linear.numeric, potentials.edges

    def _recipe(self) -> CRFRecipe:
        return CRFRecipe(Settings.of(self))

    def _continued(self, model: SequenceModel) -> SequenceModel:
        assert isinstance(model, CRF)
        asked = self._recipe().settings.resolved(len(model.labels))
        own = model.settings
        if (asked.family, asked.order, asked.missing) != (own.family, own.order, own.missing):
            raise ValueError(
                f"treecrf: warm_start goes on with a model of family={own.family!r}, "
                f"order={own.order}, missing={own.missing!r}; set the same, or warm_start=False"
            )
        continued = super()._continued(model)
        assert isinstance(continued, CRF)
        return on_grid(continued) if isinstance(continued.columns, AttributeColumns) else continued

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        return model.settings.to_dict()
