"""Labels that are added to a trained pipe: nothing changes, then they are learned."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from tests.pipeline.tiny_pipes import (
    CORPUS,
    TASKS,
    corpus,
    labels_of,
    labels_on,
    new_doc,
    pipe_of,
    train,
    trained_nlp,
)

NEW_NAME = {"tag": "X", "pos": "X", "ext:tiny_kind": "X", "ents": "THING", "spans": "THING"}
# The same words in another place mean something new.
NEW_SENTENCES = [
    "slept|X|B-THING saw|X|L-THING .|.|O",
    "slept|X|B-THING saw|X|L-THING us|D|O .|.|O",
    "they|D|O left|V|O slept|X|B-THING saw|X|L-THING .|.|O",
]
FAMILIES: list[dict[str, Any]] = [{"family": "separate"}, {"family": "joint"}, {"order": 0}]
CASES = [*((task, {}) for task in TASKS), *(("ents", model) for model in FAMILIES)]


def right(nlp: Language, task: str, sentences: list[str]) -> list[bool]:
    return [labels_on(nlp(new_doc(nlp, s)), task) == labels_of(s, task) for s in sentences]


@pytest.mark.parametrize(("task", "model"), CASES)
def test_a_new_label_leaves_old_predictions_as_they_were(task: str, model: dict[str, Any]) -> None:
    nlp = trained_nlp(task, model=model)
    pipe = pipe_of(nlp)
    docs = [new_doc(nlp, sentence) for sentence in CORPUS]
    before = [pipe.marginals(doc) for doc in docs]
    assert pipe.add_label(NEW_NAME[task]) == 1
    assert pipe.add_label(NEW_NAME[task]) == 0
    assert pipe.labels[-1] == NEW_NAME[task]
    for doc, old in zip(docs, before, strict=True):
        rows = pipe.marginals(doc)
        assert rows.shape == (len(doc), len(pipe.sequence_labels))
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(rows[:, : old.shape[1]], old, atol=0.05)
    assert all(right(nlp, task, CORPUS))


@pytest.mark.parametrize(("task", "model"), CASES)
def test_a_new_label_is_learned_and_the_old_ones_stay(
    task: str, model: dict[str, Any], tmp_path: Any
) -> None:
    nlp = trained_nlp(task, model=model)
    pipe_of(nlp).add_label(NEW_NAME[task])
    both = corpus(nlp, task) + corpus(nlp, task, NEW_SENTENCES)
    losses = train(nlp, both, 6)
    assert losses == sorted(losses, reverse=True)
    assert all(right(nlp, task, CORPUS))
    assert all(right(nlp, task, NEW_SENTENCES))
    nlp.to_disk(tmp_path)
    assert all(right(spacy.load(tmp_path), task, CORPUS + NEW_SENTENCES))


@pytest.mark.parametrize("task", TASKS)
def test_a_loaded_pipe_learns_a_new_label_like_the_one_that_was_saved(
    task: str, tmp_path: Any
) -> None:
    nlp = trained_nlp(task)
    nlp.to_disk(tmp_path)
    stored = []
    for pipeline in (nlp, spacy.load(tmp_path)):
        pipe_of(pipeline).add_label(NEW_NAME[task])
        train(pipeline, corpus(pipeline, task, CORPUS + NEW_SENTENCES), 2)
        stored.append(pipe_of(pipeline).model.to_bytes())
    assert stored[0] == stored[1]


def test_a_new_label_learned_from_its_own_examples_alone() -> None:
    nlp = trained_nlp()
    pipe_of(nlp).add_label("THING")
    train(nlp, corpus(nlp, sentences=NEW_SENTENCES), 3)
    assert all(right(nlp, "ents", NEW_SENTENCES))
    assert sum(right(nlp, "ents", CORPUS)) >= 5


@pytest.mark.parametrize("task", TASKS)
def test_a_label_that_the_pipe_does_not_have_is_warned_of_once(task: str) -> None:
    nlp = trained_nlp(task)
    pipe = pipe_of(nlp)
    labels, name = pipe.labels, NEW_NAME[task]
    examples = corpus(nlp, task, NEW_SENTENCES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(nlp, examples[:2], 2)
        train(nlp, examples[1:], 2)
    (warning,) = (str(one.message) for one in caught if "treecrf" in str(one.message))
    assert warning.startswith(f"treecrf: training examples have the label {name!r}")
    assert f"call add_label({name!r})" in warning
    assert pipe.labels == labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.add_label(name)
        train(nlp, examples, 1)
        nlp.evaluate(corpus(nlp, task))


def test_a_label_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    nlp = trained_nlp("tag", model={"family": "joint", "order": 4})  # at most 16 labels
    pipe = pipe_of(nlp)
    for i in range(11):
        pipe.add_label(f"new{i}")
    with pytest.raises(ValueError, match="potentials at each position"):
        pipe.add_label("one too many")
    assert len(pipe.labels) == 16
    assert pipe.marginals(new_doc(nlp, CORPUS[0])).shape == (5, 16)
