"""pipe.explain: why tokens of docs get their labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_treecrf.explain.effects import ChangedPosition, probabilities_after, removals
from spacy_treecrf.explain.explainer import explainer_of
from spacy_treecrf.explain.players import row_of
from spacy_treecrf.pipeline.explaining import DocExplainer, _with_word

TEXTS = [
    ("Anna flew to Rome .", {"entities": [(0, 4, "PER"), (13, 17, "LOC")]}),
    ("Rome is old .", {"entities": [(0, 4, "LOC")]}),
    ("Paul Smith saw Paris .", {"entities": [(0, 10, "PER"), (15, 20, "LOC")]}),
]


@pytest.fixture(scope="module", name="nlp")
def trained() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    config = {
        "task": "ents",
        "model": {
            "@architectures": "spacy_treecrf.BoostedCRF.v1",
            "min_count": 1,
            "min_rows": 1,
            "linear_rounds": 3,
            "threads": 1,
        },
    }
    nlp.add_pipe("treecrf", config=config)
    examples = [Example.from_dict(nlp.make_doc(t), a) for t, a in TEXTS * 4]
    nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples)
    return nlp


def test_tokens_of_all_entities_are_explained_with_features_as_users_know_them(nlp):
    pipe = nlp.get_pipe("treecrf")
    doc = nlp("Anna is old . Paul Smith flew to Rome .")
    found = pipe.explain(doc)
    assert [(s.start, s.end, s.label) for s in found.spans] == [
        (ent.start, ent.end, ent.label_) for ent in doc.ents
    ]
    assert doc.ents
    for span, ent in zip(found.spans, doc.ents, strict=True):
        assert span.probability == pytest.approx(ent._.treecrf_prob, abs=1e-6)
    inside = [t for ent in doc.ents for t in range(ent.start, ent.end)]
    assert [one.position for one in found.tokens] == inside
    assert [one.text for one in found.tokens] == [doc[t].text for t in inside]
    assert "".join(map("".join, zip(found.texts, found.whitespace, strict=True))) == doc.text
    assert any(part.feature == "lower[0]=anna" for part in found.tokens[0].contributions)
    marginals = pipe.marginals(doc)
    for one in found.tokens:
        own = marginals[one.position, pipe.sequence_labels.index(one.label)]
        assert one.probability == pytest.approx(own, abs=1e-6)
    best = pipe.nbest(doc, 5)
    assert [list(one.labels) for one in found.alternatives] == [labels for labels, _ in best]
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_what_a_name_is_elsewhere_in_the_doc_is_one_of_the_reasons(nlp, monkeypatch):
    pipe = nlp.get_pipe("treecrf")
    words = ["Anna", "flew", "to", "Rome", ".", "Old", "Rome", "is", "Anna", "."]
    doc = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 5) for i in range(len(words))])
    monkeypatch.setattr(pipe, "agreement", 0.0)
    (plain,) = pipe.explain(doc, [6], effects=30).tokens
    monkeypatch.setattr(pipe, "agreement", 0.8)
    found = pipe.explain(doc, [6], label=plain.label, effects=30)
    (one,) = found.tokens
    own = pipe.marginals(doc)[6, pipe.sequence_labels.index(one.label)]
    assert one.probability == pytest.approx(own, abs=1e-6)
    assert one.probability != pytest.approx(plain.probability, abs=1e-3)
    (evidence,) = [part for part in one.contributions if part.source == "evidence"]
    assert (evidence.feature, evidence.column) == ("elsewhere in the document", "agreement")
    rest = sum(part.value for part in one.contributions) + one.base
    assert one.score == pytest.approx(rest + one.left.value + one.right.value)
    without = sum(part.value for part in plain.contributions) + plain.base
    assert rest == pytest.approx(without + evidence.value, abs=1e-6)
    assert all(effect.before == one.probability for effect in one.effects)


def test_chosen_tokens_and_labels_are_explained(nlp):
    pipe = nlp.get_pipe("treecrf")
    doc = nlp("Anna flew to Rome .")
    found = pipe.explain(doc, [-2, 0], label="U-LOC", against="U-PER", interactions=True, nbest=0)
    assert [one.position for one in found.tokens] == [0, 3]
    assert all((one.label, one.against) == ("U-LOC", "U-PER") for one in found.tokens)
    assert found.alternatives == ()
    with pytest.raises(ValueError, match="token 9 is not in the doc, which has 5 tokens"):
        pipe.explain(doc, [9])
    with pytest.raises(ValueError, match="label 'LOC' is not one of the model's"):
        pipe.explain(doc, label="LOC")


def test_other_words_are_tried_in_the_place_of_a_token(nlp):
    pipe = nlp.get_pipe("treecrf")
    doc = nlp("Anna flew to Rome .")
    one = pipe.explain(doc, [3], words=["Paris", "old"], effects=1).tokens[0]
    assert [effect.replaced_by for effect in one.effects] == ["Paris", "old", None]
    other = nlp("Anna flew to Paris .")
    label = pipe.sequence_labels.index(one.label)
    assert one.effects[0].after == pytest.approx(pipe.marginals(other)[3, label], abs=1e-6)
    with pytest.raises(ValueError, match="is no word"):
        pipe.explain(doc, [3], words=[" "])


def test_docs_with_another_word_keep_the_values_of_extensions(nlp):
    for holder in (Token, Doc):
        holder.set_extension("shade", default=None, force=True)
    doc = nlp("Anna flew to Rome .")
    doc._.shade = "doc"
    doc[1]._.shade, doc[4]._.shade = "verb", "end"
    other = _with_word(doc, 3, "Timbuktu")
    assert other.text == "Anna flew to Timbuktu ."
    assert other._.shade == "doc"
    assert [token._.shade for token in other] == [None, "verb", None, None, "end"]
    for holder in (Token, Doc):
        holder.remove_extension("shade")


def test_an_empty_doc_has_an_empty_explanation(nlp):
    found = nlp.get_pipe("treecrf").explain(Doc(nlp.vocab))
    assert found.tokens == ()
    assert found.labels == ()


def test_effects_by_messages_are_those_of_whole_sequences_with_evidence(nlp, monkeypatch):
    pipe = nlp.get_pipe("treecrf")
    monkeypatch.setattr(pipe, "agreement", 0.8)
    doc = Doc(nlp.vocab, words=["Anna", "flew", "to", "Rome", ".", "Rome", "is", "Anna", "."])
    with pipe.predictor() as predictor:
        asked = DocExplainer.of(pipe, doc, predictor).asked
        assert asked.evidence is not None
        explainer = explainer_of(predictor.model)
        row = row_of(asked.data, 5)
        changes = removals(explainer.players, row, asked.data.numeric.shape[1])
        changed = [ChangedPosition(5, asked.sequence_of(5), changes)]
        quick, slow = (
            probabilities_after(
                predictor,
                asked.data,
                changed,
                messages,
                explainer.parts.context_order,
                None,
                asked.evidence,
            )[0]
            for messages in (explainer._messages(asked, [5]), {})
        )
    assert len(quick) == len(changes)
    np.testing.assert_allclose(quick, slow, atol=1e-6)
