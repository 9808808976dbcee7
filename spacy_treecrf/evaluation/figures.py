"""All figures of a judged data set, with bootstrap intervals over sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.evaluation.bootstrap import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    PairedDifference,
    Sums,
    intervals,
    paired_bootstrap,
)
from spacy_treecrf.evaluation.calibration import (
    CalibrationBins,
    Chance,
    calibration_bins,
    error_by_chance,
)
from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.evaluation.labels import Confusion, confusion, token_share
from spacy_treecrf.evaluation.significance import McNemar, mcnemar_on_tokens
from spacy_treecrf.evaluation.spans import SpanScore, scores_of_pairs
from spacy_treecrf.labels.biluo import Label
from spacy_treecrf.labels.schemes import are_span_labels, to_bio

N_BINS = 15
Progress = Callable[[Iterator[Sums]], Iterator[Sums]]

# What a sequence adds to the sums that the figures are made of; the bins of calibration follow.
RIGHT, ANNOTATED, ALL_RIGHT, HAS_LABELS, SPANS_RIGHT, SPANS_PREDICTED, SPANS_GOLD, NLL, KNOWN = (
    range(9)
)
N_COUNTS = 9


@dataclass(frozen=True)
class Figures:
    """How good a model is on one data set."""

    sequences: int
    tokens: int
    annotated: int
    figures: dict[str, Interval]  # by name; span figures only where labels mark spans
    per_type: dict[str, SpanScore]
    confusion: Confusion
    calibration: CalibrationBins
    chance: Chance | None  # what the calibration error may be by chance; None without resamples
    impossible: int  # sequences whose annotation is forbidden: not in the likelihood
    unseen: dict[str, int]  # gold labels that the model lacks: wrong, and not in the likelihood
    unaligned: int  # gold spans that the tokens cannot spell: missed, and not in the likelihood

    def to_json(self) -> dict[str, Any]:
        bins = self.calibration
        return {
            "sequences": self.sequences,
            "tokens": self.tokens,
            "annotated_tokens": self.annotated,
            "figures": {name: asdict(interval) for name, interval in self.figures.items()},
            "per_type": {
                name: {
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                    **asdict(score),
                }
                for name, score in self.per_type.items()
            },
            "confusion": [
                {"gold": gold, "predicted": predicted, "count": n}
                for (gold, predicted), n in sorted(self.confusion.counts.items())
            ],
            "calibration": [
                {"from": low, "to": high, "count": n, "confidence": p, "accuracy": share}
                for low, high, n, p, share in zip(
                    bins.edges[:-1].tolist(),
                    bins.edges[1:].tolist(),
                    bins.counts.tolist(),
                    bins.confidence.tolist(),
                    bins.accuracy.tolist(),
                    strict=True,
                )
                if n
            ],
            "calibration_floor": bins.floor,
            "calibration_by_chance": None if self.chance is None else asdict(self.chance),
            "impossible_sequences": self.impossible,
            "unseen_labels": self.unseen,
            "unaligned_gold_spans": self.unaligned,
        }


def figures_of(
    judged: Judged,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Progress = iter,
) -> Figures:
    spans = have_spans(judged)
    rows = _rows(judged, spans)
    statistics = dict(STATISTICS)
    if not spans:
        statistics = {name: own for name, own in statistics.items() if "span" not in name}
    return Figures(
        sequences=len(judged.gold),
        tokens=sum(map(len, judged.gold)),
        annotated=int(rows[:, ANNOTATED].sum()),
        figures=intervals(
            rows,
            statistics,
            resamples=resamples,
            confidence=confidence,
            seed=seed,
            progress=progress,
        ),
        per_type=scores_of_pairs(judged.spans()) if spans else {},
        confusion=confusion(judged.gold, judged.predicted),
        calibration=calibration_of(judged),
        chance=error_by_chance(*_gaps(judged), draws=resamples, confidence=confidence, seed=seed),
        impossible=int(np.isneginf(judged.log_likelihood).sum()),
        unseen=dict(sorted(judged.unseen.items())),
        unaligned=sum(map(len, judged.unaligned.values())),
    )


@dataclass(frozen=True)
class Comparison:
    """Two models on the same data."""

    sequences: int
    tokens: int
    mcnemar: McNemar
    token_accuracy: PairedDifference
    span_f1: PairedDifference | None  # None: the labels do not mark spans

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_judged(
    a: Judged,
    b: Judged,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Progress = iter,
) -> Comparison:
    """McNemar's test on tokens; paired bootstrap of token accuracy and of span F1."""
    gold, of_a, of_b = _on_common_labels(a, b)
    cut = a.cut and gold is a.gold
    options: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    labels = {label for labels in [*gold, *of_a, *of_b] for label in labels}
    spans = bool(a.unaligned) or are_span_labels(labels)
    rows_a, rows_b = (
        _label_rows(Judged(gold, own, cut=cut, unaligned=a.unaligned), spans)
        for own in (of_a, of_b)
    )
    f1 = None
    if spans:
        f1 = paired_bootstrap(rows_a, rows_b, STATISTICS["span_f1"], **options, progress=progress)
    accuracy = paired_bootstrap(
        rows_a, rows_b, STATISTICS["token_accuracy"], **options, progress=progress
    )
    n_tokens = int(rows_a[:, ANNOTATED].sum())
    test = mcnemar_on_tokens(gold, of_a, of_b)
    return Comparison(len(gold), n_tokens, test, accuracy, f1)


def have_spans(judged: Judged) -> bool:
    labels = {label for labels in (*judged.gold, *judged.predicted) for label in labels}
    return bool(judged.unaligned) or are_span_labels(labels)


def calibration_of(judged: Judged) -> CalibrationBins:
    """The calibration of the labels predicted at annotated positions."""
    probabilities, correct = _answers(judged)
    return calibration_bins(probabilities, correct, n_bins=N_BINS)


def _answers(judged: Judged) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    probabilities, correct, counted = _all_answers(judged)
    return probabilities[counted], correct[counted]


def _all_answers(
    judged: Judged,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The probability of the label at each position, whether it is right, whether it counts."""
    p = np.concatenate([np.zeros(0), *judged.probabilities])
    pairs = [
        pair
        for gold, predicted in zip(judged.gold, judged.predicted, strict=True)
        for pair in zip(gold, predicted, strict=True)
    ]
    correct = np.array([a == b for a, b in pairs], bool)
    annotated = np.array([a is not None for a, _ in pairs], bool)
    return p, correct, annotated & ~np.isnan(p)


def _label_rows(judged: Judged, spans: bool) -> npt.NDArray[np.float64]:
    rows = np.zeros((len(judged.gold), N_COUNTS))
    for s, (a, b) in enumerate(zip(judged.gold, judged.predicted, strict=True)):
        share = token_share(a, b)
        rows[s, RIGHT], rows[s, ANNOTATED] = share.right, share.total
        rows[s, ALL_RIGHT] = share.total > 0 and share.right == share.total
        rows[s, HAS_LABELS] = share.total > 0
    for s, (wanted, found) in enumerate(judged.spans() if spans else ()):
        rows[s, SPANS_RIGHT] = len(set(wanted) & set(found))
        rows[s, SPANS_PREDICTED], rows[s, SPANS_GOLD] = len(found), len(wanted)
    return rows


def _rows(judged: Judged, spans: bool) -> npt.NDArray[np.float64]:
    rows = _label_rows(judged, spans)
    log_likelihood = np.array(judged.log_likelihood)
    possible = np.isfinite(log_likelihood)
    rows[possible, NLL] = -log_likelihood[possible]
    rows[possible, KNOWN] = np.array(judged.known)[possible]
    gaps, counts = _gaps(judged)
    return np.hstack([rows, gaps, counts.sum(axis=1)[:, None]])


def _gaps(judged: Judged) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Sums of (label is right) - P(label), and numbers of labels, by sequence and bin of P."""
    p, correct, counted = _all_answers(judged)
    sequence = np.repeat(np.arange(len(judged.gold)), [len(labels) for labels in judged.gold])
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    bin_of = np.searchsorted(edges[1:-1], p[counted], side="left")
    place = sequence[counted], bin_of
    gaps, counts = np.zeros((2, len(judged.gold), N_BINS))
    np.add.at(gaps, place, correct[counted] - p[counted])
    np.add.at(counts, place, 1.0)
    return gaps, counts


def _ratio(sums: Sums, above: int, below: int) -> float:
    return float(sums[above] / sums[below]) if sums[below] else float("nan")


def _span_ratio(sums: Sums, below: int) -> float:
    return float(sums[SPANS_RIGHT] / sums[below]) if sums[below] else 0.0


def _f1(sums: Sums) -> float:
    both = sums[SPANS_PREDICTED] + sums[SPANS_GOLD]
    return float(2 * sums[SPANS_RIGHT] / both) if both else 0.0


def _calibration_error(sums: Sums) -> float:
    """The expected calibration error (Guo et al. 2017, eq. 3); counts of bins cancel out."""
    answers = sums[N_COUNTS + N_BINS]
    gaps = np.abs(sums[N_COUNTS : N_COUNTS + N_BINS])
    return float(gaps.sum() / answers) if answers else float("nan")


STATISTICS: dict[str, Callable[[Sums], float]] = {
    "token_accuracy": lambda sums: _ratio(sums, RIGHT, ANNOTATED),
    "sequence_accuracy": lambda sums: _ratio(sums, ALL_RIGHT, HAS_LABELS),
    "span_precision": lambda sums: _span_ratio(sums, SPANS_PREDICTED),
    "span_recall": lambda sums: _span_ratio(sums, SPANS_GOLD),
    "span_f1": _f1,
    "nll_per_token": lambda sums: _ratio(sums, NLL, KNOWN),
    "calibration_error": _calibration_error,
}


def _on_common_labels(
    a: Judged, b: Judged
) -> tuple[list[list[Label]], list[list[Label]], list[list[Label]]]:
    """The gold labels, A's and B's; as BIO where the models have different schemes of spans."""
    lengths = [[len(labels) for labels in own.gold] for own in (a, b)]
    if lengths[0] != lengths[1]:
        raise ValueError(
            "treecrf: the models cut the data into different sequences or tokens; compare models "
            "that read the same tokens"
        )
    if a.gold == b.gold:
        return a.gold, a.predicted, b.predicted
    if have_spans(a) and have_spans(b):
        gold_a, gold_b = ([to_bio(labels) for labels in own.gold] for own in (a, b))
        if gold_a == gold_b:
            predicted = ([to_bio(labels) for labels in own.predicted] for own in (a, b))
            of_a, of_b = predicted
            return gold_a, of_a, of_b
    raise ValueError(
        "treecrf: the models read different gold labels from the data; compare models of the same "
        "annotation, or use the same label column"
    )
