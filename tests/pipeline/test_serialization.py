"""Pipes are stored and read back exactly, as bytes, on disk, by config and for other processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config

from spacy_treecrf.engine.limits import QUICK_AFTER
from tests.pipeline.tiny_pipes import (
    CORPUS,
    TASKS,
    corpus,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    probabilities_on,
    tiny_config,
    train,
    trained_nlp,
)

MODELS: list[dict[str, Any]] = [
    {"family": "separate"},
    {"family": "joint", "order": 2},
    {"order": 0, "predictor": "marginal"},
    {"constraints": "observed", "step": "gradient"},
]
ALL_FEATURES: dict[str, Any] = {
    "attrs": {"LOWER": [-1, 0, 1], "SHAPE": [0], "IS_TITLE": [0], "LENGTH": [0], "TAG": [0]},
    "patterns": {"capital": "^[A-Z]"},
    "gazetteers": {"city": ["New York", "Rome"]},
    "gazetteer_from_entities": True,
    "document": ["case", "repeated"],
    "vectors": 3,
    "prefixes": [1],
}


def add_vectors(nlp: Language) -> None:
    numbers = np.random.default_rng(0)
    for sentence in CORPUS:
        for token in new_doc(nlp, sentence):
            if token.text not in nlp.vocab.vectors:
                nlp.vocab.set_vector(token.text, numbers.normal(size=4).astype(np.float32))


def featured_nlp() -> Language:
    nlp = new_nlp(features=ALL_FEATURES)
    add_vectors(nlp)
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 3)
    return nlp


def assert_same_output(one: Language, other: Language, task: str = "ents") -> None:
    for sentence in [*CORPUS, "Rome|N|O left|V|O unheard|V|O Words|N|O"]:
        a, b = one(new_doc(one, sentence)), other(new_doc(other, sentence))
        assert labels_on(a, task) == labels_on(b, task)
        assert probabilities_on(a, task) == probabilities_on(b, task)
        np.testing.assert_array_equal(pipe_of(one).marginals(a), pipe_of(other).marginals(b))


def stored(nlp: Language) -> bytes:
    return pipe_of(nlp).to_bytes(exclude=["vocab"])


@pytest.mark.parametrize("task", TASKS)
def test_from_to_bytes(task: str) -> None:
    nlp = trained_nlp(task)
    data = nlp.to_bytes()
    again = new_nlp(task)
    again.from_bytes(data)
    assert_same_output(nlp, again, task)
    assert stored(again) == stored(nlp)
    pipe = pipe_of(new_nlp(task))
    assert pipe.from_bytes(stored(nlp), exclude=["vocab"]) is pipe
    assert pipe.labels == pipe_of(nlp).labels
    assert pipe.to_bytes(exclude=["vocab"]) == stored(nlp)


def test_the_file_of_the_model_holds_its_bytes(tmp_path: Path) -> None:
    pipe = pipe_of(trained_nlp("tag"))
    pipe.to_disk(tmp_path, exclude=["vocab"])
    assert (tmp_path / "model").read_bytes() == pipe.model.to_bytes()


@pytest.mark.parametrize(
    ("task", "state"),
    [("tag", "new"), ("ents", "labelled"), *((task, "initialized") for task in TASKS)],
)
def test_a_pipe_that_learned_nothing_is_stored_too(task: str, state: str, tmp_path: Path) -> None:
    nlp = new_nlp(task)
    examples = corpus(nlp, task)
    if state == "labelled":
        pipe_of(nlp).add_label("A-B")
    elif state == "initialized":
        nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert pipe_of(again).labels == pipe_of(nlp).labels
    assert stored(again) == stored(nlp)
    examples = corpus(again, task)
    if state != "initialized":
        again.initialize(lambda: examples)
    train(again, examples, 4)
    assert again.evaluate(examples)["treecrf_score"] == 1.0


@pytest.mark.parametrize("model", MODELS)
def test_config_nlp_roundtrip_bytes_disk(model: dict[str, Any], tmp_path: Path) -> None:
    settings = {"rounds_per_step": 2, "sequence": "doc", "min_prob": 0.1}
    nlp = trained_nlp(model=model, **settings)
    config = nlp.config
    from_config = load_model_from_config(config, auto_fill=False)
    assert from_config.config.to_str() == config.to_str()
    from_config.from_bytes(nlp.to_bytes())
    assert_same_output(nlp, from_config)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.config.to_str() == config.to_str()
    assert_same_output(nlp, loaded)
    for again in (from_config, loaded):
        pipe = pipe_of(again)
        assert (pipe.rounds_per_step, pipe.sequence, pipe.min_prob) == (2, "doc", 0.1)
        assert pipe.shim.settings == pipe_of(nlp).shim.settings


@pytest.mark.parametrize(
    "task",
    [
        {"@misc": "spacy_treecrf.TagTask.v1", "overwrite": True},
        {"@misc": "spacy_treecrf.PosTask.v1", "overwrite": False},
        {"@misc": "spacy_treecrf.EntsTask.v1", "overwrite": True},
        {"@misc": "spacy_treecrf.SpansTask.v1", "key": "chunks", "overwrite": False},
        {"@misc": "spacy_treecrf.ExtTask.v1", "attr": "tiny_kind"},
        "spans:chunks",
    ],
)
def test_registered_tasks_are_part_of_the_config(task: Any, tmp_path: Path) -> None:
    nlp = new_nlp(task)
    assert nlp.config["components"]["treecrf"]["task"] == task
    nlp.to_disk(tmp_path)
    assert pipe_of(spacy.load(tmp_path)).task == pipe_of(nlp).task


def test_all_that_features_loaded_and_learned_is_stored(tmp_path: Path) -> None:
    nlp = featured_nlp()
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert_same_output(nlp, loaded)
    assert stored(loaded) == stored(nlp)


def test_a_stored_pipe_has_no_pickle(tmp_path: Path) -> None:
    featured_nlp().to_disk(tmp_path)
    data = (tmp_path / "treecrf" / "model").read_bytes()
    for start in (2, 3, 4, 5):
        assert b"\x80" + bytes([start]) + b"\x95" not in data
    assert b"numpy.core" not in data
    assert b"ndarray" not in data


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda pipe: pickle.loads(pickle.dumps(pipe))])
def test_a_copy_of_a_pipe_that_was_called_often_keeps_no_addresses(
    twin: Callable[[Any], Any],
) -> None:
    """Kernels of later calls read tables by their addresses, which are not those of the copy."""
    nlp = trained_nlp()
    for _ in range(QUICK_AFTER + 2):
        nlp("Ann saw Rome")
    copied = twin(pipe_of(nlp))
    for words in (["Ann", "saw", "Rome"], ["never", "seen", "before"]) * (QUICK_AFTER + 2):
        own = copied(Doc(copied.vocab, words=words))
        expected = nlp(Doc(nlp.vocab, words=words))
        assert [e.text for e in own.ents] == [e.text for e in expected.ents]


@pytest.mark.parametrize(
    "twin", [lambda pipe: pickle.loads(pickle.dumps(pipe)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_trained_pipe_can_be_sent_to_another_process(twin: Callable[[Any], Any]) -> None:
    """Where processes are spawned, nlp.pipe(n_process=2) does the same."""
    nlp = featured_nlp()
    pipe = twin(pipe_of(nlp))
    doc = new_doc(nlp, CORPUS[0])
    own = Doc(pipe.vocab, words=[token.text for token in doc])
    np.testing.assert_array_equal(pipe.marginals(own), pipe_of(nlp).marginals(doc))
    rounds = pipe_of(nlp).shim.trained.rounds
    reference = Doc(pipe.vocab, words=[token.text for token in doc], ents=["B-PERSON"] + ["O"] * 4)
    pipe.update([Example(own, reference)], sgd=nlp.create_optimizer())
    assert pipe.shim.trained.rounds == rounds + 5
    assert pipe_of(nlp).shim.trained.rounds == rounds
    assert pipe.shim.features is pipe.features is not pipe_of(nlp).features


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x93\x01\x02\x03"])
def test_bytes_that_are_no_model_are_refused_and_change_nothing(data: bytes) -> None:
    nlp = trained_nlp()
    before = stored(nlp)
    with pytest.raises(ValueError, match="treecrf"):
        pipe_of(nlp).shim.from_bytes(data)
    assert stored(nlp) == before


@pytest.mark.parametrize("stored", [True, False])
def test_tables_that_the_config_does_not_ask_for_are_named(stored: bool) -> None:
    with_lists: dict[str, Any] = {"gazetteers": {"towns": ["Rome"]}}
    without: dict[str, Any] = {}
    nlp = trained_nlp(features=with_lists if stored else without)
    other = new_nlp(features=without if stored else with_lists)
    said = "model knows features 'gazetteers'" if stored else "makes features 'gazetteers'"
    with pytest.raises(ValueError, match=rf"^treecrf: .*{said}.* use spacy\.load"):
        other.from_bytes(nlp.to_bytes())


def test_a_model_for_other_features_is_refused() -> None:
    nlp = trained_nlp()
    other = spacy.blank("xx")
    other.add_pipe("treecrf", config=tiny_config(features={"attrs": {"ORTH": [0]}}))
    other.from_bytes(nlp.to_bytes())
    with pytest.raises(ValueError, match="treecrf"):
        other("Ann saw Rome")
