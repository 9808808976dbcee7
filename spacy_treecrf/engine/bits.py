"""One bit of an output code: a chain of two labels, learned by boosting or by the perceptron."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting import Booster, make_chain, predict_marginals
from spacy_treecrf.engine.cascade import cascade_bin_values
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import constrain
from spacy_treecrf.engine.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.perceptron import draw_order, perceptron_pass, zero_weights
from spacy_treecrf.engine.potentials import Potentials, Scorer
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]

TWO = ["0", "1"]
_NO_MASKS = constrain("none", TWO, order=0)
# Mean size of the scores of a perceptron's bit: most bits stay in doubt.
MEAN_SCORE = 1.0


def with_cascade(columns: Columns, n_bits: int) -> Columns:
    """Columns with the numeric ones of so many earlier bits behind their own."""
    if not n_bits:
        return columns
    values = cascade_bin_values(n_bits)
    return replace(
        columns,
        numeric_names=[*columns.numeric_names, *(f"cascade[{i}]" for i in range(len(values)))],
        bin_values=np.concatenate([columns.bin_values, values]),
    )


def boosted_bit(data: Sequences, columns: Columns, settings: Settings) -> Potentials:
    """data.labels: 0, 1, or -1 where not annotated. settings: of two labels, and resolved."""
    booster = Booster(data, columns, 2, _NO_MASKS, settings, Workers(1))
    assert settings.rounds is not None
    return booster.boost(settings.rounds)


def perceptron_bit(
    data: Sequences, columns: Columns, rounds: int, order: int, seed: int
) -> Potentials:
    """The averaged perceptron of two labels.

    Its scores have no scale, and that of the highest likelihood on what it has learned would be
    huge: they are scaled to a mean size of MEAN_SCORE.
    """
    shape = (len(columns.counts), len(columns.bin_values), 2)
    weights, totals = zero_weights(*shape), zero_weights(*shape)
    for round_ in range(rounds):
        perceptron_pass(
            data.codes,
            data.numeric,
            columns.bin_values,
            data.offsets,
            data.labels,
            data.weights,
            draw_order(data.n_sequences, seed, round_),
            order,
            np.zeros((3, 2)),
            np.zeros(2),
            0,
            weights,
            totals,
            float(round_ * data.n_sequences),
        )
    share = 1.0 / (rounds * data.n_sequences + 1)
    categorical, numeric, edges = (
        (now - share * total).astype(np.float32) for now, total in zip(weights, totals, strict=True)
    )
    linear = LinearWeights(categorical, numeric)
    scores = linear_scores(data, linear, columns.bin_values, Workers(1))
    size = float(np.mean(np.abs(scores))) if scores.size else 0.0
    factor = np.float32(MEAN_SCORE / size if size > 0.0 else 1.0)
    linear = LinearWeights(categorical * factor, numeric * factor)
    return Potentials(edges * factor, linear, LinearWeights.zeros(*shape), (), 0)


def bit_probabilities(
    scorer: Scorer, edges: Floats, order: int, data: Sequences, workers: Workers
) -> Floats:
    """P(bit = 1) at every row, given all of its sequence. shape: (n_rows,)"""
    chain = make_chain(edges, _NO_MASKS, order)
    marginals = predict_marginals(scorer.score(data, workers), data, chain, workers)
    return marginals[:, 1].astype(np.float32)
