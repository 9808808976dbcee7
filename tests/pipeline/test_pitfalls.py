"""Cases of the pipe that are easy to get wrong: threads, repeated examples, corrected labels."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.storage import container
from tests.pipeline.tiny_pipes import (
    CORPUS,
    corpus,
    new_doc,
    new_nlp,
    pipe_of,
    tiny_config,
    train,
    trained_nlp,
)


def test_many_threads_may_predict_at_once() -> None:
    nlp = trained_nlp()
    words = ["Ann", "saw", "us", "in", "Rome", "they", "left"]
    texts = [f"{a}{i} {b} {c} {i}" for i, (a, b, c) in enumerate(product(words, words, words[:4]))]
    alone = [pipe_of(nlp).marginals(nlp.make_doc(text)) for text in texts]
    fresh = trained_nlp()  # with empty caches
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda text: pipe_of(fresh).marginals(fresh.make_doc(text)), texts)
            for mine, theirs in zip(alone, found, strict=True):
                np.testing.assert_array_equal(mine, theirs)
    finally:
        sys.setswitchinterval(switch)


def test_a_loaded_pipe_keeps_its_features_in_small_batches(tmp_path) -> None:
    nlp = trained_nlp(steps=0)
    n_features = len(pipe_of(nlp).shim.learned.columns.counts)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    train(loaded, corpus(loaded)[:1], 1)
    assert len(pipe_of(loaded).shim.learned.columns.counts) == n_features


def test_repeated_examples_count_as_often_as_they_are_given() -> None:
    nlp = trained_nlp()
    examples = corpus(nlp)
    nlp.update([*examples, *examples[:1] * 5])
    lengths = [len(example.predicted) for example in examples]
    assert pipe_of(nlp).learner._trainer.n_annotated == sum(lengths) + 5 * lengths[0]


def test_other_words_of_one_reference_are_other_examples() -> None:
    nlp = trained_nlp()
    first = corpus(nlp)[0]
    lower = Doc(nlp.vocab, words=[token.lower_ for token in first.reference])
    nlp.update([first, Example(lower, first.reference)])
    data = pipe_of(nlp).learner._trainer.data
    assert data.n_rows == 2 * len(lower)
    assert not np.array_equal(data.feature_ids[: len(lower)], data.feature_ids[len(lower) :])


def test_corrected_annotation_is_learned() -> None:
    nlp = trained_nlp()
    examples = corpus(nlp)
    before = train(nlp, examples, 2)[-1]
    for example in examples:
        example.reference.set_ents([])
    assert train(nlp, examples, 1)[0] > 10 * before


def test_an_entity_and_a_chunk_of_the_same_words_have_their_own_probabilities() -> None:
    nlp = trained_nlp()
    doc = nlp(new_doc(nlp, CORPUS[0]))
    ent = doc.ents[0]
    p = ent._.treecrf_prob
    assert p == pytest.approx(pipe_of(nlp).span_probability(ent))
    other = Span(doc, ent.start, ent.end, label="CHUNK")
    assert other._.treecrf_prob is None


def test_several_pipes_are_told_that_they_share_a_score() -> None:
    nlp = spacy.blank("xx")
    for name, task in (("names", "ents"), ("tags", "tag")):
        nlp.add_pipe("treecrf", name=name, config=tiny_config(task))
    examples = corpus(nlp)
    for one in examples:
        for token in one.reference:
            token.tag_ = "X"
    nlp.config["training"]["score_weights"] = {"treecrf_score": 1.0}
    with pytest.warns(UserWarning, match=r"names, tags .* weigh names_score and tags_score"):
        nlp.initialize(lambda: examples)
    own = {"treecrf_score": None, "names_score": 0.5, "tags_score": 0.5}
    nlp.config["training"]["score_weights"] = own
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.initialize(lambda: examples)


def test_updating_before_initializing_says_so_alone() -> None:
    nlp = new_nlp()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"^treecrf: .*call nlp\.initialize"):
            nlp.update(corpus(nlp))


def test_forbidden_annotation_does_not_look_likely() -> None:
    nlp = trained_nlp("tag", model={"constraints": "observed"})
    doc = Doc(nlp.vocab, words=[".", "."])
    gold = Doc(nlp.vocab, words=[".", "."], tags=["V", "V"])
    scores = pipe_of(nlp).score([Example(nlp(doc), gold)])
    assert scores["treecrf_nll"] is None or scores["treecrf_nll"] > 1.0


def test_refused_bytes_and_labels_change_nothing() -> None:
    nlp = trained_nlp()
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, CORPUS[0])
    before = pipe.marginals(doc)
    state = container.parse(pipe.shim.to_bytes())
    state["features"]["unknown"] = {"a": 1}
    with pytest.raises(ValueError, match="unknown"):
        pipe.shim.from_bytes(container.dump(state))
    with pytest.raises(ValueError, match="label"):
        pipe.initialize(lambda: corpus(nlp), labels=["A", ""])
    np.testing.assert_array_equal(pipe.marginals(doc), before)
