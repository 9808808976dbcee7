"""Batches that are small parts of the corpus: what was gathered is learned together."""

from __future__ import annotations

import os
import random
import weakref
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import minibatch

from spacy_treecrf.corpora.readers import corpus as read_corpus
from spacy_treecrf.engine.boosting.boosting import Booster
from tests.pipeline.test_training import FAMILIES, begun, model_bytes, rounds_of
from tests.pipeline.tiny_pipes import (
    CORPUS,
    corpus,
    example,
    labels_of,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    train,
)


def in_parts(nlp: Language, examples: list[Example], epochs: int, size: int = 1) -> list[float]:
    """Train with batches that are small parts of the corpus; returns the loss of each epoch."""
    shuffle = random.Random(0).shuffle
    examples = list(examples)
    shown = []
    for epoch in range(epochs):
        losses: dict[str, float] = {}
        if epoch:  # the first one tells in which order the examples are kept
            shuffle(examples)
        for batch in minibatch(examples, size):
            nlp.update(batch, losses=losses)
        shown.append(losses["treecrf"])
    return shown


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("model", FAMILIES.values(), ids=FAMILIES)
def test_epochs_in_parts_teach_what_the_whole_corpus_does(model: dict[str, Any], size: int) -> None:
    whole, examples = begun(model=model)
    losses = train(whole, examples, 3)
    parts, examples = begun(model=model)
    shown = in_parts(parts, examples, 3, size)
    assert rounds_of(parts) == 15
    assert model_bytes(parts) == model_bytes(whole)
    assert shown[0] == pytest.approx(losses[0], rel=0.5), "per token, and no sum over batches"
    assert shown[-1] < 0.2 * shown[0]


def both_views(nlp: Language, path: Path) -> list[Example]:
    """Docs of two sentences, each with boundaries and as text, as a reader gives them."""
    pairs = [CORPUS[i : i + 2] for i in range(0, len(CORPUS), 2)]
    DocBin(docs=[example(nlp, "ents", *pair).reference for pair in pairs]).to_disk(path)
    return list(read_corpus(path, ["SENT_START"], views=["sentences", "text"])(nlp))


def test_views_of_a_doc_are_examples_of_their_own(tmp_path: Path) -> None:
    whole, parts = (new_nlp(sequence="punctuation") for _ in range(2))
    examples = both_views(whole, tmp_path / "docs.spacy")
    assert len(examples) == len(CORPUS)
    for nlp in (whole, parts):
        nlp.initialize(lambda: examples)
    train(whole, examples, 3)
    in_parts(parts, examples, 3)
    assert model_bytes(parts) == model_bytes(whole)
    one = new_nlp(sequence="punctuation")
    one.initialize(lambda: examples[::2])
    train(one, examples[::2], 3)
    assert model_bytes(one) != model_bytes(whole)


def test_a_part_is_learned_when_someone_asks_for_the_model() -> None:
    nlp, examples = begun()
    for eg in examples[:3]:
        nlp.update([eg])
    known = CORPUS[:3]
    for sentence in known:
        assert labels_on(nlp(new_doc(nlp, sentence)), "ents") == labels_of(sentence, "ents")
    assert rounds_of(nlp) == 5, "they are learned together, and once"
    three, examples = begun()
    three.update(examples[:3])
    assert model_bytes(nlp) == model_bytes(three)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_part_is_learned_once_and_before_processes_are_forked() -> None:
    nlp, examples = begun(model={"threads": 2})
    for eg in examples[:3]:
        nlp.update([eg])
    shim = pipe_of(nlp).shim
    assert shim.owed is not None
    child = os.fork()
    if not child:
        os._exit(0 if shim.owed is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shim.owed is None
    three, examples = begun(model={"threads": 2})
    three.update(examples[:3])
    assert model_bytes(nlp) == model_bytes(three)


def test_no_code_runs_when_an_example_goes() -> None:
    """An interrupt that comes meanwhile would be lost."""
    nlp, examples = begun()
    in_parts(nlp, examples, 2)
    found = [known for eg in examples for known in weakref.getweakrefs(eg.reference)]
    assert found
    assert all(known.__callback__ is None for known in found)


def test_a_part_is_learned_before_the_pipe_is_stored_or_copied(tmp_path: Any) -> None:
    for store in (
        lambda nlp: nlp.to_bytes(),
        lambda nlp: nlp.to_disk(tmp_path),
        lambda nlp: pipe_of(nlp).shim.copy(),
    ):
        nlp, examples = begun()
        in_parts(nlp, examples, 1)
        known = pipe_of(nlp).shim.known
        assert known is not None
        store(nlp)
        again = pipe_of(nlp).shim.known
        assert again is not known
        assert again is not None
        assert again.rounds == 5


def test_gathered_examples_get_as_many_rounds_as_the_labels_need() -> None:
    """spaCy's loop makes 20,000 steps unless a score stops rising."""
    nlp, examples = begun(rounds_per_step=60)
    in_parts(nlp, examples, 3)
    assert rounds_of(nlp) == 100, "900 trees of 9 labels"
    nlp, examples = begun(rounds_per_step=60, model={"rounds": 130})
    in_parts(nlp, examples, 3)
    assert rounds_of(nlp) == 130


def test_new_examples_after_an_epoch_begin_another_training() -> None:
    nlp, examples = begun()
    in_parts(nlp, examples[:4], 3)
    assert rounds_of(nlp) == 15
    nlp.update(examples[4:5])
    assert rounds_of(nlp) == 20, "they are learned at once"
    nlp.update(examples[5:])
    assert rounds_of(nlp) == 20, "after the same 15 rounds, both together"


def test_parts_go_on_from_a_loaded_model(tmp_path: Any) -> None:
    nlp, examples = begun()
    train(nlp, examples, 2)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.resume_training()
    in_parts(loaded, corpus(loaded), 2)
    train(nlp, examples, 2)
    assert model_bytes(loaded) == model_bytes(nlp)


def test_a_corrected_example_is_learned_anew() -> None:
    nlp, examples = begun()
    in_parts(nlp, examples, 2)
    corrected = examples[0]
    corrected.reference.set_ents([])
    in_parts(nlp, examples, 6)
    assert labels_on(nlp(new_doc(nlp, CORPUS[0])), "ents") == ["O"] * 5


def test_examples_that_are_made_anew_in_each_epoch_are_the_same() -> None:
    """As in loops that make examples of texts for each batch, and drop them."""
    same, examples = begun()
    in_parts(same, examples, 4)
    anew, _ = begun()
    for _ in range(4):
        for batch in minibatch(corpus(anew), 1):
            anew.update(batch)
    assert rounds_of(anew) == rounds_of(same) == 20
    for sentence in CORPUS:
        assert labels_on(anew(new_doc(anew, sentence)), "ents") == labels_of(sentence, "ents")


def test_docs_of_a_stream_are_not_kept() -> None:
    nlp, _ = begun()
    for _ in range(10):
        words = [f"w{random.random()}" for _ in range(30)]
        nlp.update([Example.from_dict(nlp.make_doc(" ".join(words)), {"entities": ["O"] * 30})])
        rounds_of(nlp)
    gathering = pipe_of(nlp)._learner._gathering
    assert gathering is not None
    gathering.drop_lost()
    assert len(gathering.by_number) <= 1
    assert gathering.size <= 30


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_training_that_is_owed_stays_owed_after_an_error(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp, examples = begun()
    nlp.update(examples[:1])
    assert rounds_of(nlp) == 5
    nlp.update(examples[1:2])
    propose = Booster._propose
    with monkeypatch.context() as patched:

        def interrupted(booster: Booster, residuals: Any) -> Any:
            if booster.potentials.rounds == 3:
                raise error
            return propose(booster, residuals)

        patched.setattr(Booster, "_propose", interrupted)
        with pytest.raises(error):
            nlp("Ann left .")
        known = pipe_of(nlp).shim.known
        assert known is not None
        assert known.rounds == 5, "the model of before, and not the first rounds of another"
    expected, its_examples = begun()
    expected.update(its_examples[:1])
    expected.update(its_examples[1:2])
    assert model_bytes(nlp) == model_bytes(expected)


def test_other_threads_have_the_model_of_before_while_what_is_owed_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nlp, examples = begun()
    nlp.update(examples[:1])
    before = pipe_of(nlp).shim.trained
    nlp.update(examples[1:2])
    seen = []
    propose = Booster._propose

    def looked_at(booster: Booster, residuals: Any) -> Any:
        thread = Thread(target=lambda: seen.append(pipe_of(nlp).shim.trained))
        thread.start()
        thread.join()
        return propose(booster, residuals)

    monkeypatch.setattr(Booster, "_propose", looked_at)
    after = pipe_of(nlp).shim.trained
    assert len(seen) == 5
    assert all(model is before for model in seen)
    assert after is not before


def test_a_repr_trains_nothing() -> None:
    nlp, examples = begun()
    in_parts(nlp, examples, 1)
    known = pipe_of(nlp).shim.known
    assert "treecrf" in repr(pipe_of(nlp))
    assert pipe_of(nlp).shim.known is known
