"""Docs of few tokens go another way after some calls, which says what the first calls said."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.models.predictor import Predictor
from tests.pipeline.tiny_pipes import CORPUS, TASKS, pipe_of, trained_nlp, words_of

TEXTS = [words_of(sentence) for sentence in CORPUS]
TEXTS += [["Ann"], ["Ann", "Lee"] * 20, ["never", "seen", "Ünï", " ", "York"]]


def told(nlp: Language, words: list[str]) -> tuple[Any, ...]:
    doc = nlp(Doc(nlp.vocab, words))
    probabilities = [(ent.start, ent.end, ent.label_, ent._.treecrf_prob) for ent in doc.ents]
    spans = [(s.start, s.end, s.label_, s._.treecrf_prob) for g in doc.spans.values() for s in g]
    tokens = [(token.tag_, token.pos_, token._.treecrf_prob) for token in doc]
    kinds = [token._.get("tiny_kind") for token in doc if token.has_extension("tiny_kind")]
    return probabilities, spans, tokens, kinds


def first_and_later(nlp: Language, words: list[str]) -> list[tuple[Any, ...]]:
    """What the first call of a pipe says of a text, and what a call after many others says."""
    found = []
    for n_calls in (0, QUICK_AFTER + 2):
        again = type(nlp).from_config(nlp.config)
        again.from_bytes(nlp.to_bytes())
        for _ in range(n_calls):
            again(Doc(again.vocab, ["Bob", "slept"]))
        found.append(told(again, words))
    return found


@pytest.mark.parametrize("task", TASKS)
def test_later_calls_say_what_the_first_said(task: str) -> None:
    nlp = trained_nlp(task)
    for words in TEXTS:
        first, later = first_and_later(nlp, words)
        assert first == later


@pytest.mark.parametrize(
    "model",
    [
        {"rules": ["PERSON once", "PLACE after PERSON"]},
        {"predictor": "marginal"},
        {"order": 2},
        {"constraints": "observed"},
    ],
)
def test_later_calls_heed_settings(model: dict[str, Any]) -> None:
    nlp = trained_nlp("ents", model=model)
    for words in TEXTS:
        first, later = first_and_later(nlp, words)
        assert first == later


def test_later_calls_go_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = []
    apply_quickly = Predictor.apply_quickly

    def seen(self: Predictor, data: Any, marginals: bool) -> Any:
        scored = apply_quickly(self, data, marginals)
        quick.append(type(scored).__name__)
        return scored

    monkeypatch.setattr(Predictor, "apply_quickly", seen)
    nlp = trained_nlp("ents")
    assert np.isfinite(pipe_of(nlp).marginals(nlp("Ann saw Rome"))).all()
    for _ in range(QUICK_AFTER + 2):
        nlp("Ann saw Rome")
    assert "_KnownSequences" in quick


def test_the_first_calls_need_no_kernel_for_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = trained_nlp("ents")
    expected = told(nlp, TEXTS[0])
    again = type(nlp).from_config(nlp.config)
    again.from_bytes(nlp.to_bytes())
    for name in ("add_tree_scores", "add_linear_scores", "viterbi_bigram", "small_rows"):
        for module in [m for n, m in sys.modules.items() if n.startswith("spacy_treecrf.")]:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, None)
    assert told(again, TEXTS[0]) == expected
