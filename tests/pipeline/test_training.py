"""Training through nlp.update: steps, batches, losses, and going on where training stopped."""

from __future__ import annotations

import math
import random
import weakref
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.training import Example
from spacy.util import minibatch, registry

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.models import crf
from spacy_treecrf.pipeline.learning import Learner
from tests.pipeline.tiny_pipes import (
    CORPUS,
    TASKS,
    corpus,
    example,
    labels_of,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    train,
)

FAMILIES: dict[str, dict[str, Any]] = {
    "separate": {"family": "separate"},
    "joint": {"family": "joint"},
    "order 0": {"order": 0},
    "subsampled": {"family": "separate", "subsample": 0.7, "colsample": 0.7, "seed": 3},
}


def begun(task: Any = "ents", **config: Any) -> tuple[Language, list[Example]]:
    nlp = new_nlp(task, **config)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    return nlp, examples


def model_bytes(nlp: Language) -> bytes:
    return pipe_of(nlp).model.to_bytes()


def rounds_of(nlp: Language) -> int:
    return pipe_of(nlp).shim.trained.rounds


@pytest.fixture
def boosters(monkeypatch: pytest.MonkeyPatch) -> list[Booster]:
    """All boosters that are made."""
    made: list[Booster] = []

    class Counted(Booster):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(crf, "Booster", Counted)
    return made


@pytest.mark.parametrize("task", TASKS)
def test_the_loss_falls_and_is_per_token(task: str) -> None:
    nlp, examples = begun(task)
    losses = train(nlp, examples, 4)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.1 * losses[0]
    if task == "tag":  # nothing is known before the first round
        assert losses[0] == pytest.approx(math.log(5))
    again, _ = begun(task)
    thrice = [eg for _ in range(3) for eg in corpus(again, task)]
    assert train(again, thrice, 1) == pytest.approx(losses[:1])


def test_the_loss_of_a_step_is_the_score_before_it() -> None:
    nlp, examples = begun()
    train(nlp, examples, 1)
    before = nlp.evaluate(corpus(nlp))["treecrf_nll"]
    loss, gradient = pipe_of(nlp).get_loss(corpus(nlp), None)
    assert train(nlp, examples, 1) == pytest.approx([before])
    assert (loss, gradient) == (pytest.approx(before), 0.0)


def test_a_step_boosts_rounds_per_step_rounds_up_to_the_models_rounds() -> None:
    nlp, examples = begun(rounds_per_step=3, model={"rounds": 7})
    counts = []
    for _ in range(4):
        train(nlp, examples, 1)
        counts.append(rounds_of(nlp))
    assert counts == [3, 6, 7, 7]


@pytest.mark.parametrize("task", TASKS)
def test_ordinary_batches_learn(task: str) -> None:
    nlp, examples = begun(task, rounds_per_step=2)
    shuffle = random.Random(0).shuffle
    for _ in range(8):
        shuffle(examples)
        for batch in minibatch(examples, 2):
            nlp.update(batch)
    for sentence in CORPUS:
        assert labels_on(nlp(new_doc(nlp, sentence)), task) == labels_of(sentence, task)


def test_whole_corpus_batches_in_any_order_share_a_booster(boosters: list[Booster]) -> None:
    nlp, examples = begun()
    train(nlp, examples, 3)
    ordered = model_bytes(nlp)
    assert len(boosters) == 1
    mixed, examples = begun()
    for seed in range(3):
        random.Random(seed).shuffle(examples)
        mixed.update(examples)
    assert len(boosters) == 2
    assert pipe_of(mixed).labels == pipe_of(nlp).labels
    assert mixed.evaluate(corpus(mixed))["ents_f"] == 1.0
    again, examples = begun()
    again.update(examples)
    for _ in range(2):
        again.update(examples[::-1])
    assert model_bytes(again) == ordered


def test_another_batch_gets_another_booster(boosters: list[Booster]) -> None:
    nlp, examples = begun()
    nlp.update(examples)
    nlp.update(examples[:3])
    assert [booster.train.data.n_sequences for booster in boosters] == [6, 3]
    assert boosters[1].potentials.rounds == 10


def test_the_whole_corpus_batcher_makes_one_batch() -> None:
    batcher = registry.batchers.get("spacy_treecrf.WholeCorpus.v1")()
    assert list(batcher(iter(range(5)))) == [[0, 1, 2, 3, 4]]
    assert list(batcher([])) == []


@pytest.mark.parametrize("model", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("rounds_per_step", [1, 3])
def test_going_on_after_loading_is_as_not_stopping(
    model: dict[str, Any], rounds_per_step: int, tmp_path: Any
) -> None:
    nlp, examples = begun(model=model, rounds_per_step=rounds_per_step)
    train(nlp, examples, 4)
    stopped, examples = begun(model=model, rounds_per_step=rounds_per_step)
    train(stopped, examples, 1)  # with linear_rounds = 2: in them, or after them
    stopped.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.resume_training()
    train(loaded, corpus(loaded), 3)
    assert rounds_of(loaded) == 4 * rounds_per_step
    assert model_bytes(loaded) == model_bytes(nlp)


def test_a_sourced_pipe_goes_on_boosting() -> None:
    nlp, examples = begun()
    train(nlp, examples, 2)
    other = spacy.blank("xx")
    other.add_pipe("treecrf", source=nlp)
    assert rounds_of(other) == 10
    train(other, corpus(other), 1)
    assert rounds_of(other) == 15
    assert other.evaluate(corpus(other))["ents_f"] == 1.0


def test_updates_before_a_finish_update_are_one_step_on_all_their_examples(
    boosters: list[Booster],
) -> None:
    nlp, examples = begun()
    optimizer = nlp.create_optimizer()
    losses: dict[str, float] = {}
    nlp.update(examples[:2], sgd=False, losses=losses)  # type: ignore[arg-type]
    first = losses["treecrf"]
    nlp.update(examples[2:], sgd=False, losses=losses)  # type: ignore[arg-type]
    assert rounds_of(nlp) == 0
    pipe_of(nlp).finish_update(optimizer)
    assert rounds_of(nlp) == 5
    pipe_of(nlp).finish_update(optimizer)  # without examples
    assert rounds_of(nlp) == 5

    whole, examples = begun()
    train(whole, examples, 1)
    assert model_bytes(nlp) == model_bytes(whole)
    apart, examples = begun()
    assert train(apart, examples[:2], 1)[0] == pytest.approx(first)
    apart, examples = begun()
    assert train(apart, examples[2:], 1)[0] == pytest.approx(losses["treecrf"] - first)


def test_update_with_an_optimizer_is_a_step_of_its_own() -> None:
    nlp, examples = begun()
    losses = pipe_of(nlp).update(examples, sgd=nlp.create_optimizer())
    assert rounds_of(nlp) == 5
    assert losses["treecrf"] > 0.0
    assert pipe_of(nlp).update([], losses={"other": 1.0}) == {"other": 1.0, "treecrf": 0.0}


def test_examples_without_annotation_change_nothing() -> None:
    nlp, examples = begun()
    train(nlp, examples, 1)
    before = model_bytes(nlp)
    unknown = [Example(new_doc(nlp, s), new_doc(nlp, s)) for s in CORPUS]
    assert train(nlp, unknown, 2) == [0.0, 0.0]
    assert model_bytes(nlp) == before
    mixed = train(nlp, [*unknown, *examples], 1)
    again, examples = begun()
    assert mixed == pytest.approx(train(again, examples, 2)[1:])


def test_ctrl_c_keeps_the_rounds_that_are_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    model = {"rounds": 8}
    nlp, examples = begun(model=model)
    proposals = iter([True, True, True, False])
    propose = Booster._propose

    def interrupted(booster: Booster, residuals: Any) -> Any:
        if not next(proposals, True):
            raise KeyboardInterrupt
        return propose(booster, residuals)

    monkeypatch.setattr(Booster, "_propose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nlp.update(examples)
    assert rounds_of(nlp) == 3
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert rounds_of(loaded) == 3
    straight, its_examples = begun(model=model)
    train(straight, its_examples, 2)
    assert rounds_of(straight) == 8
    for stopped, batch in ((nlp, examples), (loaded, corpus(loaded))):
        train(stopped, batch, 1)
        assert rounds_of(stopped) == 8
        assert model_bytes(stopped) == model_bytes(straight)


def test_another_model_in_the_same_pipe_does_not_see_old_rows() -> None:
    """Rows that were encoded for the columns of one model mean nothing to another."""
    nlp, examples = begun()
    for batch in minibatch(examples, 2):
        nlp.update(batch)
    other = new_nlp()
    few = corpus(other, sentences=CORPUS[3:])
    other.initialize(lambda: few)
    train(other, few, 2)
    pipe_of(nlp).from_bytes(pipe_of(other).to_bytes())
    assert train(nlp, examples[:2], 1) == train(other, corpus(other)[:2], 1)
    assert model_bytes(nlp) == model_bytes(other)


def test_entities_across_sentences_are_not_learned() -> None:
    nlp = new_nlp(sequence="sentence")
    whole = example(nlp, "ents", CORPUS[0], CORPUS[1])
    for i, token in enumerate(whole.predicted):
        token.is_sent_start = i in (0, 3)  # "New | York"
    nlp.initialize(lambda: [whole])
    assert train(nlp, [whole], 4)[-1] < 0.1
    doc = nlp(whole.predicted.copy())
    assert {(ent.text, ent.label_) for ent in doc.ents} >= {
        ("Ann", "PERSON"),
        ("Bob Lee", "PERSON"),
    }


def test_docs_of_a_whole_corpus_take_no_memory_while_it_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nlp, examples = begun()
    pipe = pipe_of(nlp)
    copies = [Example(example.predicted.copy(), example.reference) for example in examples]
    docs = [weakref.ref(example.predicted) for example in copies]
    pipe.update(copies)
    copies.clear()
    gone = []
    original = Learner._train

    def watched(learner: Learner, *args: Any, **options: Any) -> None:
        gone.extend(doc() is None for doc in docs)
        original(learner, *args, **options)

    monkeypatch.setattr(Learner, "_train", watched)
    pipe.finish_update(None)
    assert gone == [True] * len(docs)
    assert pipe.shim.trained.rounds
