"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out."""

from spacy_treecrf.estimators.base import NotFittedError, Predictions, SequenceEstimator
from spacy_treecrf.estimators.boosted_crf import BoostedCRF
from spacy_treecrf.estimators.perceptron import PerceptronTagger
from spacy_treecrf.estimators.secoc import SECOCCRF

__all__ = [
    "SECOCCRF",
    "BoostedCRF",
    "NotFittedError",
    "PerceptronTagger",
    "Predictions",
    "SequenceEstimator",
]
