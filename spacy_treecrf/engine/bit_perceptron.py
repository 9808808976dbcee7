"""One bit of an output code by the averaged perceptron."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.bit_boosting import Bit, Inputs
from spacy_treecrf.engine.forest import empty_forest
from spacy_treecrf.engine.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.perceptron import draw_order, perceptron_pass, zero_weights
from spacy_treecrf.engine.threads import Workers

MEAN_SCORE = 2.0


def learn_bit(
    inputs: Inputs,
    bits: npt.NDArray[np.int8],
    rounds: int,
    order: int,
    seed: int,
) -> Bit:
    """Two labels, whose difference of weights is the bit's.

    Scores of a perceptron have no scale, and that of the highest likelihood on what it has learned
    would be huge: they are scaled to a mean size of MEAN_SCORE, so that most bits stay in doubt.
    """
    data = inputs.data
    weights = zero_weights(inputs.n_features, len(inputs.bin_values), 2)
    totals = zero_weights(inputs.n_features, len(inputs.bin_values), 2)
    nothing = np.zeros((3, 2))
    labels = bits.astype(np.int32)
    for round_ in range(rounds):
        perceptron_pass(
            data.codes,
            data.numeric,
            inputs.bin_values,
            data.offsets,
            labels,
            data.weights,
            draw_order(data.n_sequences, seed, round_),
            order,
            nothing,
            np.zeros(2),
            0,
            weights,
            totals,
            float(round_ * data.n_sequences),
        )
    share = 1.0 / (rounds * data.n_sequences + 1)
    categorical, numeric, edges = (
        now - share * total for now, total in zip(weights, totals, strict=True)
    )
    linear = LinearWeights(
        np.ascontiguousarray((categorical[:, 1:] - categorical[:, :1]).astype(np.float32)),
        np.ascontiguousarray((numeric[:, 1:] - numeric[:, :1]).astype(np.float32)),
    )
    scores = linear_scores(data, linear, inputs.bin_values, Workers(1))
    size = float(np.mean(np.abs(scores))) if scores.size else 0.0
    factor = np.float32(MEAN_SCORE / size if size > 0.0 else 1.0)
    scaled = LinearWeights(linear.categorical * factor, linear.numeric * factor)
    return Bit(scaled, empty_forest(), edges.astype(np.float32) * factor)
