"""Estimators with the calls of scikit-learn and sklearn-crfsuite: feature dicts in, labels out.

Users and columnar import them; they import models and the engine, and never spaCy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spacy_treecrf.estimators.base import NotFittedError, Predictions, SequenceEstimator

if TYPE_CHECKING:
    from spacy_treecrf.estimators.boosted_crf import BoostedCRF
    from spacy_treecrf.estimators.future_features import FutureFeatureMEMM
    from spacy_treecrf.estimators.memm import BoostedMEMM
    from spacy_treecrf.estimators.perceptron import PerceptronTagger
    from spacy_treecrf.estimators.secoc import SECOCCRF
    from spacy_treecrf.estimators.soft_targets import Lattice

# Where they are: imported when first used, because each takes its time.
MODULES = {
    "BoostedCRF": "boosted_crf",
    "BoostedMEMM": "memm",
    "FutureFeatureMEMM": "future_features",
    "Lattice": "soft_targets",
    "PerceptronTagger": "perceptron",
    "SECOCCRF": "secoc",
}
__all__ = [
    "SECOCCRF",
    "BoostedCRF",
    "BoostedMEMM",
    "FutureFeatureMEMM",
    "Lattice",
    "NotFittedError",
    "PerceptronTagger",
    "Predictions",
    "SequenceEstimator",
]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return getattr(import_module(f"spacy_treecrf.estimators.{MODULES[name]}"), name)
    raise AttributeError(f"module 'spacy_treecrf.estimators' has no attribute {name!r}")
