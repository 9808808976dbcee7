"""The weights of a mixture, learned from words that no model of it has learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc

from spacy_treecrf.letters.ngram_model import Floats, Ints
from spacy_treecrf.letters.pronouncer import Pronouncer
from spacy_treecrf.letters.rescoring import Candidates, phonemes_of, plain_phonemes

ROUNDS = 50
ENOUGH = 1e-7  # of gain in log-likelihood per word

Right = npt.NDArray[np.bool_]  # whether each candidate is right


def learn_weights(
    words: Sequence[Candidates], features: Floats, gold: Sequence[Sequence[str]], ridge: float
) -> tuple[Floats, float]:
    """The weights that make the right pronunciations most probable, and their log-likelihood.

    It is the mean of two, per word: that of phonemes with their stress, and that of phonemes
    whatever their stress, as the best pronunciation is found. Words none of whose candidates is
    right tell nothing.

    gold: The phonemes of each word. ridge: Quadratic penalty, for each word.
    """
    of_word = np.repeat(np.arange(len(words)), [len(word.labels) for word in words])
    pairs = [
        (phonemes_of(labels), tuple(phonemes))
        for word, phonemes in zip(words, gold, strict=True)
        for labels in word.labels
    ]
    right = np.array([said == wanted for said, wanted in pairs])
    right_without = np.array(
        [plain_phonemes(said) == plain_phonemes(wanted) for said, wanted in pairs]
    )
    solved = np.bincount(of_word, right, len(words)) > 0
    if not solved.any():
        raise ValueError(
            "treecrf: no word has its right pronunciation among the candidates; train more, or "
            "raise the number of candidates"
        )
    use = solved[of_word]
    X, targets = features[use], (right[use], right_without[use])
    of_word = (np.cumsum(solved) - 1)[of_word[use]]
    weights = np.zeros(X.shape[1])
    weights[0] = 1.0
    value, gradient, curvature = _both(X, targets, of_word, weights, ridge)
    for _ in range(ROUNDS):
        step = np.linalg.solve(curvature, gradient)
        before, factor = value, 1.0
        while factor > 1e-6:
            tried = _both(X, targets, of_word, weights + factor * step, ridge)
            if tried[0] >= value:
                weights = weights + factor * step
                value, gradient, curvature = tried
                break
            factor /= 2
        if value - before < ENOUGH:
            break
    return weights, value + ridge * float(np.sum(weights**2)) / 2


def learn_from_docs(
    pronouncer: Pronouncer, docs: Sequence[Doc], ridge: float
) -> tuple[Floats, float]:
    """The weights for a pronouncer from annotated docs, and their log-likelihood per word."""
    places, words = pronouncer.find_candidates(docs)
    every = zip(words, pronouncer.gold_phonemes(docs, places), strict=True)
    annotated = [(word, phonemes) for word, phonemes in every if phonemes is not None]
    words, gold = [word for word, _ in annotated], [phonemes for _, phonemes in annotated]
    return learn_weights(words, pronouncer.features(words), gold, ridge)


def _both(
    X: Floats, targets: Sequence[Right], of_word: Ints, weights: Floats, ridge: float
) -> tuple[float, Floats, Floats]:
    """The means of what `_objective` finds for each of the targets."""
    found = [_objective(X, right, of_word, weights, ridge) for right in targets]
    values, gradients, curvatures = zip(*found, strict=True)
    return float(np.mean(values)), np.mean(gradients, axis=0), np.mean(curvatures, axis=0)


def _objective(
    X: Floats, right: Right, of_word: Ints, weights: Floats, ridge: float
) -> tuple[float, Floats, Floats]:
    """Penalised log-likelihood per word, its gradient, and a matrix that bounds its curvature.

    The log-likelihood is that of all right candidates of a word together; the matrix is the
    covariance of the features under the model, which is as in maximum entropy models.
    """
    n = int(of_word[-1]) + 1
    scores = X @ weights
    top = np.full(n, -np.inf)
    np.maximum.at(top, of_word, scores)
    shares = np.exp(scores - top[of_word])
    total = np.bincount(of_word, shares, n)
    good = np.maximum(np.bincount(of_word, shares * right, n), 1e-300)
    model = shares / total[of_word]
    clamped = shares * right / good[of_word]
    value = float(np.mean(np.log(good / total))) - ridge * float(np.sum(weights**2)) / 2
    gradient = X.T @ (clamped - model) / n - ridge * weights
    means = np.stack([np.bincount(of_word, model * x, n) for x in X.T], axis=1)
    curvature = (X.T * model) @ X / n - means.T @ means / n
    return value, gradient, curvature + (ridge + 1e-9) * np.eye(len(weights))
