"""Training on a Dask cluster: the same model, bit for bit, as on one machine.

The command line and `distribute` may import this room; importing it loads dask and distributed,
which the extra `[dask]` installs. Modules that do not speak to the cluster do not import them, and
only `doc_parts`, which reads .spacy files, imports spaCy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy_treecrf.dask.doc_parts import doc_features, read_docs
    from spacy_treecrf.dask.estimator import DaskBoostedCRF
    from spacy_treecrf.dask.independent import average, independent_calls, output_code

__all__ = [
    "DaskBoostedCRF",
    "average",
    "doc_features",
    "independent_calls",
    "output_code",
    "read_docs",
]
_MODULES = {
    "DaskBoostedCRF": "estimator",
    "average": "independent",
    "doc_features": "doc_parts",
    "independent_calls": "independent",
    "output_code": "independent",
    "read_docs": "doc_parts",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: workers import this room for its other modules."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed", "fsspec"):
            raise
        raise ModuleNotFoundError(
            f"treecrf: spacy_treecrf.dask needs {error.name}, which is not installed; install "
            "spacy-treecrf[dask]",
            name=error.name,
        ) from error
