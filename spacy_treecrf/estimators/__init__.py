"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out."""

from spacy_treecrf.estimators.base import NotFittedError, Predictions, SequenceEstimator
from spacy_treecrf.estimators.boosted_crf import BoostedCRF

__all__ = ["BoostedCRF", "NotFittedError", "Predictions", "SequenceEstimator"]
