"""The architectures MEMM and FutureFeatureMEMM in the pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from tests.pipeline.tiny_pipes import (
    CORPUS,
    TINY_FEATURES,
    corpus,
    example,
    labels_of,
    labels_on,
    new_doc,
    pipe_of,
    probabilities_on,
    spans_on,
    train,
    words_of,
)

COMMON: dict[str, Any] = {"min_rows": 1, "min_count": 1, "threads": 1}
MEMM = {"@architectures": "spacy_treecrf.MEMM.v1", "linear_rounds": 2, "leaves": 8, **COMMON}
FUTURE = {
    "@architectures": "spacy_treecrf.FutureFeatureMEMM.v1",
    "bag": 2,
    "dev_share": 0.0,
    **COMMON,
}
MODELS: dict[str, dict[str, Any]] = {
    "memm": MEMM,
    "memm order 2": {**MEMM, "order": 2},
    "memm from the right": {**MEMM, "right_to_left": True},
    "memm beam": {**MEMM, "search": "beam", "beam_width": 3},
    "memm greedy": {**MEMM, "search": "greedy"},
    "future": FUTURE,
    "future beam": {**FUTURE, "search": "beam", "order": 2},
}
models = pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))


def new_nlp(task: str, model: dict[str, Any], **settings: Any) -> Language:
    nlp = spacy.blank("xx")
    config = {"task": task, "model": model, "features": TINY_FEATURES, **settings}
    nlp.add_pipe("treecrf", config=config)
    return nlp


def trained_nlp(task: str, model: dict[str, Any], steps: int = 8, **settings: Any) -> Language:
    nlp = new_nlp(task, model, **settings)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps)
    return nlp


@models
@pytest.mark.parametrize("task", ["tag", "ents"])
def test_overfitting_IO(task: str, model: dict[str, Any], tmp_path: Path) -> None:
    nlp = new_nlp(task, model)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    losses = train(nlp, examples, 8)
    assert losses[-1] < 0.05 < losses[0]
    scores = nlp.evaluate(examples)
    assert scores["treecrf_score"] == 1.0
    assert scores["treecrf_nll"] < 0.05
    docs = [nlp(new_doc(nlp, sentence)) for sentence in CORPUS]
    assert [labels_on(doc, task) for doc in docs] == [labels_of(s, task) for s in CORPUS]

    nlp.to_disk(tmp_path)
    nlp2 = spacy.load(tmp_path)
    again = [nlp2(new_doc(nlp2, sentence)) for sentence in CORPUS]
    assert [labels_on(doc, task) for doc in again] == [labels_on(doc, task) for doc in docs]
    assert [probabilities_on(doc, task) for doc in again] == [
        probabilities_on(doc, task) for doc in docs
    ]


@models
def test_config_nlp_roundtrip(model: dict[str, Any]) -> None:
    nlp = new_nlp("ents", model)
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False)
    assert again.config["components"] == nlp.config["components"]
    shown = again.config["components"]["treecrf"]["model"]
    assert all(shown[name] == value for name, value in model.items())


@models
def test_probabilities_and_nbest(model: dict[str, Any]) -> None:
    nlp = trained_nlp("ents", model)
    doc = nlp(new_doc(nlp, CORPUS[1]))
    assert spans_on(doc, "ents")
    assert all(p is not None and 0.5 < p <= 1.0 + 1e-6 for p in probabilities_on(doc, "ents"))
    best = pipe_of(nlp).nbest(doc, 2)
    assert best[0][0] == labels_of(CORPUS[1], "ents")
    assert 0.5 < best[0][1] <= 1.0 + 1e-6
    marginals = pipe_of(nlp).marginals(doc)
    assert marginals.sum(axis=1) == pytest.approx(1.0, abs=1e-6)


@models
def test_labels_that_are_set_already_stay(model: dict[str, Any]) -> None:
    """Presets bind a search as they bind exact decoding."""
    nlp = trained_nlp("ents", model)
    doc = new_doc(nlp, CORPUS[0])
    words = words_of(CORPUS[0])
    preset = Doc(nlp.vocab, words=words)
    preset.set_ents([preset.char_span(0, len(words[0]), label="PLACE")], default="missing")
    plain = nlp(doc)
    assert plain.ents[0].label_ == "PERSON"
    kept = nlp(preset)
    assert (kept.ents[0].text, kept.ents[0].label_) == (words[0], "PLACE")


@models
def test_a_label_may_be_added_later(model: dict[str, Any]) -> None:
    nlp = trained_nlp("tag", model)
    before = [labels_on(nlp(new_doc(nlp, sentence)), "tag") for sentence in CORPUS]
    assert pipe_of(nlp).add_label("X") == 1
    assert [labels_on(nlp(new_doc(nlp, sentence)), "tag") for sentence in CORPUS] == before
    new = "quux|X|O"
    examples = [*corpus(nlp, "tag"), *[example(nlp, "tag", f"{new} {new}")] * 4]
    train(nlp, examples, 12)
    assert labels_on(nlp(new_doc(nlp, f"{new} {new}")), "tag") == ["X", "X"]


def test_no_data() -> None:
    nlp = new_nlp("tag", FUTURE)
    with pytest.raises(ValueError, match="learned nothing yet"):
        nlp("a b")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({**MEMM, "order": 7}, "order"),
        ({**MEMM, "search": "best"}, "search"),
        ({**FUTURE, "bag": 0}, "bag"),
        ({**FUTURE, "max_beta": -1.0}, "max_beta"),
    ],
)
def test_bad_settings_are_named(model: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"treecrf: setting '{name}'"):
        new_nlp("tag", model)
