"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out."""

from __future__ import annotations

import itertools
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from inspect import signature
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.rounds import Callback
from spacy_treecrf.engine.chain.constraints import first_forbidden
from spacy_treecrf.engine.encoding.grown_columns import grown_columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.limits import check_nbest
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.setting import SettingsBase
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators.checking import (
    FeatureSequences,
    LabelSequences,
    check_labels,
    checked,
    distinct_labels,
    read_in_step,
    row_weights,
    sequence_weights,
    targets,
)
from spacy_treecrf.estimators.encoding import encode_held_out, encode_training
from spacy_treecrf.estimators.progress import Progress
from spacy_treecrf.models.model import (
    ModelSettings,
    Recipe,
    SequenceModel,
    Trainer,
    TrainingInterrupted,
)
from spacy_treecrf.models.model_kinds import INTEGER_LABELS, model_from_state
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.models.ruled import rules_of, with_rules
from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

    from spacy_treecrf.explain.explanation import SequenceExplanation, TokenExplanation


class NotFittedError(ValueError, AttributeError):
    """Raised when a model is used before `fit`; the same bases as scikit-learn's."""


class Predictions(list[list[Any]]):
    """A list of sequences; numpy sees one object for each, also where all have one length."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = np.empty(len(self), dtype=object)
        for i, sequence in enumerate(self):
            array[i] = sequence
        return array


class SequenceEstimator(ABC):
    """What all estimators have in common; each one names its parameters and makes its recipe."""

    # A slot, because a prediction must not change the attributes that scikit-learn compares.
    __slots__ = ("__dict__", "__weakref__", "_checked")
    _checked: _Checked
    _model_type: ClassVar[type[SequenceModel]]  # what `load` accepts
    _settings_type: ClassVar[type[SettingsBase]]  # what its parameters are, but for a few
    _takes_soft_labels: ClassVar[bool] = False
    model_: SequenceModel
    integer_labels_: bool = False  # whether labels are integers, whose texts the model has
    warm_start: bool
    verbose: bool
    callback: Callback | None

    @abstractmethod
    def _recipe(self) -> Recipe:
        """The parameters, checked."""

    @classmethod
    @abstractmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        """The parameters that made a model."""

    def _continued(self, model: SequenceModel) -> SequenceModel:
        """A model to go on with, under the parameters of now."""
        return self._recipe().continued(model)

    def _hold_out(self, data: Sequences, n_labels: int) -> tuple[Sequences, Sequences | None]:
        """What to train on and what to hold out, where no held-out part is given."""
        return data, None

    def _check_targets(self, y: LabelSequences) -> None:
        """Refuse labels that the parameters do not allow."""

    def _annotated(self, data: Sequences, annotators: Sequence[Any], n_labels: int) -> Sequences:
        """The data with labels that are what annotators say; see `BoostedCRF.fit`."""
        raise ValueError(f"treecrf: {type(self).__name__} knows no annotators; use BoostedCRF")

    def fit(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        X_dev: FeatureSequences | None = None,
        y_dev: LabelSequences | None = None,
        sample_weight: Sequence[float] | None = None,
    ) -> Self:
        """Learn from sequences; with a held-out part, stop early and keep the best round.

        sample_weight: one weight for each sequence. Ctrl-C keeps the rounds that are done: save
        the model, or go on with warm_start=True.
        """
        return self._fit(X, y, X_dev, y_dev, sample_weight)

    # Long: checks, columns, labels, model and training, each a few lines.
    def _fit(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        X_dev: FeatureSequences | None,
        y_dev: LabelSequences | None,
        sample_weight: Sequence[float] | None,
        annotators: Sequence[Any] | None = None,
    ) -> Self:
        recipe = self._recipe()
        if y is None:
            raise ValueError("treecrf: fit requires y to be passed, but the target y is None")
        if (X_dev is None) != (y_dev is None):
            raise ValueError("treecrf: pass both X_dev and y_dev, or neither")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"treecrf: callback is {self.callback!r}; use a function, or None")
        storage = recipe.storage.check()
        started = getattr(self, "model_", None) if self.warm_start else None
        if isinstance(X, Iterator):
            sequences, y = read_in_step(X, y)
            columns, encoded = encode_training(sequences, recipe.settings, started, storage)
            check_labels(y, "y", self._takes_soft_labels)
            self._check_targets(y)
            classes = distinct_labels(y) if started is None else self.classes_
        else:
            X, y = checked(X, y, "X", "y", self._takes_soft_labels)
            self._check_targets(y)
            classes = distinct_labels(y) if started is None else self.classes_
            columns, encoded = encode_training(X, recipe.settings, started, storage)
        offsets = encoded[0]
        ids = {label: i for i, label in enumerate(classes)}
        weights = row_weights(offsets, sample_weight)
        labels, soft = targets(y, ids, "y")
        data = Sequences(*encoded, labels, weights, soft)
        if annotators is not None:
            data = self._annotated(data, annotators, len(classes))
        if started is None:
            model = recipe.new([str(label) for label in classes], columns, data)
            _refuse_forbidden(model, data)
        else:
            model = self._continued(started)
        held_out: Sequences | None
        if X_dev is not None and y_dev is not None:
            held_out = encode_held_out(X_dev, y_dev, columns, ids, storage)
        else:
            data, held_out = self._hold_out(data, len(classes))
        self.integer_labels_ = isinstance(classes[0], int)
        with Workers(recipe.settings.threads, storage) as workers:
            self._train(model.trainer(data, workers, held_out))
        return self

    def add_features(self, X: FeatureSequences) -> Self:
        """Let a fitted model know features of X that it does not know, such as new words.

        They count nothing until `fit` with warm_start=True learns them, so that predictions stay
        the same. A feature needs `min_count` rows of X. What is known keeps its meaning: numbers
        keep their bins.
        """
        model, settings = self._fitted(), self._settings()
        found, *_ = fit_columns(
            X,
            min_count=settings.min_count,
            max_bins=settings.max_bins,
            missing=model.columns.missing,
        )
        self.model_ = model.with_columns(grown_columns(model.columns, found))
        return self

    def _train(self, trainer: Trainer) -> None:
        """Train all rounds, or those that an interrupt leaves, and keep the model."""
        rounds = trainer.model.settings.rounds
        assert rounds is not None  # a model's are decided
        with Progress(self.callback, rounds, self.verbose) as progress:
            try:
                self.model_ = trainer.train(rounds, progress)
                progress.say_kept(self.model_.rounds)
            except TrainingInterrupted as interrupt:
                self.model_ = interrupt.model
                raise

    def predict(self, X: FeatureSequences) -> list[list[Any]]:
        """The label sequences of X."""
        model = self._fitted()
        name = self.classes_.__getitem__
        settings = self._settings()
        quick = None if rules_of(settings) else model.quick
        if quick is not None and (ids := quick.labels(X, settings.predictor)) is not None:
            return Predictions([[*map(name, own)] for own in ids])
        found = Predictions()
        with Workers(settings.threads) as workers:
            predictor = Predictor(model, workers, settings.predictor, rules_of(settings))
            for data in encoded(model, X):
                names = list(map(name, predictor.labels(data).tolist()))
                found += _cut(names, data.offsets)
        return found

    def predict_single(self, x: Sequence[Any]) -> list[Any]:
        """The labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: FeatureSequences) -> list[list[dict[Any, float]]]:
        """P(label) at every position, as a dict from labels to probabilities."""
        model = self._fitted()
        labels = self.classes_
        settings = self._settings()
        quick = None if rules_of(settings) else model.quick
        if quick is not None and (marginals := quick.marginals(X)) is not None:
            return Predictions(
                [[dict(zip(labels, row, strict=True)) for row in own] for own in marginals]
            )
        found = Predictions()
        with Workers(settings.threads) as workers:
            predictor = Predictor(model, workers, rules=rules_of(settings))
            for data in encoded(model, X):
                marginal_rows = predictor.marginals(data).tolist()
                rows = [dict(zip(labels, row, strict=True)) for row in marginal_rows]
                found += _cut(rows, data.offsets)
        return found

    def predict_marginals_single(self, x: Sequence[Any]) -> list[dict[Any, float]]:
        """P(label) at every position of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_nbest(self, X: FeatureSequences, n: int = 5) -> list[list[tuple[list[Any], float]]]:
        """The n most probable label sequences of each sequence, with their probabilities.

        n: Up to 100,000, and less for sequences of more than 335 positions: lists hold up to
        2**25 labels each.
        """
        n = check_nbest(n)
        model = self._fitted()
        labels = self.classes_
        settings = self._settings()
        with Workers(settings.threads) as workers:
            predictor = Predictor(model, workers, rules=rules_of(settings))
            best = [one for data in encoded(model, X) for one in predictor.nbest(data, n)]
        return [
            [
                ([labels[i] for i in path], float(np.exp(log_p)))
                for path, log_p in zip(paths, log_ps, strict=True)
            ]
            for paths, log_ps in best
        ]

    def explain(
        self,
        x: Sequence[Any],
        position: int,
        label: Any = None,
        against: Any = None,
        *,
        interactions: bool = False,
        effects: int = 10,
        replace: Mapping[str, Any] | None = None,
    ) -> TokenExplanation:
        """Why a position of one sequence gets its label, or how far it is from another one.

        label: The label to explain, by default the predicted one. against: A label to compare it
        to. interactions: Whether to find what pairs of features add together. effects: How many
        features to list by their effect on the probability. replace: Other values of keys; the
        effect of each is listed as well.
        """
        from spacy_treecrf.explain.sequence import ExplainedDicts, question_of

        question = question_of(self.classes_, label, against, interactions, effects)
        with self._predictor() as predictor:
            explained = ExplainedDicts.of(predictor, self.classes_, x)
            return explained.tokens([position], question, replace)[0]

    def explain_sequence(
        self,
        x: Sequence[Any],
        positions: Sequence[int] | None = None,
        *,
        texts: Sequence[str] | None = None,
        interactions: bool = False,
        effects: int = 10,
        nbest: int = 5,
    ) -> SequenceExplanation:
        """The labels of one sequence, their alternatives, and why positions get them.

        positions: Those to explain, by default all. texts: What to show for each position. nbest:
        How many labellings of the whole sequence to list. The rest is as in `explain`.
        """
        from spacy_treecrf.explain.sequence import ExplainedDicts, question_of

        question = question_of(self.classes_, None, None, interactions, effects)
        with self._predictor() as predictor:
            explained = ExplainedDicts.of(predictor, self.classes_, x)
            chosen = range(len(explained.dicts)) if positions is None else positions
            return explained.sequence(explained.tokens(chosen, question), nbest, texts)

    @contextmanager
    def _predictor(self) -> Iterator[Predictor]:
        settings = self._settings()
        with Workers(settings.threads) as workers:
            yield Predictor(self._fitted(), workers, settings.predictor, rules_of(settings))

    def score(
        self,
        X: FeatureSequences,
        y: LabelSequences,
        sample_weight: Sequence[float] | None = None,
    ) -> float:
        """Share of annotated positions that get their label; one unseen in training is wrong."""
        X, y = checked(X, y, "X", "y")
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = sequence_weights(sample_weight, len(y)).astype(float)
        right = total = 0.0
        for predicted, gold, weight in zip(self.predict(X), y, weights, strict=True):
            known = [(p, g) for p, g in zip(predicted, gold, strict=True) if g is not None]
            right += weight * sum(p == g for p, g in known)
            total += weight * len(known)
        return float(right / total) if total else float("nan")

    @property
    def classes_(self) -> list[Any]:
        """The labels, of the type that y had: strings or integers."""
        labels = self._fitted().labels
        return [int(label) for label in labels] if self.integer_labels_ else list(labels)

    @property
    def rounds_(self) -> int:
        """Rounds in the model; fewer than `rounds` after early stopping."""
        return self._fitted().rounds

    def save(self, path: str | os.PathLike[str], compact: bool = False) -> None:
        """Write the model to one file.

        compact: Make the file small. It predicts the same, but a boosted CRF in it cannot be
        trained further.
        """
        model = with_rules(self._fitted(), rules_of(self._settings()))
        model = model.compacted() if compact else model
        state = model.to_state()
        if self.integer_labels_:
            state[INTEGER_LABELS] = True
        container.save(path, state, small=compact)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model; a damaged or foreign file is refused with a ValueError."""
        state = container.read(path)
        model = model_from_state(state)
        if not isinstance(model, cls._model_type):
            raise ValueError(
                f"treecrf: the model file {os.fspath(path)!r} holds a {type(model).__name__}, not "
                f"what {cls.__name__} learns; load it with the estimator that saved it"
            )
        estimator = cls(**cls._parameters_of(model))
        estimator.model_ = model
        estimator.integer_labels_ = _has_integer_labels(state, model.labels)
        return estimator

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        found = dict(signature(cls.__init__).parameters)
        del found["self"]
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            if name not in self._parameters():
                known = ", ".join(self._parameters())
                raise ValueError(
                    f"treecrf: unknown parameter {name!r}; {type(self).__name__} has {known}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            name: getattr(self, name)
            for name, parameter in self._parameters().items()
            if getattr(self, name) is not parameter.default
            and getattr(self, name) != parameter.default
        }
        shown = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({shown})"

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, for copies and pickles; what was checked is checked again."""
        return self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            # Not "classifier": scikit-learn would stratify folds by label, and each y is many.
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False, dict=True),
            no_validation=True,
        )

    def _fitted(self) -> SequenceModel:
        model: SequenceModel | None = getattr(self, "model_", None)
        if model is None:
            # scikit-learn's own checks and tools expect its class; never import it for that.
            sklearn = sys.modules.get("sklearn.exceptions")
            error = sklearn.NotFittedError if sklearn else NotFittedError
            raise error(f"treecrf: this {type(self).__name__} is not fitted yet; call fit or load")
        return model

    def _settings(self) -> ModelSettings:
        """The parameters, checked where one was set since the last call."""
        values = [*map(vars(self).__getitem__, _parameter_names(type(self)))]
        checked = getattr(self, "_checked", None)
        if checked is None or not checked.are(values):
            lists = [(i, list(own)) for i, own in enumerate(values) if isinstance(own, list)]
            checked = _Checked(values, lists, self._recipe().settings)
            if not any(isinstance(value, SequenceEstimator) for value in values):
                self._checked = checked  # an estimator's own parameters may change
        return checked.settings


class _Checked(NamedTuple):
    """The values of an estimator's parameters, and the settings that they are.

    lists: Copies of those that are lists, by their numbers: lists may change in place.
    """

    values: list[Any]
    lists: list[tuple[int, list[Any]]]
    settings: ModelSettings

    def are(self, values: list[Any]) -> bool:
        return all(map(is_, values, self.values)) and all(values[i] == own for i, own in self.lists)


@lru_cache
def _parameter_names(estimator: type[SequenceEstimator]) -> tuple[str, ...]:
    return tuple(estimator._parameters())


def encoded(model: SequenceModel, X: FeatureSequences) -> Iterator[Sequences]:
    """The sequences to predict, in blocks that have the size of what they hold."""
    return (Sequences.unlabelled(*block) for block in model.columns.encode_blocks(X))


def _has_integer_labels(state: dict[str, Any], labels: list[str]) -> bool:
    reader = StateReader(state)
    if not (reader.has(INTEGER_LABELS) and reader.boolean(INTEGER_LABELS)):
        return False
    if not all(re.fullmatch("0|-?[1-9][0-9]{0,18}", label) for label in labels):
        reader.fail("labels", "integers", "other texts")
    return True


def _refuse_forbidden(model: SequenceModel, data: Sequences) -> None:
    chain = model.chain
    row = first_forbidden(data.labels, data.offsets, (chain.start, chain.trans, chain.end))
    if row is not None:
        s = int(np.searchsorted(data.offsets, row, side="right")) - 1
        t = row - int(data.offsets[s])
        raise ValueError(
            f"treecrf: y[{s}][{t}] is {model.labels[data.labels[row]]!r}, which "
            f"constraints={model.settings.constraints!r} do not allow at this place; correct the "
            "labels, or use constraints='observed' or 'none'"
        )


def _cut(rows: list[Any], offsets: npt.NDArray[np.int64]) -> Predictions:
    return Predictions(rows[a:b] for a, b in itertools.pairwise(offsets.tolist()))
