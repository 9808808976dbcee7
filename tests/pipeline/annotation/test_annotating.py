"""Training on what earlier pipes write on the docs: frozen and annotating components."""

from __future__ import annotations

from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import train_while_improving

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.models import crf
from tests.pipeline.tiny_pipes import (
    CORPUS,
    corpus,
    example,
    labels_of,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    tiny_config,
    train,
    trained_nlp,
)

TAG_FEATURES = {"attrs": {"TAG": [-1, 0, 1], "LOWER": [0]}, "suffixes": []}


class Scribe:
    """A pipe that writes what it is told."""

    def __init__(self) -> None:
        self.tag = "A"
        self.starts: tuple[int, ...] = (0,)

    def __call__(self, doc: Doc) -> Doc:
        for token in doc:
            token.tag_ = f"{self.tag}{token.text[0]}"
            token.is_sent_start = token.i in self.starts
        return doc


@Language.factory("tiny_scribe")
def make_scribe(nlp: Language, name: str) -> Scribe:
    return Scribe()


def tagger_and_ner() -> Language:
    """A treecrf tagger that is trained, and a treecrf ner behind it that is not."""
    nlp = trained_nlp("tag")
    nlp.rename_pipe("treecrf", "tags")
    nlp.add_pipe("treecrf", "names", config=tiny_config("ents", features=TAG_FEATURES))
    return nlp


def feature_names(nlp: Language, name: str = "treecrf") -> set[str]:
    return set(pipe_of(nlp, name).shim.trained.columns.feature_names)


def initialize_only(nlp: Language, name: str, examples: list[Example]) -> None:
    with nlp.select_pipes(enable=name):
        nlp.initialize(lambda: examples)


@pytest.mark.parametrize("gold_tags", [True, False])
def test_features_are_those_that_an_annotating_pipe_writes(gold_tags: bool) -> None:
    nlp = tagger_and_ner()
    tagger_bytes = pipe_of(nlp, "tags").to_bytes(exclude=["vocab"])
    examples = corpus(nlp, "ents")
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "GOLD" if gold_tags else ""
    initialize_only(nlp, "names", examples)
    assert ("tag[0]=GOLD" in feature_names(nlp, "names")) == gold_tags
    for _ in range(4):
        nlp.update(examples, exclude=["tags"], annotates=["tags"])
    names = feature_names(nlp, "names")
    assert {"tag[0]=N", "tag[0]=V", "tag[-1]=V", "tag[1]=."} <= names
    assert not any("GOLD" in name for name in names)
    assert pipe_of(nlp, "tags").to_bytes(exclude=["vocab"]) == tagger_bytes
    for sentence in CORPUS:
        doc = nlp(new_doc(nlp, sentence))
        assert labels_on(doc, "ents") == labels_of(sentence, "ents")
        assert labels_on(doc, "tag") == labels_of(sentence, "tag")
        assert not any(token.tag_ for token in new_doc(nlp, sentence))
    without = nlp.select_pipes(disable="tags")
    assert pipe_of(nlp, "names").marginals(new_doc(nlp, CORPUS[0])).shape == (5, 9)
    without.restore()


def test_spacys_training_loop_freezes_annotates_and_accumulates() -> None:
    nlp = tagger_and_ner()
    examples = corpus(nlp, "ents")
    initialize_only(nlp, "names", examples)
    loop = train_while_improving(
        nlp,
        nlp.create_optimizer(),
        ((epoch, examples) for epoch in range(4)),
        evaluate=lambda: (nlp.evaluate(corpus(nlp))["ents_f"], {}),
        dropout=0.1,
        eval_frequency=1,
        accumulate_gradient=2,
        patience=0,
        max_steps=3,
        exclude=["tags"],
        annotating_components=["tags"],
        before_update=None,
    )
    steps = [info for _, info, _ in loop]
    assert pipe_of(nlp, "names").shim.trained.rounds == 5 * len(steps)
    assert steps[-1]["score"] == 1.0
    assert "tag[0]=N" in feature_names(nlp, "names")
    assert pipe_of(nlp, "tags").shim.trained.rounds == 20


def test_annotation_that_changes_between_steps_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(Booster):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(crf, "Booster", Counted)
    nlp = new_nlp(features=TAG_FEATURES, sequence="doc")
    scribe: Any = nlp.add_pipe("tiny_scribe", first=True)
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    for tag, boosters in (("A", 1), ("A", 1), ("B", 2), ("A", 3)):
        scribe.tag = tag
        nlp.update(examples, annotates=["tiny_scribe"])
        assert len(made) == boosters
    assert "tag[0]=AL" in feature_names(nlp)


@pytest.mark.parametrize("batch", [1, 2])
def test_boundaries_that_change_between_steps_are_seen(batch: int) -> None:
    nlp = new_nlp()
    scribe: Any = nlp.add_pipe("tiny_scribe", first=True)
    examples = corpus(nlp, sentences=CORPUS[:2])
    nlp.initialize(lambda: examples)
    for starts in ((0,), (0, 3), (0, 2), (0,)):
        scribe.starts = starts
        nlp.update(examples[:batch], annotates=["tiny_scribe"])
        fresh = corpus(nlp, sentences=CORPUS[:batch])
        scores = nlp.evaluate(fresh)
        losses: dict[str, float] = {}
        nlp.update(examples[:batch], annotates=["tiny_scribe"], losses=losses)
        assert losses["treecrf"] == pytest.approx(scores["treecrf_nll"], rel=1e-4)


def test_sentence_sequences_are_trained_with_an_annotating_sentencizer(tmp_path: Any) -> None:
    nlp = new_nlp(sequence="sentence")
    nlp.add_pipe("sentencizer", first=True)
    examples = [example(nlp, "ents", *CORPUS[:2]), example(nlp, "ents", *CORPUS[2:4])]
    nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples, annotates=["sentencizer"])
    # the columns were fitted again when the first batch had more sequences: 4, not 2
    columns = pipe_of(nlp).shim.trained.columns
    assert columns.counts[columns.feature_names.index("lower[-1]=<edge>")] == 4 - 1
    nlp.to_disk(tmp_path)
    doc = spacy.load(tmp_path)("Ann saw New York . Bob Lee left Paris .")
    assert [ent.text for ent in doc.ents] == ["Ann", "New York", "Bob Lee", "Paris"]
    with pytest.raises(ValueError, match="needs sentence boundaries"):
        nlp.update(examples)


def test_gazetteers_are_learned_from_the_tokens_of_the_predicted_docs() -> None:
    """Also when the columns are first fitted on the gold docs, whose tokens may be others."""
    nlp = new_nlp(features={**TAG_FEATURES, "gazetteer_from_entities": True})
    examples = []
    for sentence in CORPUS:
        eg = example(nlp, "ents", sentence)
        words = [letter for token in eg.reference for letter in token.text]
        spaces = [i == len(token) - 1 for token in eg.reference for i, _ in enumerate(token.text)]
        examples.append(Example(Doc(nlp.vocab, words=words, spaces=spaces), eg.reference))
    nlp.initialize(lambda: examples)
    for _ in range(2):
        learned = pipe_of(nlp).features.to_state()["gazetteers"]["pieces"]
        assert sorted(learned) == ["ann", "bob", "lee", "new", "paris", "rome", "york"]
        train(nlp, examples, 1)


def test_gazetteers_from_entities_need_entities() -> None:
    nlp = new_nlp("tag", features={"gazetteer_from_entities": True})
    examples = corpus(nlp, "tag")
    with pytest.raises(ValueError, match=r"^treecrf: setting 'gazetteer_from_entities' needs"):
        nlp.initialize(lambda: examples)
