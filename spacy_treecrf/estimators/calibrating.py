"""Calibration of estimators, by held-out sequences or by cross-fitting."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from spacy_treecrf.engine.row_storage import IN_MEMORY
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences, checked
from spacy_treecrf.estimators.encoding import encode_held_out
from spacy_treecrf.estimators.progress import watched
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import are_span_labels
from spacy_treecrf.models.calibration.folds import Fold, check_folds, cut_into_folds, names_of
from spacy_treecrf.models.calibration.search import (
    HeldOutLabels,
    Wanted,
    can_lower_outside,
    found_correction,
    require_outside,
)
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.models.predictor import Predictor

# Sequences that a fitted estimator has not learned from, and their labels.
Judged = tuple[SequenceEstimator, FeatureSequences, LabelSequences]


def correction_by(judged: Sequence[Judged], wanted: Wanted) -> Correction:
    """What makes the probabilities of estimators honest on sequences that they have not seen."""
    with ExitStack() as stack:
        return found_correction([_scored(one, stack) for one in judged], wanted)


def _scored(judged: Judged, stack: ExitStack) -> HeldOutLabels:
    estimator, X, y = judged
    model = estimator.model_
    ids = {label: i for i, label in enumerate(estimator.classes_)}
    data = encode_held_out(X, y, model.columns, ids, IN_MEMORY, ("X", "y"))
    predictor: Predictor = stack.enter_context(estimator._predictor())
    return HeldOutLabels.of(predictor, data, data.labels)


def lowers_outside(estimator: SequenceEstimator, outside: bool | None) -> bool:
    """Whether the label O is to be lowered; None: where the labels spell spans."""
    model = estimator.model_
    if outside is None:
        return can_lower_outside(model.labels, model.chain.order) and are_span_labels(model.labels)
    if outside:
        require_outside(model.labels, model.chain.order)
    return outside


def cross_fitted(
    estimator: SequenceEstimator,
    X: FeatureSequences,
    y: LabelSequences,
    folds: int,
    new: str | None,
) -> Iterator[Judged]:
    """Estimators that have each learned from all folds but one, and that one.

    They have the parameters and the number of rounds of `estimator`. new: See `folds_of`.
    """
    X, y = checked(X, y, "X", "y")
    if not estimator.rounds_:
        raise ValueError(
            "treecrf: this model has learned nothing by rounds of its own, which folds could "
            "repeat; calibrate it by held-out data, with calibrate"
        )
    parameters = estimator.get_params() | {
        "rounds": estimator.rounds_,
        "warm_start": False,
        "verbose": False,
        "callback": None,
    }
    for known, held in watched(folds_of(X, y, folds, new), estimator.verbose):
        fitted = type(estimator)(**parameters).fit([X[i] for i in known], [y[i] for i in known])
        known_labels = set(fitted.classes_)
        if any(label in known_labels for i in held for label in y[i]):  # else it tells nothing
            yield fitted, [X[i] for i in held], [y[i] for i in held]


def folds_of(X: FeatureSequences, y: LabelSequences, folds: int, new: str | None) -> list[Fold]:
    """Folds of sequences that follow each other; each is judged by what is learned from the others.

    new: A key of the feature dicts, such as that of the word. Sequences are then not learned from
    where a value of it that belongs to spans is one of the spans of the judged fold, too.
    """
    check_folds(folds, len(X), "sequences in X")
    names = None if new is None else span_values(X, y, new)
    found = cut_into_folds(len(X), folds, names)
    for known, held in found:
        if any(label is not None for i in known for label in y[i]):
            continue
        judged = f"the sequences {held[0]} to {held[-1]}"
        if new is None:
            raise ValueError(
                f"treecrf: y has labels for {judged} alone, and nothing else is left to learn "
                "from; annotate more sequences"
            )
        raise ValueError(
            f"treecrf: without the values of {new!r} that {judged} have in spans, nothing is left "
            "to learn from; use more folds, or leave new names out"
        )
    return found


def span_values(X: FeatureSequences, y: LabelSequences, key: str) -> list[set[Hashable]]:
    """The values of a key in the spans of each sequence that are more often in spans than not."""
    of_sequences = [
        [
            (item[key], label != OUTSIDE)
            for item, label in zip(items, labels, strict=True)
            if isinstance(item, Mapping) and key in item and label is not None
            if isinstance(item[key], Hashable)  # lists of values are no words
        ]
        for items, labels in zip(X, y, strict=True)
    ]
    if not any(in_span for pairs in of_sequences for _, in_span in pairs):
        raise ValueError(
            f"treecrf: new is {key!r}, and no item of X in a span has this key with one value; "
            "name the key of the word, or use new=None"
        )
    return names_of(of_sequences)
