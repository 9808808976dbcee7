"""Gradient-tree-boosted conditional random fields for sequence labelling."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy_treecrf.estimators import BoostedCRF

__version__ = "0.1.0"
__all__ = ["BoostedCRF", "__version__"]


def __getattr__(name: str) -> Any:
    # Loading the estimator loads numba; every `spacy.blank()` imports this package, so wait.
    if name == "BoostedCRF":
        from spacy_treecrf.estimators import BoostedCRF

        return BoostedCRF
    raise AttributeError(f"module 'spacy_treecrf' has no attribute {name!r}")
