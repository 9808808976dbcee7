"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.engine.columns import fit_columns
from spacy_treecrf.engine.constraints import first_forbidden
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models import storage
from spacy_treecrf.models.crf import CRF, Predictor, TrainingInterrupted, new_crf

FeatureSequences = Sequence[Sequence[Any]]
LabelSequences = Sequence[Sequence["str | None"]]


class NotFittedError(ValueError, AttributeError):
    """Raised when a model is used before `fit`; the same bases as scikit-learn's."""


class Predictions(list[list[Any]]):
    """A list of sequences; numpy sees one object for each, also where all have one length."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = np.empty(len(self), dtype=object)
        for i, sequence in enumerate(self):
            array[i] = sequence
        return array


class BoostedCRF:
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

    def fit(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        X_dev: FeatureSequences | None = None,
        y_dev: LabelSequences | None = None,
        sample_weight: Sequence[float] | None = None,
    ) -> BoostedCRF:
        """Learn from sequences; with a held-out part, stop early and keep the best round.

        sample_weight: one weight for each sequence. Ctrl-C keeps the rounds that are done: save
        the model, or go on with warm_start=True.
        """
        settings = self._settings()
        if y is None:
            raise ValueError("treecrf: fit requires y to be passed, but the target y is None")
        if (X_dev is None) != (y_dev is None):
            raise ValueError("treecrf: pass both X_dev and y_dev, or neither")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"treecrf: callback is {self.callback!r}; use a function, or None")
        X, y = _checked(X, y, "X", "y")
        crf = getattr(self, "crf_", None) if self.warm_start else None
        if crf is None:
            labels = _distinct_labels(y)
            columns, offsets, codes, numeric = fit_columns(
                X,
                min_count=settings.min_count,
                max_bins=settings.max_bins,
                missing=settings.missing,
            )
        else:
            labels, columns = crf.labels, crf.columns
            offsets, codes, numeric = columns.encode(X)
        settings = settings.resolved(len(labels))
        ids = {label: i for i, label in enumerate(labels)}
        weights = _row_weights(offsets, sample_weight)
        data = Sequences(offsets, codes, numeric, _label_ids(y, ids, "y"), weights)
        if crf is None:
            crf = new_crf(settings, labels, columns, data)
            _refuse_forbidden(crf, data)
        own = crf.settings
        if (settings.family, settings.order, settings.missing) != (
            own.family,
            own.order,
            own.missing,
        ):
            raise ValueError(
                f"treecrf: warm_start goes on with a model of family={own.family!r}, "
                f"order={own.order}, missing={own.missing!r}; set the same, or warm_start=False"
            )
        held_out = None
        if X_dev is not None and y_dev is not None:
            X_dev, y_dev = _checked(X_dev, y_dev, "X_dev", "y_dev")
            offsets, codes, numeric = columns.encode(X_dev, name="X_dev")
            # A label that training never saw cannot be scored: such positions do not count.
            dev_labels = _label_ids(y_dev, ids, "y_dev", unseen=UNKNOWN_LABEL)
            if np.all(dev_labels == UNKNOWN_LABEL):
                raise ValueError(
                    "treecrf: y_dev holds no label that occurs in y; held-out data must be "
                    "annotated with the labels of the training data"
                )
            weights = _row_weights(offsets, None)
            held_out = Sequences(offsets, codes, numeric, dev_labels, weights)
        with Workers(settings.threads) as workers, _Progress(self, settings.rounds) as progress:
            try:
                self.crf_ = replace(crf, settings=settings).boosted(
                    data, workers=workers, held_out=held_out, callback=progress
                )
            except TrainingInterrupted as stopped:
                self.crf_ = stopped.crf
                raise
        return self

    def predict(self, X: FeatureSequences) -> list[list[str]]:
        """The label sequences of X."""
        data = self._encode(X)
        names = np.array(self.crf_.labels, dtype=object)
        with self._workers() as workers:
            labels = Predictor(self.crf_, workers, self._settings().predictor).labels(data)
        return _cut(names[labels].tolist(), data.offsets)

    def predict_single(self, x: Sequence[Any]) -> list[str]:
        """The labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: FeatureSequences) -> list[list[dict[str, float]]]:
        """P(label) at every position, as a dict from labels to probabilities."""
        data = self._encode(X)
        labels = self.crf_.labels
        with self._workers() as workers:
            marginals = Predictor(self.crf_, workers).marginals(data)
        rows = [dict(zip(labels, row, strict=True)) for row in marginals.tolist()]
        return _cut(rows, data.offsets)

    def predict_marginals_single(self, x: Sequence[Any]) -> list[dict[str, float]]:
        """P(label) at every position of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_nbest(self, X: FeatureSequences, n: int = 5) -> list[list[tuple[list[str], float]]]:
        """The n most probable label sequences of each sequence, with their probabilities."""
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"treecrf: predict_nbest got n={n!r}; use an integer of at least 1")
        data = self._encode(X)
        labels = self.crf_.labels
        with self._workers() as workers:
            best = Predictor(self.crf_, workers).nbest(data, int(n))
        return [
            [
                ([labels[i] for i in path], float(np.exp(log_p)))
                for path, log_p in zip(paths, log_ps, strict=True)
            ]
            for paths, log_ps in best
        ]

    def score(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        sample_weight: Sequence[float] | None = None,
    ) -> float:
        """Share of annotated positions that get their label; one unseen in training is wrong."""
        X, y = _checked(X, y, "X", "y")
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _sequence_weights(sample_weight, len(y)).astype(float)
        right = total = 0.0
        for predicted, gold, weight in zip(self.predict(X), y, weights, strict=True):
            known = [(p, g) for p, g in zip(predicted, gold, strict=True) if g is not None]
            right += weight * sum(p == g for p, g in known)
            total += weight * len(known)
        return float(right / total) if total else float("nan")

    @property
    def classes_(self) -> list[str]:
        return list(self._fitted().labels)

    @property
    def rounds_(self) -> int:
        """Rounds in the model; fewer than `rounds` after early stopping."""
        return self._fitted().potentials.rounds

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file."""
        storage.save(path, self._fitted().to_state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BoostedCRF:
        """Read a model; a damaged or foreign file is refused with a ValueError."""
        crf = CRF.from_state(storage.read(path))
        estimator = cls(**{name: getattr(crf.settings, name) for name in Settings.names()})
        estimator.crf_ = crf
        return estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> BoostedCRF:
        for name, value in params.items():
            if name not in _parameters():
                known = ", ".join(_parameters())
                raise ValueError(f"treecrf: unknown parameter {name!r}; BoostedCRF has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            name: getattr(self, name)
            for name, parameter in _parameters().items()
            if getattr(self, name) is not parameter.default
            and getattr(self, name) != parameter.default
        }
        return f"BoostedCRF({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "crf_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            # Not "classifier": scikit-learn would stratify folds by label, and each y is many.
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False, dict=True),
            no_validation=True,
        )

    def _settings(self) -> Settings:
        return Settings(**{name: getattr(self, name) for name in Settings.names()})

    def _fitted(self) -> CRF:
        crf: CRF | None = getattr(self, "crf_", None)
        if crf is None:
            # scikit-learn's own checks and tools expect its class; never import it for that.
            sklearn = sys.modules.get("sklearn.exceptions")
            error = sklearn.NotFittedError if sklearn else NotFittedError
            raise error("treecrf: this BoostedCRF is not fitted yet; call fit or load")
        return crf

    def _workers(self) -> Workers:
        return Workers(self._settings().threads)

    def _encode(self, X: FeatureSequences) -> Sequences:
        offsets, codes, numeric = self._fitted().columns.encode(X)
        labels = np.full(offsets[-1], UNKNOWN_LABEL, np.int32)
        return Sequences(offsets, codes, numeric, labels, _row_weights(offsets, None))


def _parameters() -> dict[str, Any]:
    return {
        name: parameter
        for name, parameter in signature(BoostedCRF.__init__).parameters.items()
        if name != "self"
    }


class _Progress:
    """Passes each round on to the user's callback and, if wanted, to a progress bar."""

    def __init__(self, estimator: BoostedCRF, rounds: int | None) -> None:
        self.callback = estimator.callback
        self.bar = tqdm(total=rounds, unit="round", disable=not estimator.verbose)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def __call__(self, info: RoundInfo) -> None:
        shown = {"log-likelihood": f"{info.log_likelihood:.4f}"}
        if info.held_out_accuracy is not None:
            shown["held-out"] = f"{info.held_out_log_likelihood:.4f}"
            shown["accuracy"] = f"{info.held_out_accuracy:.2%}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(info.round - self.bar.n)
        if self.callback:
            self.callback(info)


def _checked(
    X: FeatureSequences, y: LabelSequences, x_name: str, y_name: str
) -> tuple[FeatureSequences, LabelSequences]:
    """X and y as lists whose sequences have the same lengths."""
    for value, name in ((X, x_name), (y, y_name)):
        scalar = getattr(value, "shape", None) == ()  # an array without dimensions
        if isinstance(value, (str, bytes, dict)) or scalar or not hasattr(value, "__iter__"):
            raise ValueError(
                f"treecrf: {name} is a {type(value).__name__}; use a list of sequences"
            )
    X, y = list(X), list(y)
    if len(X) != len(y):
        raise ValueError(
            f"treecrf: {x_name} holds {len(X)} sequences, {y_name} holds {len(y)}; "
            "each sequence needs one sequence of labels"
        )
    if not X:
        raise ValueError(f"treecrf: {x_name} holds no sequences; pass at least one")
    for s, (items, labels) in enumerate(zip(X, y, strict=True)):
        for sequence, name in ((items, x_name), (labels, y_name)):
            if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__len__"):
                raise ValueError(
                    f"treecrf: {name}[{s}] is a {type(sequence).__name__}; use a list, one entry "
                    "for each position"
                )
        if len(items) != len(labels):
            raise ValueError(
                f"treecrf: {x_name}[{s}] has {len(items)} positions, {y_name}[{s}] has "
                f"{len(labels)} labels"
            )
        if len(items) == 0:
            raise ValueError(f"treecrf: {x_name}[{s}] is an empty sequence; leave it out")
    _check_label_types(y, y_name)
    return X, y


def _distinct_labels(y: LabelSequences) -> list[str]:
    """The labels in sorted order."""
    seen: set[str] = set()
    for labels in y:
        seen.update(label for label in labels if label is not None)
    if not seen:
        raise ValueError("treecrf: y holds no label at all; annotate at least one position")
    return sorted(str(label) for label in seen)


def _check_label_types(y: LabelSequences, name: str) -> None:
    for s, labels in enumerate(y):
        for t, label in enumerate(labels):
            if label is not None and not isinstance(label, str):
                raise ValueError(
                    f"treecrf: {name}[{s}][{t}] is {label!r}, a {type(label).__name__}; labels "
                    "are strings, or None where a position is not annotated"
                )


def _label_ids(
    y: LabelSequences, ids: dict[str, int], name: str, unseen: int | None = None
) -> npt.NDArray[np.int32]:
    known: dict[Any, int] = {None: UNKNOWN_LABEL, **ids}
    flat = [known.get(label, unseen) for labels in y for label in labels]
    if None in flat:
        s, t = next(
            (s, t)
            for s, labels in enumerate(y)
            for t, label in enumerate(labels)
            if label not in known
        )
        raise ValueError(
            f"treecrf: {name}[{s}][{t}] is {y[s][t]!r}, a label that the model does not have; "
            "fit a new one with warm_start=False"
        )
    return np.array(flat, np.int32)


def _row_weights(
    offsets: npt.NDArray[np.int64], weights: Sequence[float] | None
) -> npt.NDArray[np.float32]:
    """Weights of sequences spread over their rows."""
    n_sequences = len(offsets) - 1
    if weights is None:
        return np.ones(int(offsets[-1]), np.float32)
    array = _sequence_weights(weights, n_sequences)
    if not array.any():
        raise ValueError("treecrf: every sample_weight is zero; give some sequence a weight")
    return np.repeat(array, np.diff(offsets))


def _sequence_weights(weights: Sequence[float], n_sequences: int) -> npt.NDArray[np.float32]:
    array = np.asarray(weights, np.float32)
    if array.shape != (n_sequences,) or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(
            f"treecrf: sample_weight must hold one number of at least 0 for each of the "
            f"{n_sequences} sequences"
        )
    return array


def _refuse_forbidden(crf: CRF, data: Sequences) -> None:
    row = first_forbidden(data.labels, data.offsets, crf.masks)
    if row is not None:
        s = int(np.searchsorted(data.offsets, row, side="right")) - 1
        t = row - int(data.offsets[s])
        kind = crf.settings.constraints
        raise ValueError(
            f"treecrf: y[{s}][{t}] is {crf.labels[data.labels[row]]!r}, which "
            f"constraints={kind!r} do not allow at this place; correct the labels, or use "
            "constraints='observed' or 'none'"
        )


def _cut(rows: list[Any], offsets: npt.NDArray[np.int64]) -> Predictions:
    return Predictions(rows[a:b] for a, b in itertools.pairwise(offsets))
