"""`nlp.memory_zone()`: what the pipe keeps of the words of a zone ends with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.features import extractor as extractor_module
from spacy_treecrf.features.extractor import Extractor
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp

FEATURES = {"document": ["neighbours", "repeated"], "gazetteers": {"place": ["New York", "Rome"]}}
TEXTS = [f"Ann saw new{i} words in Rome and word{i}" for i in range(20)]


def kept_words(nlp: Language) -> list[int]:
    """How many keys each cache and each table of words holds."""
    features = pipe_of(nlp).features
    assert isinstance(features, Extractor)
    assert features._cache is not None
    caches = [0 if own._keys is None else len(own._keys) for own in features._cache.sources]
    tables = [len(own._words) for own in features.sources if hasattr(own, "_words")]
    tables += [len(own.words._words) for own in features.sources if hasattr(own, "words")]
    return caches + tables


def labels(nlp: Language, texts: list[str]) -> list[Any]:
    return [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in nlp.pipe(texts)]


def test_caches_are_emptied_at_the_end_of_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = trained_nlp(features=FEATURES)
    expected = labels(nlp, TEXTS)
    monkeypatch.setattr(extractor_module, "KEPT_WORDS", 3)
    for _ in range(2):
        with nlp.memory_zone():
            assert labels(nlp, TEXTS) == expected
            assert max(kept_words(nlp)) > 20
        assert max(kept_words(nlp)) <= 3
    assert labels(nlp, TEXTS) == expected


def test_few_words_are_kept_for_the_next_zone() -> None:
    nlp = trained_nlp(features=FEATURES)
    with nlp.memory_zone():
        labels(nlp, TEXTS)
        within = kept_words(nlp)
    assert kept_words(nlp) == within


def test_a_zone_that_raises_is_emptied_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = trained_nlp(features=FEATURES)
    monkeypatch.setattr(extractor_module, "KEPT_WORDS", 3)
    with suppress(KeyError), nlp.memory_zone():
        labels(nlp, TEXTS)
        raise KeyError
    assert max(kept_words(nlp)) <= 3


def test_features_that_keep_nothing_need_not_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = trained_nlp()
    monkeypatch.delattr(Extractor, "forget")
    with nlp.memory_zone():
        assert isinstance(nlp("Ann slept"), Doc)
