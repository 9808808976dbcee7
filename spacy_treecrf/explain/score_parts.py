"""What the scores of each kind of model are sums of: weights of features, trees, detectors.

The score of label y at a row is bias[y] + sum_c classes[y, c] * (weights + trees of class c), and
what detectors push. A class is a label; in an output code whose bits are trained together it is a
bit, and `classes` holds the code words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import Incomplete
from spacy_treecrf.engine.future.detectors import Detector, push, thermometer
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest, empty_forest
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.memm.base import MEMMBase
from spacy_treecrf.models.memm.detector_words import describe_detector
from spacy_treecrf.models.memm.future_features import FutureMEMM
from spacy_treecrf.models.memm.memm import MEMM
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.perceptron import Perceptron
from spacy_treecrf.models.secoc.model import SECOCModel

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ScoreParts:
    """The parts of a model's scores.

    columns: What features and numeric columns mean.
    classes: (n_labels, n_classes), how much each class counts for each label.
    bias: (n_labels,)
    categorical: (n_features, n_classes), weights of features.
    bin_scores: (n_linear, n_bins, n_classes), weights of the bins of the first numeric columns.
    history: (order, n_labels + 1, n_classes), weights of previous labels.
    forest: Trees of classes; previous labels are contexts.
    edges: (n_labels + 1, n_labels), learned transitions; the last row is for first labels.
    order: How many previous labels the chain sees.
    right_to_left: Whether "previous" means the labels that follow.
    local: Whether a row's scores depend on no other row.
    reason: Why scores are no sums; empty if they are.
    curve: What the sum of all parts at a row is divided by; None: nothing.
    """

    columns: Columns
    classes: Doubles
    bias: Doubles
    categorical: Floats
    bin_scores: Floats
    history: Floats
    forest: Forest
    edges: Floats
    masks: Masks
    order: int
    detectors: tuple[Detector, ...] = ()
    detector_names: tuple[str, ...] = field(default=())
    incomplete: Incomplete | None = None
    right_to_left: bool = False
    local: bool = True
    reason: str = ""
    curve: TemperatureCurve | None = None

    @property
    def context_order(self) -> int:
        """How many previous labels weights and trees may look at."""
        return len(self.history)


@singledispatch
def score_parts(model: SequenceModel) -> ScoreParts:
    """The parts of the scores of a model."""
    raise ValueError(
        f"treecrf: models of the kind {type(model).__name__} cannot be explained; use one of those "
        "that spacy_treecrf trains"
    )


@score_parts.register
def _of_crf(model: CRF) -> ScoreParts:
    potentials, scorer = model.potentials, model.scorer
    n_labels = len(model.labels)
    return ScoreParts(
        columns=model.columns,
        classes=np.eye(n_labels),
        bias=np.zeros(n_labels),
        categorical=potentials.linear.categorical,
        bin_scores=potentials.linear.bin_scores(model.columns.bin_values),
        history=_no_history(n_labels, model.settings.context_order),
        forest=potentials.forest,
        edges=potentials.edges if model.settings.order else np.zeros_like(potentials.edges),
        masks=model.masks,
        order=model.settings.order,
        incomplete=scorer.trees.incomplete,
        local=model.curve is None,
        curve=model.curve,
    )


@score_parts.register
def _of_memm(model: MEMM) -> ScoreParts:
    history, linear = model.history, model.potentials.linear
    n_labels, own = len(model.labels), model.history.n_features
    return replace(
        _of_any_memm(model),
        categorical=linear.categorical[own:],
        bin_scores=linear.bin_scores(model.columns.bin_values),
        history=linear.categorical[:own].reshape(history.order, n_labels + 1, n_labels),
    )


@score_parts.register
def _of_future_memm(model: FutureMEMM) -> ScoreParts:
    names = tuple(
        describe_detector(detector, model.columns, model.labels[detector.label], model.settings, 1)
        for detector in model.potentials.detectors
    )
    return replace(
        _of_any_memm(model),
        detectors=model.potentials.detectors,
        detector_names=names,
        local=False,
    )


def _of_any_memm(model: MEMMBase) -> ScoreParts:
    """The parts that all MEMMs have: the scores before they are normalised."""
    n_labels, settings = len(model.labels), model.settings
    nothing = LinearWeights.nothing(
        len(model.columns.counts), len(model.columns.bin_values), n_labels
    )
    return ScoreParts(
        columns=model.columns,
        classes=np.eye(n_labels),
        bias=np.zeros(n_labels),
        categorical=nothing.categorical,
        bin_scores=nothing.bin_scores(model.columns.bin_values),
        history=_no_history(n_labels, settings.order),
        forest=model.history.as_contexts(model.potentials.forest),
        edges=np.zeros((n_labels + 1, n_labels), np.float32),
        masks=model.masks,
        order=settings.order,
        right_to_left=settings.right_to_left,
        local=not (settings.right_to_left or model.searches),
    )


@score_parts.register
def _of_perceptron(model: Perceptron) -> ScoreParts:
    if model.settings.method == "voted":
        return _no_sum(
            model,
            "a voted perceptron counts votes, which are no sum over features; train with "
            "method='averaged' to see contributions",
        )
    n_labels, average = len(model.labels), model.learned.average
    linear = LinearWeights(
        average.categorical.astype(np.float32), average.numeric.astype(np.float32)
    )
    edges = average.edges.astype(np.float32)
    return ScoreParts(
        columns=model.columns,
        classes=np.eye(n_labels),
        bias=np.zeros(n_labels),
        categorical=linear.categorical,
        bin_scores=linear.bin_scores(model.columns.bin_values),
        history=_no_history(n_labels, 0),
        forest=empty_forest(),
        edges=edges if model.settings.order else np.zeros_like(edges),
        masks=model.masks,
        order=model.settings.order,
    )


@score_parts.register
def _of_secoc(model: SECOCModel) -> ScoreParts:
    if model.settings.training != "joint":
        return _no_sum(
            model,
            "the bits of this output code were trained one by one, and a label's score compares "
            "their probabilities to its code word: no sum over features; train with "
            "training='joint' to see contributions",
        )
    linear = model.potentials.linear
    return replace(
        _no_sum(model, ""),
        classes=model.code.astype(np.float64) - 0.5,
        categorical=linear.categorical,
        bin_scores=linear.bin_scores(model.columns.bin_values),
        forest=model.potentials.forest,
        local=True,
    )


def _no_sum(model: Perceptron | SECOCModel, reason: str) -> ScoreParts:
    """Parts of a model whose scores are no sums, but for transitions."""
    n_labels = len(model.labels)
    nothing = LinearWeights.nothing(len(model.columns.counts), 0, n_labels)
    edges = np.zeros((n_labels + 1, n_labels), np.float32)
    if isinstance(model, SECOCModel) and model.chain.order:
        edges = model.label_chain.edges
    return ScoreParts(
        columns=model.columns,
        classes=np.eye(n_labels),
        bias=np.zeros(n_labels),
        categorical=nothing.categorical,
        bin_scores=np.zeros((0, 0, n_labels), np.float32),
        history=_no_history(n_labels, 0),
        forest=empty_forest(),
        edges=edges,
        masks=model.masks,
        order=model.chain.order,
        local=False,
        reason=reason,
    )


def _no_history(n_labels: int, order: int) -> Floats:
    return np.zeros((order, n_labels + 1, n_labels), np.float32)


def with_detectors(
    parts: ScoreParts, model: SequenceModel, data: Sequences, workers: Workers
) -> tuple[Sequences, Floats]:
    """Rows as the trees see them, in reading order, and what each detector pushes.

    The pushes have the shape (n_rows, n_detectors).
    """
    if not isinstance(model, FutureMEMM) or not parts.detectors:
        return data, np.zeros((data.n_rows, 0), np.float32)
    qs = model.detector_scorer.bag_probabilities(data, workers)
    pushes = [push(detector, q) for detector, q in zip(parts.detectors, qs, strict=True)]
    numeric = np.ascontiguousarray(np.concatenate([data.numeric, thermometer(qs).T], axis=1))
    return replace(data, numeric=numeric), np.stack(pushes, axis=1)
