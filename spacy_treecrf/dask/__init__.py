"""Training on a Dask cluster: the same model, bit for bit, as on one machine.

Only the command line may import this room; importing it loads dask and distributed, which the extra
`[dask]` installs. Modules that do not speak to the cluster do not import them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy_treecrf.dask.estimator import DaskBoostedCRF

__all__ = ["DaskBoostedCRF"]


def __getattr__(name: str) -> Any:
    """Load the estimator when it is asked for: workers import this room for its other modules."""
    if name != "DaskBoostedCRF":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from spacy_treecrf.dask.estimator import DaskBoostedCRF
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed", "fsspec"):
            raise
        raise ModuleNotFoundError(
            f"treecrf: spacy_treecrf.dask needs {error.name}, which is not installed; install "
            "spacy-treecrf[dask]",
            name=error.name,
        ) from error
    return DaskBoostedCRF
