"""The loop of rounds that all models share: callbacks, and early stopping on held-out data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import allowed_labels
from spacy_treecrf.engine.boosting.span_f1 import SpanCounts, SpanLabels, count_spans
from spacy_treecrf.engine.chain.chain import Chain, log_probability_of
from spacy_treecrf.engine.chain.prediction import predict_labels
from spacy_treecrf.engine.exact_sums import exact_terms, exact_total
from spacy_treecrf.engine.sequences import (
    BLOCK_ROWS,
    UNKNOWN_LABEL,
    Sequences,
    cut_sequences,
)
from spacy_treecrf.engine.threads import Workers

Learned = TypeVar("Learned", covariant=True)


@dataclass(frozen=True)
class RoundInfo:
    """What a callback learns after each round."""

    round: int  # from 1
    log_likelihood: float  # of the training data, per annotated row
    seconds: float  # since training began
    trees: int  # in the whole model
    held_out_log_likelihood: float | None = None  # per annotated row
    held_out_accuracy: float | None = None
    held_out_f1: float | None = None  # of spans, where labels spell spans
    monitor: str | None = None  # which held-out figure decides


Callback = Callable[[RoundInfo], None]


@dataclass(frozen=True)
class HeldOut:
    """Figures of the held-out data after a round."""

    log_likelihood: float  # per annotated row
    accuracy: float  # of annotated rows
    f1: float | None = None  # of spans; None: labels spell no spans


class RoundsInterrupted(KeyboardInterrupt):
    """Ctrl-C in the loop of rounds; `kept` is the best of those that are done."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept = kept


class RoundLearner(Protocol[Learned]):
    """What learns round by round, as the loop sees it."""

    @property
    def rounds(self) -> int:
        """How many rounds are done, in this training and before it."""
        ...

    @property
    def n_trees(self) -> int:
        """How many trees the whole model has."""
        ...

    @property
    def learned(self) -> Learned:
        """What was learned so far; it never changes afterwards."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to learn."""
        ...

    def round_log_likelihood(self) -> float:
        """Training log-likelihood per annotated row; nan where computing it would take long."""
        ...

    def learn_round(self) -> None:
        """Learn one more round (or some at once, where they do not depend on each other)."""
        ...

    def held_out_figures(self) -> HeldOut | None:
        """Figures of the held-out data now; None: there is none, or none for this round."""
        ...


@dataclass(frozen=True)
class Stopping:
    """When the loop stops early, and which round it keeps.

    patience: rounds without a better round, 0: never. monitor: "log_likelihood", "accuracy" or "f1"
    of the held-out data; "auto": f1 where labels spell spans, else `otherwise`. warm_up: rounds at
    the beginning that patience does not count, because trees had no say in them. from_start:
    whether what was there before the first round may be the best.
    """

    patience: int
    monitor: str
    otherwise: str = "log_likelihood"
    warm_up: int = 0
    from_start: bool = True

    def figure(self, figures: HeldOut) -> str:
        """The name of the figure that decides."""
        if self.monitor == "auto":
            return self.otherwise if figures.f1 is None else "f1"
        if self.monitor == "f1" and figures.f1 is None:
            raise ValueError(
                "treecrf: setting 'monitor' is 'f1', but the labels spell no spans (O, B-X, I-X, "
                "...); use 'auto', 'accuracy' or 'log_likelihood'"
            )
        return self.monitor

    def value(self, figures: HeldOut) -> tuple[float, float]:
        """What makes a round better than another: the figure, and after an equal F1 the likelihood.

        Few held-out spans have the same F1 in many rounds.
        """
        name = self.figure(figures)
        return getattr(figures, name), figures.log_likelihood if name == "f1" else 0.0

    def ends(self, rounds: int, risen_round: int, best_value: float) -> bool:
        """Whether to stop: the figure has not risen for too many rounds."""
        # Accuracy and F1 of 0: nothing was right yet, so that waiting told nothing.
        counted = rounds - max(risen_round, self.warm_up)
        return bool(self.patience) and best_value != 0.0 and counted >= self.patience


@dataclass
class BestRound:
    """The best round so far, of which a later run of the loop may go on."""

    learned: Any = None  # None: no round was judged
    value: tuple[float, float] = (-np.inf, 0.0)
    risen_round: int = -1  # when the figure last rose; -1: the loop has not begun


def run_rounds(
    learner: RoundLearner[Learned],
    rounds: int,
    stopping: Stopping,
    callback: Callback | None = None,
    best: BestRound | None = None,
) -> Learned:
    """Learn until `rounds` rounds are done in all; with held-out data, return the best of them.

    Ctrl-C raises `RoundsInterrupted`, with what would have been returned after the last round.
    best: Of earlier rounds, to go on from; it is kept up to date.
    """
    began = time.perf_counter()
    best = best or BestRound()
    if best.risen_round < 0:
        best.risen_round = learner.rounds
        if stopping.from_start and (start := learner.held_out_figures()):
            best.learned, best.value = learner.learned, stopping.value(start)
    try:
        while learner.rounds < rounds and not learner.finished:
            learner.learn_round()
            figures = learner.held_out_figures()
            if figures is not None and (value := stopping.value(figures)) > best.value:
                if value[0] > best.value[0]:  # not where only the tie was broken
                    best.risen_round = learner.rounds
                best.learned, best.value = learner.learned, value
            if callback:
                callback(_round_info(learner, time.perf_counter() - began, figures, stopping))
            risen, value = best.risen_round, best.value
            if figures is not None and stopping.ends(learner.rounds, risen, value[0]):
                break
    except KeyboardInterrupt as interrupt:
        kept = learner.learned if best.learned is None else best.learned
        raise RoundsInterrupted(kept) from interrupt
    found: Learned = learner.learned if best.learned is None else best.learned
    return found


def _round_info(
    learner: RoundLearner[Learned], seconds: float, figures: HeldOut | None, stopping: Stopping
) -> RoundInfo:
    info = RoundInfo(learner.rounds, learner.round_log_likelihood(), seconds, learner.n_trees)
    if figures is None:
        return info
    return replace(
        info,
        held_out_log_likelihood=figures.log_likelihood,
        held_out_accuracy=figures.accuracy,
        held_out_f1=figures.f1,
        monitor=stopping.figure(figures),
    )


class HeldOutCounts(NamedTuple):
    """What the figures of held-out data are made of; counts of several parts can be added."""

    log_likelihood: npt.NDArray[np.float64]  # shape: (n_terms,), see `exact_sums`
    n_annotated: int  # rows
    n_right: int
    spans: SpanCounts | None = None  # None: labels spell no spans

    def figures(self) -> HeldOut:
        n = max(1, self.n_annotated)
        f1 = None if self.spans is None else self.spans.f1
        return HeldOut(float(exact_total(self.log_likelihood)) / n, self.n_right / n, f1)


def figures_of(
    scores: npt.NDArray[np.float32],
    data: Sequences,
    chain: Chain,
    predictor: str,
    workers: Workers,
    spans: SpanLabels | None = None,
) -> HeldOut:
    """Log-likelihood and accuracy of annotated rows that have these scores, and F1 of spans."""
    return count_held_out(scores, data, chain, predictor, workers, spans).figures()


def count_held_out(
    scores: npt.NDArray[np.float32],
    data: Sequences,
    chain: Chain,
    predictor: str,
    workers: Workers,
    spans: SpanLabels | None = None,
) -> HeldOutCounts:
    """Count what the model that gives these scores gets right."""
    annotated = data.labels != UNKNOWN_LABEL
    labels = predict_labels(scores, data, chain, predictor, workers)
    return HeldOutCounts(
        exact_terms(possible_log_likelihoods(scores, data, chain)),
        int(annotated.sum()),
        int((labels == data.labels)[annotated].sum()),
        None if spans is None else count_spans(data.labels, labels, data.offsets, spans),
    )


def kept_line(kept: int, last: int, monitor: str, value: float | None) -> str:
    """What early stopping chose, for people: "kept round 34 of 60 (dev F1 41.2)"."""
    if value is None:
        return f"kept round {kept} of {last}: none was better"
    shown = f"log-likelihood {value:.4f}"
    if monitor == "f1":
        shown = f"F1 {100 * value:.1f}"
    elif monitor == "accuracy":
        shown = f"accuracy {value:.2%}"
    return f"kept round {kept} of {last} (dev {shown})"


def possible_log_likelihood(
    scores: npt.NDArray[np.float32], data: Sequences, chain: Chain
) -> float:
    """log P(annotation) of all sequences but those whose annotation hard constraints forbid."""
    return float(exact_total(possible_log_likelihoods(scores, data, chain)))


def possible_log_likelihoods(
    scores: npt.NDArray[np.float32], data: Sequences, chain: Chain
) -> npt.NDArray[np.float64]:
    """log P(annotation) of each sequence, 0 where hard constraints forbid it. (n_sequences,)

    No round can change what is forbidden, so that it does not count.
    """
    log_p = np.empty(data.n_sequences)
    for first, last in cut_sequences(data.offsets, BLOCK_ROWS):
        rows = data.rows_of((first, last))
        allowed = allowed_labels(data.labels[rows], chain.n_labels)
        offsets = data.offsets[first : last + 1] - rows.start
        log_p[first:last] = log_probability_of(scores[rows], offsets, chain, allowed)
    log_p[np.isneginf(log_p)] = 0.0
    return log_p


def refuse_forbidden_labels(constraints: str) -> None:
    """Say that hard constraints forbid what is annotated."""
    raise ValueError(
        f"treecrf: constraints={constraints!r} forbid labels of the training data; correct the "
        "labels, or use constraints='observed' or 'none'"
    )
