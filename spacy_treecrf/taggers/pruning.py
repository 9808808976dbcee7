"""The choice of weights that a CRF can do without: the largest threshold that costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from spacy_treecrf.evaluation.figures import figures_of
from spacy_treecrf.evaluation.judging import judge
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.crf import CRF

THRESHOLDS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
# A few labels that turn change a figure by less, whichever way: no reason to stop looking.
CLEAR_LOSS = 0.1  # percentage points


@dataclass(frozen=True)
class Trial:
    """A CRF without weights below a threshold, and how good it is on the dev data."""

    threshold: float | None  # None: the model as it was
    weights: int  # of features, other than 0
    figure: float  # in percent
    crf: CRF


def main_figure(tagger: Tagger, chunks: Iterable[Chunk]) -> tuple[str, float]:
    """Name and value, in percent, of span F1 where labels mark spans, else of token accuracy."""
    figures = figures_of(judge(tagger, chunks), resamples=0).figures
    name = "span_f1" if "span_f1" in figures else "token_accuracy"
    value = figures[name].value
    if value is None:
        raise ValueError("treecrf: the dev data have nothing to measure; pass annotated data")
    return name, 100.0 * value


def try_thresholds(crf: CRF, figure_of: Callable[[CRF], float]) -> Iterator[Trial]:
    """The model as it is, and then without more and more weights, to the first clear loss.

    figure_of: How good a model is on the dev data, in percent.
    """
    whole: float | None = None
    for threshold in (None, *THRESHOLDS):
        smaller = crf if threshold is None else crf.without_small_weights(threshold)
        n_weights = int(np.count_nonzero(smaller.potentials.linear.categorical))
        trial = Trial(threshold, n_weights, figure_of(smaller), smaller)
        yield trial
        whole = trial.figure if whole is None else whole
        if trial.figure < whole - CLEAR_LOSS:
            return


def best_trial(trials: list[Trial]) -> Trial:
    """The trial of the largest threshold that is as good as the whole model, which is the first."""
    return [trial for trial in trials if trial.figure >= trials[0].figure][-1]
