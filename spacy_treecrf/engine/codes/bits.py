"""One bit of an output code: a chain of two labels, learned by boosting or by the perceptron."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.boosting import Booster, make_chain
from spacy_treecrf.engine.boosting.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import StepPotentials
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.chain.prediction import predict_marginals
from spacy_treecrf.engine.codes.cascade import cascade_bin_values
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.perceptron.learning import (
    draw_order,
    perceptron_pass,
    training_rows,
    zero_weights,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]

TWO = ["0", "1"]
_NO_MASKS = constrain("none", TWO, order=0)
# The scores of a perceptron's bit are scaled to this mean size, which leaves most bits in doubt.
MEAN_SCORE = 1.0


def with_cascade(columns: Columns, n_bits: int) -> Columns:
    """The columns, followed by the numeric columns of `n_bits` earlier bits."""
    if not n_bits:
        return columns
    values = cascade_bin_values(n_bits)
    return replace(
        columns,
        numeric_names=[*columns.numeric_names, *(f"cascade[{i}]" for i in range(len(values)))],
        bin_values=np.concatenate([columns.bin_values, values]),
    )


def boosted_bit(data: Sequences, columns: Columns, settings: Settings) -> Potentials:
    """The potentials of a bit, learned by boosting.

    data: Its labels are the values of the bit, 0 and 1, or -1 where a row is not annotated.
    settings: Settings resolved for two labels.
    """
    booster = Booster(data, columns, 2, _NO_MASKS, settings, Workers(1))
    assert settings.rounds is not None
    return booster.boost(settings.rounds)


def perceptron_bit(
    data: Sequences, columns: Columns, rounds: int, order: int, seed: int
) -> Potentials:
    """The potentials of a bit, learned by the averaged perceptron; `data` is as in `boosted_bit`.

    A perceptron's scores have no scale of their own, and the one of highest likelihood on the
    training data would be huge: they are scaled to a mean size of MEAN_SCORE.
    """
    shape = (len(columns.counts), len(columns.bin_values), 2)
    weights, totals = zero_weights(*shape), zero_weights(*shape)
    rows = training_rows(data, columns.bin_values)
    no_masks = StepPotentials(order, np.zeros((3, 2)), np.zeros(2))
    for round_ in range(rounds):
        sequences = draw_order(data.n_sequences, seed, round_)
        steps = float(round_ * data.n_sequences)
        perceptron_pass(rows, sequences, no_masks, 0, weights, totals, steps)
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
    """P(bit = 1 | the whole sequence) at every row. shape: (n_rows,)"""
    chain = make_chain(edges, _NO_MASKS, order)
    marginals = predict_marginals(scorer.score(data, workers), data, chain, workers)
    return marginals[:, 1].astype(np.float32)
