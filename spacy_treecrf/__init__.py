"""Gradient-tree-boosted conditional random fields for sequence labelling."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy_treecrf.estimators import (
        SECOCCRF,
        BoostedCRF,
        BoostedMEMM,
        FutureFeatureMEMM,
        Lattice,
        PerceptronTagger,
    )

__version__ = "0.2.0"
__all__ = [
    "SECOCCRF",
    "BoostedCRF",
    "BoostedMEMM",
    "FutureFeatureMEMM",
    "Lattice",
    "PerceptronTagger",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # Loading the estimators loads numba; every `spacy.blank()` imports this package, so wait.
    if name in __all__:
        from spacy_treecrf import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'spacy_treecrf' has no attribute {name!r}")
