"""The weights of what documents say: settings, or what the pipe was initialized with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.pipeline.evidence.document_evidence import OF_ENTITIES, WEIGHTS
from tests.pipeline.tiny_pipes import corpus, new_nlp, pipe_of, trained_nlp
from tests.refusals import assert_refused

MEMM = {"model": {"@architectures": "spacy_treecrf.MEMM.v1", "search": "beam", "threads": 1}}
# Words that are repeated, and names at places that look alike.
LIST = ["Paris", ",", "Lee", ",", "Paris", ",", "Anna", ",", "Rome", ",", "Lee", "."]


each_weight = pytest.mark.parametrize("name", WEIGHTS)


def weight_of(nlp: Language, name: str) -> float:
    return getattr(pipe_of(nlp).evidence_weights, name)


@pytest.mark.parametrize(("task", "weight"), [("ents", OF_ENTITIES), ("spans", 0.0), ("tag", 0.0)])
def test_newly_initialized_pipes_of_entities_agree(task: str, weight: float) -> None:
    nlp = new_nlp(task)
    pipe = pipe_of(nlp)
    nlp.initialize(lambda: corpus(nlp, task))
    assert (pipe.agreement, pipe.parallels) == (None, None)
    assert pipe.evidence_weights == (weight, weight)


@each_weight
@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_a_setting_wins(name: str, weight: float) -> None:
    nlp = trained_nlp(**{name: weight})
    assert weight_of(nlp, name) == weight
    pipe_of(nlp).cfg[name] = 0.9
    assert weight_of(nlp, name) == weight


@each_weight
def test_wrong_settings_are_refused(name: str) -> None:
    nlp = spacy.blank("en")
    assert_refused(lambda: nlp.add_pipe("treecrf", config={name: -1.0}), f"'{name}'")
    config = {name: 0.3, "task": "tag"}
    assert_refused(lambda: nlp.add_pipe("treecrf", config=config), f"'{name}'", "spans")


@each_weight
def test_the_weight_is_stored_with_the_pipe(tmp_path: Path, name: str) -> None:
    nlp = trained_nlp()
    nlp.to_disk(tmp_path)
    assert weight_of(spacy.load(tmp_path), name) == OF_ENTITIES
    assert weight_of(new_nlp().from_bytes(nlp.to_bytes()), name) == OF_ENTITIES


@each_weight
def test_pipes_that_were_stored_without_it_stay_without_it(tmp_path: Path, name: str) -> None:
    nlp = trained_nlp()
    doc = Doc(nlp.vocab, words=LIST)
    pipe = pipe_of(nlp)
    setattr(pipe, name, 0.0)
    plain = pipe.marginals(doc)
    setattr(pipe, name, None)
    assert np.abs(pipe.marginals(doc) - plain).max() > 1e-6
    del pipe.cfg[name]
    nlp.to_disk(tmp_path)
    assert (pipe_of(spacy.load(tmp_path)).marginals(doc) == plain).all()
    taking_over = trained_nlp()
    taking_over.from_disk(tmp_path)
    assert weight_of(taking_over, name) == 0.0
    taking_over = trained_nlp()
    taking_over.from_bytes(nlp.to_bytes())
    assert weight_of(taking_over, name) == 0.0


@each_weight
@pytest.mark.parametrize("value", [None, "0.5", True, -0.1, 2, [0.5]])
def test_a_stored_value_that_is_no_weight_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    nlp = new_nlp()
    nlp.initialize(lambda: corpus(nlp))
    pipe_of(nlp).cfg[name] = value
    nlp.to_disk(tmp_path)
    assert_refused(lambda: spacy.load(tmp_path), "cfg", f"'{name}'", "from 0 to 1")


@each_weight
def test_models_that_search_have_none_unless_it_is_set(name: str) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("treecrf", config=MEMM)
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    doc = Doc(nlp.vocab, words=LIST)
    assert weight_of(nlp, name) == 0.0
    assert nlp(doc).has_annotation("ENT_IOB")
    setattr(pipe_of(nlp), name, 0.5)
    assert_refused(lambda: pipe_of(nlp).predict([doc]), "searches by")


def test_scores_are_of_the_probabilities_that_the_pipe_gives() -> None:
    nlp = trained_nlp()
    pipe = pipe_of(nlp)
    words = ["Paris", "Lee", "saw", "Paris", "."]
    labels = ["U-PERSON", "O", "O", "U-PLACE", "O"]
    reference = Doc(nlp.vocab, words=words, ents=[f"B-{x[2:]}" if x != "O" else x for x in labels])
    doc = Doc(nlp.vocab, words=words)
    given = {tuple(path): p for path, p in pipe.nbest(doc, 100_000)}
    examples = [Example(doc, reference)]
    found = pipe.score(examples)["treecrf_nll"]
    assert found == pytest.approx(-np.log(given[tuple(labels)]) / len(words), rel=1e-4)
    assert pipe.get_loss(examples, None)[0] != pytest.approx(found, rel=1e-3)
