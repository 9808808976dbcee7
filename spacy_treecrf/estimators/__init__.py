"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out."""

from spacy_treecrf.estimators.base import NotFittedError, Predictions, SequenceEstimator
from spacy_treecrf.estimators.boosted_crf import BoostedCRF
from spacy_treecrf.estimators.future_features import FutureFeatureMEMM
from spacy_treecrf.estimators.memm import BoostedMEMM

__all__ = [
    "BoostedCRF",
    "BoostedMEMM",
    "FutureFeatureMEMM",
    "NotFittedError",
    "Predictions",
    "SequenceEstimator",
]
