"""Whether what the extra "serve" installs is there."""

from __future__ import annotations

import importlib

PACKAGES = ("starlette", "uvicorn", "pydantic")


def require_serve() -> None:
    """Refuse to go on without the packages of the extra."""
    try:
        for name in PACKAGES:
            importlib.import_module(name)
    except ImportError as error:
        raise ValueError(
            'treecrf: `serve` needs starlette and uvicorn, the extra "serve" of spacy-treecrf; '
            'pip install starlette uvicorn, or pip install "spacy-treecrf[serve]"'
        ) from error
