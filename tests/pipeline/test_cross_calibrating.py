"""A pipe that is calibrated by its own training data: its twins, and what comes of it."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example

from spacy_treecrf.models.calibration.search import Wanted, found_correction
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.pipeline import calibrating
from spacy_treecrf.pipeline.calibrating import CrossCalibration, held_out
from spacy_treecrf.pipeline.evidence.document_evidence import WEIGHTS
from spacy_treecrf.pipeline.learning import Learner
from spacy_treecrf.pipeline.pipe import TreeCRF
from tests.pipeline.test_expected_f1 import probabilities_of, sets_of
from tests.pipeline.tiny_pipes import CORPUS, corpus, new_doc, new_nlp, pipe_of, train, trained_nlp
from tests.refusals import assert_refused


def sentences(n: int, seed: int = 0) -> list[str]:
    """Sentences of rare words; names are capitalised more often than other words."""
    draw = random.Random(seed)
    found = []
    for _ in range(n):
        words = []
        for _ in range(draw.randint(2, 6)):
            is_name = draw.random() < 0.3
            upper = is_name if draw.random() < 0.7 else not is_name
            word = f"{'n' if is_name else 'w'}x{draw.randrange(100):02}"
            word = word.capitalize() if upper else word
            words.append(f"{word}|X|{'U-PERSON' if is_name else 'O'}")
        found.append(" ".join(words))
    return found


RARE = sentences(60)


def learned(texts: Sequence[str], steps: int = 4, **config: Any) -> Language:
    nlp = new_nlp(**config)
    examples = corpus(nlp, sentences=texts)
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps)
    return nlp


def model_of(pipe: TreeCRF) -> CRF:
    model = pipe.shim.trained
    assert isinstance(model, CRF)
    return model


def gap(nlp: Language, examples: Sequence[Example]) -> float:
    """How much surer a pipe is of examples than it is right."""
    pipe = pipe_of(nlp)
    p, right = [], []
    for example in examples:
        nodes = pipe.marginals(example.reference)
        gold = pipe.learner.label_ids(pipe.learner.gold([example]))
        p += nodes.max(axis=1).tolist()
        right += (nodes.argmax(axis=1) == gold).tolist()
    return abs(sum(p) - sum(right)) / len(p)


def test_twins_are_pipes_that_were_trained_on_the_other_folds() -> None:
    nlp = learned(RARE)
    examples = corpus(nlp, sentences=RARE)
    found = pipe_of(nlp).cross_calibrate(examples, folds=2)
    first = learned(RARE[:30])
    second = learned(RARE[30:])
    with (
        held_out(pipe_of(first), corpus(first, sentences=RARE[30:])) as of_first,
        held_out(pipe_of(second), corpus(second, sentences=RARE[:30])) as of_second,
    ):
        by_hand = found_correction([of_second, of_first], Wanted(outside=True))
    assert found.temperature == pytest.approx(by_hand.temperature)
    assert found.outside == pytest.approx(by_hand.outside)


def test_twins_have_the_evidence_of_the_pipe_also_if_it_was_stored_before_there_was_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nlp = learned(RARE, steps=2)
    pipe = pipe_of(nlp)
    assert pipe.evidence_weights == (0.5, 0.5)
    for name in WEIGHTS:
        del pipe.cfg[name]
    told = []
    original = calibrating.held_out

    def watched(twin: Any, examples: Sequence[Example]) -> Any:
        told.append(twin.evidence_weights)
        return original(twin, examples)

    monkeypatch.setattr(calibrating, "held_out", watched)
    pipe.cross_calibrate(corpus(nlp, sentences=RARE), folds=2)
    assert told == [(0.0, 0.0)] * 2


def test_only_the_correction_of_the_pipe_changes() -> None:
    nlp = learned(RARE)
    pipe, examples = pipe_of(nlp), corpus(nlp, sentences=RARE)
    before, rows = model_of(pipe), pipe.encode([example.predicted for example in examples])
    found = pipe.cross_calibrate(examples, folds=np.int8(3))
    after = model_of(pipe)
    assert after.columns is before.columns
    assert after.rounds == before.rounds
    np.testing.assert_array_equal(
        rows.feature_ids, pipe.encode([example.predicted for example in examples]).feature_ids
    )
    doc = examples[0].predicted
    at_once = pipe.marginals(doc)
    pipe.shim.learned = before.corrected(Correction(found.temperature, found.outside))
    np.testing.assert_array_equal(at_once, pipe.marginals(doc))


def test_a_pipe_that_knows_its_training_data_too_well_becomes_less_sure() -> None:
    nlp = learned(RARE, steps=8)
    unseen = corpus(nlp, sentences=sentences(200, seed=1))
    before = gap(nlp, unseen)
    found = pipe_of(nlp).cross_calibrate(corpus(nlp, sentences=RARE))
    assert found.temperature > 1.2
    assert gap(nlp, unseen) < before / 2


def test_it_goes_on_as_a_pipe_that_is_stored_and_loaded() -> None:
    nlp = learned(RARE)
    pipe_of(nlp).cross_calibrate(corpus(nlp, sentences=RARE), folds=2)
    loaded = new_nlp().from_bytes(nlp.to_bytes())
    doc = new_doc(nlp, RARE[0])
    np.testing.assert_array_equal(*(pipe_of(own).marginals(doc) for own in (nlp, loaded)))
    train(nlp, corpus(nlp, sentences=RARE), 1)
    assert pipe_of(nlp).shim.trained.rounds == 25


def test_texts_that_come_twice_are_on_one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = learned(RARE)
    examples = [*corpus(nlp, sentences=RARE), *corpus(nlp, sentences=RARE)]
    seen: list[set[str]] = []
    initialize = TreeCRF.initialize

    def noted(self: TreeCRF, get_examples: Any, **given: Any) -> None:
        seen.append({example.reference.text for example in get_examples()})
        initialize(self, get_examples, **given)

    monkeypatch.setattr(TreeCRF, "initialize", noted)
    pipe_of(nlp).cross_calibrate(examples, folds=3)
    assert [len(texts) for texts in seen] == [40, 40, 40]


def test_names_that_a_twin_judges_are_new_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = learned(RARE)
    examples = corpus(nlp, sentences=RARE)
    known: list[list[Example]] = []
    initialize = TreeCRF.initialize

    def noted(self: TreeCRF, get_examples: Any, **given: Any) -> None:
        known.append(list(get_examples()))
        initialize(self, get_examples, **given)

    monkeypatch.setattr(TreeCRF, "initialize", noted)
    pipe_of(nlp).cross_calibrate(examples, folds=4, new_names=True)
    for fold, own in enumerate(known):
        judged = examples[len(examples) * fold // 4 : len(examples) * (fold + 1) // 4]
        names, others = (
            {ent.text.lower() for example in some for ent in example.reference.ents}
            for some in (judged, own)
        )
        assert names
        assert not names & others


def test_only_one_twin_at_a_time_keeps_what_it_learns_from(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = learned(RARE, steps=1)
    trainers: list[weakref.ref[Any]] = []
    kept: list[int] = []
    train = Learner._train

    def watched(learner: Learner, trainer: Any, *args: Any, **options: Any) -> None:
        trainers.append(weakref.ref(trainer))
        train(learner, trainer, *args, **options)
        gc.collect()
        kept.append(sum(trainer() is not None for trainer in trainers))

    monkeypatch.setattr(Learner, "_train", watched)
    pipe_of(nlp).cross_calibrate(corpus(nlp, sentences=RARE), folds=3)
    assert kept == [1] * 3


def test_rounds_are_told_and_those_of_the_pipe() -> None:
    nlp = learned(RARE, steps=2, rounds_per_step=3)
    told: list[tuple[int, int]] = []
    pipe_of(nlp).cross_calibrate(
        corpus(nlp, sentences=RARE), folds=2, report=lambda *own: told.append(own)
    )
    assert told == [(3, 12), (6, 12), (9, 12), (12, 12)]


@pytest.mark.parametrize("task", ["tag", "ext:tiny_kind"])
def test_labels_that_are_no_spans_have_a_temperature_alone(task: str) -> None:
    nlp = trained_nlp(task)
    found = pipe_of(nlp).cross_calibrate(corpus(nlp, task), folds=3)
    assert isinstance(found, CrossCalibration)
    assert (found.outside, found.expected_f1) == (0.0, None)
    assert pipe_of(nlp).shim.trained.temperature == pytest.approx(found.temperature)


def test_expected_f1_is_that_of_the_best_set_of_spans() -> None:
    nlp = trained_nlp(steps=1, rounds_per_step=1)
    doc = new_doc(nlp, CORPUS[0])
    probabilities = probabilities_of(nlp, doc)
    n_expected = sum(probabilities.values())
    likely = sorted(span for span, p in probabilities.items() if p > 0.01)
    best = max(
        2 * sum(probabilities[span] for span in own) / (len(own) + n_expected)
        for own in sets_of(likely)
    )
    assert pipe_of(nlp).f1_expected_of([doc]) == pytest.approx(best, abs=1e-5)


def test_expected_f1_looks_at_no_annotation() -> None:
    nlp = trained_nlp(steps=1)
    doc = new_doc(nlp, CORPUS[0])
    before = pipe_of(nlp).f1_expected_of([doc])
    doc.ents = [Span(doc, 0, 1, "PLACE")]
    assert pipe_of(nlp).f1_expected_of([doc]) == before


def test_what_cannot_be_is_refused() -> None:
    nlp = learned(RARE)
    pipe, examples = pipe_of(nlp), corpus(nlp, sentences=RARE)
    assert_refused(lambda: pipe.cross_calibrate(examples, folds=1), "folds is 1", "2 to 60")
    assert_refused(
        lambda: pipe.cross_calibrate(examples[:3], folds=4), "folds is 4", "are 3 different texts"
    )
    for given in ([examples[0]], [examples[0]] * 2):
        assert_refused(lambda own=given: pipe.cross_calibrate(own), "there is 1; pass more")
    for folds in (2.0, "2"):
        assert_refused(lambda n=folds: pipe.cross_calibrate(examples, folds=n), "an integer from 2")
    positions = pipe_of(learned(RARE, steps=1, model={"order": 0}))
    told: list[int] = []
    assert_refused(
        lambda: positions.cross_calibrate(
            examples, outside=True, report=lambda done, _: told.append(done)
        ),
        "is of order 0",
    )
    assert not told
    same = corpus(nlp, sentences=[f"n{i}|X|O Bob|X|U-PERSON" for i in range(4)])
    assert_refused(
        lambda: pipe.cross_calibrate(same, folds=2, new_names=True), "nothing annotated is left"
    )
    pipe.cross_calibrate(examples, folds=2)
    assert_refused(lambda: pipe.cross_calibrate(examples), "calibrated already")
    tags = pipe_of(trained_nlp("tag"))
    assert_refused(lambda: tags.cross_calibrate(corpus(nlp, "tag"), 2, True), "no spans")
    assert_refused(lambda: tags.f1_expected_of([nlp.make_doc("a")]), "no spans")
    untrained = new_nlp()
    untrained.initialize(lambda: corpus(untrained))
    assert_refused(lambda: pipe_of(untrained).cross_calibrate(examples), "learned no rounds")
    assert_refused(
        lambda: pipe_of(spacy.blank("xx").from_config(untrained.config)).cross_calibrate(examples),
        "learned nothing yet",
    )
