"""Output codes and perceptrons in the pipe: the same tasks, probabilities and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from spacy_treecrf.models.perceptron import Perceptron
from spacy_treecrf.models.secoc.recipe import SECOC
from spacy_treecrf.storage import container
from tests.pipeline.tiny_pipes import (
    CORPUS,
    TINY_FEATURES,
    TINY_MODEL,
    corpus,
    labels_of,
    labels_on,
    new_doc,
    pipe_of,
    probabilities_on,
    train,
)

PERCEPTRON = {"@architectures": "spacy_treecrf.Perceptron.v1", "threads": 1}
BASE = {**TINY_MODEL, "rounds": 8}
MODELS: dict[str, dict[str, Any]] = {
    "averaged": PERCEPTRON,
    "voted": {**PERCEPTRON, "method": "voted"},
    "joint training": {"@architectures": "spacy_treecrf.SECOC.v1", "base": TINY_MODEL},
    "columns": {"@architectures": "spacy_treecrf.SECOC.v1", "base": BASE, "training": "columns"},
    "cascade": {
        "@architectures": "spacy_treecrf.SECOC.v1",
        "base": BASE,
        "history": "all",
        "cascade": "training",  # six sentences are too few to hold some out
    },
    "published": {
        "@architectures": "spacy_treecrf.SECOC.v1",
        "base": {**PERCEPTRON, "rounds": 8},
        "decoding": "l1",
    },
}


def nlp_with(model: dict[str, Any], task: str) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("treecrf", config={"task": task, "model": model, "features": TINY_FEATURES})
    return nlp


def trained(model: dict[str, Any], task: str, steps: int = 5) -> Language:
    nlp = nlp_with(model, task)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    losses = train(nlp, examples, steps)
    assert all(np.isfinite(losses))
    return nlp


@pytest.mark.parametrize("task", ["tag", "ents"])
@pytest.mark.parametrize("name", list(MODELS))
def test_overfitting_IO(name: str, task: str, tmp_path: Path) -> None:
    nlp = trained(MODELS[name], task)
    learned = pipe_of(nlp).shim.trained
    assert isinstance(learned, Perceptron if name in ("averaged", "voted") else SECOC)
    right = total = 0
    for sentence in CORPUS:
        doc = nlp(new_doc(nlp, sentence))
        gold = labels_of(sentence, task)
        right += sum(a == b for a, b in zip(labels_on(doc, task), gold, strict=True))
        total += len(gold)
        assert all(0.0 <= p <= 1.0 for p in probabilities_on(doc, task))
    assert right >= (0.9 if name == "published" else 1.0) * total
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    again = nlp_with(MODELS[name], task).from_bytes(nlp.to_bytes())
    for sentence in CORPUS:
        doc = nlp(new_doc(nlp, sentence))
        for other in (loaded, again):
            twin = other(new_doc(other, sentence))
            assert labels_on(twin, task) == labels_on(doc, task)
            assert np.array_equal(pipe_of(other).marginals(twin), pipe_of(nlp).marginals(doc))
    examples = corpus(loaded, task)
    train(loaded, examples, 1)  # a loaded pipe goes on
    assert loaded.evaluate(examples)["treecrf_score"] > 0.8


def test_a_step_learns_columns_until_there_are_none() -> None:
    model = {**MODELS["columns"], "decoding": "l1"}
    nlp = nlp_with(model, "tag")
    examples = corpus(nlp, "tag")
    nlp.initialize(lambda: examples)
    shim = pipe_of(nlp).shim
    rounds = []
    for _ in range(3):
        train(nlp, examples, 1)
        rounds.append(shim.trained.rounds)
    assert isinstance(shim.trained, SECOC)
    assert rounds == [5, shim.trained.n_bits, shim.trained.n_bits]


def test_a_base_that_learns_no_bits_is_refused() -> None:
    model = {"@architectures": "spacy_treecrf.SECOC.v1", "base": MODELS["joint training"]}
    with pytest.raises(ValueError, match=r"treecrf: setting 'base' of spacy_treecrf.SECOC.v1 is"):
        nlp_with(model, "tag")


def test_new_labels_of_a_trained_code_are_refused() -> None:
    nlp = trained(MODELS["joint training"], "tag", 1)
    with pytest.raises(
        ValueError, match="treecrf: an output code cannot learn the new label 'NEW'"
    ):
        pipe_of(nlp).add_label("NEW")


def test_two_labels_are_refused() -> None:
    nlp = nlp_with(MODELS["joint training"], "tag")
    examples = corpus(nlp, "tag", ["a|N|O b|V|O"])
    with pytest.raises(ValueError, match="treecrf: output codes need 3 labels or more"):
        nlp.initialize(lambda: examples)


def test_labels_that_no_example_has_are_refused() -> None:
    nlp = nlp_with(MODELS["joint training"], "tag")
    examples = corpus(nlp, "tag")
    pipe_of(nlp).add_label("ZZ")
    with pytest.raises(ValueError, match="treecrf: label 'ZZ' never occurs in the training data"):
        nlp.initialize(lambda: examples)


@pytest.mark.parametrize(
    "model",
    [
        *MODELS.values(),
        {"@architectures": "spacy_treecrf.SECOC.v1", "base": BASE, "history": 1},
        {**TINY_MODEL, "@architectures": "spacy_treecrf.MEMM.v1"},
    ],
    ids=[*MODELS, "cross-fitted cascade", "memm"],
)
def test_steps_after_loading_are_as_if_training_had_never_stopped(
    model: dict[str, Any], tmp_path: Path
) -> None:
    config = {"task": "ents", "model": model, "features": TINY_FEATURES, "rounds_per_step": 2}
    states = []
    for stops in (False, True):
        nlp = spacy.blank("xx")
        nlp.add_pipe("treecrf", config=config)
        examples = corpus(nlp)
        nlp.initialize(lambda examples=examples: examples)  # type: ignore[misc]
        train(nlp, examples, 2)
        if stops:
            nlp.to_disk(tmp_path)
            nlp = spacy.load(tmp_path)
            nlp.resume_training()
            examples = corpus(nlp)
        train(nlp, examples, 2)
        states.append(container.dump(pipe_of(nlp).shim.trained.to_state()))
    assert states[0] == states[1]
