"""docs/models/future_features.md: the estimators and architectures that it names exist."""

from __future__ import annotations

import re

from spacy.util import registry

import spacy_treecrf
from tests.fresh_environment import ROOT

TEXT = (ROOT / "docs" / "models" / "future_features.md").read_text(encoding="utf8")


def test_estimators_and_architectures_exist() -> None:
    for name in set(re.findall(r"`((?:Boosted|Future)\w+)\(", TEXT)):
        assert hasattr(spacy_treecrf, name)
    for name in set(re.findall(r"spacy_treecrf\.\w+MEMM\.v1", TEXT)):
        assert registry.architectures.get(name)


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{6,}$", TEXT, flags=re.MULTILINE)
