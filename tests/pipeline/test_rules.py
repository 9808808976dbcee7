"""Rules across the sequence in the pipe: from a config, in predictions, stored with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.pipeline.tasks import make_ents_task
from tests.engine.rules.naive_rules import follows
from tests.pipeline.tiny_pipes import CORPUS, corpus, new_doc, new_nlp, pipe_of, trained_nlp

RULES = ["PERSON once", "PLACE after PERSON"]
MODEL = {"rules": RULES}


@pytest.fixture(scope="module")
def nlp() -> Language:
    return trained_nlp(model=MODEL)


def docs(nlp: Language) -> Iterator[Doc]:
    for sentence in CORPUS:
        yield nlp(new_doc(nlp, sentence))


def types(doc: Doc) -> list[str]:
    return [ent.label_ for ent in doc.ents]


def test_entities_follow_the_rules_of_the_config(nlp: Language) -> None:
    free = trained_nlp()
    seen = [types(free(new_doc(free, sentence))) for sentence in CORPUS]
    assert ["PLACE", "PERSON"] in seen, "what the rules forbid is in the corpus"
    labels = list(pipe_of(nlp).sequence_labels)
    for doc in docs(nlp):
        paths = pipe_of(nlp).nbest(doc, 5)
        assert all(follows(RULES, path, labels) for path, _ in paths)
        found = types(doc)
        assert found.count("PERSON") <= 1
        assert "PLACE" not in found or found[0] == "PERSON"


def test_probabilities_of_tokens_and_spans_are_those_given_the_rules(nlp: Language) -> None:
    pipe = pipe_of(nlp)
    for doc in docs(nlp):
        paths = pipe.nbest(doc, 100_000)
        assert sum(p for _, p in paths) == pytest.approx(1.0, abs=1e-5)
        marginals = pipe.marginals(doc)
        for t in range(len(doc)):
            for y, label in enumerate(pipe.sequence_labels):
                expected = sum(p for path, p in paths if path[t] == label)
                assert marginals[t, y] == pytest.approx(expected, abs=1e-5)
        for ent in doc.ents:
            best, _ = paths[0]
            own = best[ent.start : ent.end]
            expected = sum(p for path, p in paths if path[ent.start : ent.end] == own)
            assert ent._.treecrf_prob == pytest.approx(expected, abs=1e-5)
            assert pipe.span_probability(ent) == pytest.approx(expected, abs=1e-5)


def test_spans_below_min_prob_are_dropped_by_their_probability_given_the_rules() -> None:
    nlp = trained_nlp(model=MODEL, steps=1)
    found = [ent._.treecrf_prob for doc in docs(nlp) for ent in doc.ents]
    between = float(np.mean([min(found), max(found)]))
    pipe_of(nlp).min_prob = between
    kept = [ent._.treecrf_prob for doc in docs(nlp) for ent in doc.ents]
    assert kept == [p for p in found if p >= between]
    assert 0 < len(kept) < len(found)


def test_rules_are_stored_with_the_pipeline_and_may_be_changed_in_its_config(
    nlp: Language, tmp_path: Path
) -> None:
    nlp.to_disk(tmp_path / "ruled")
    again = spacy.load(tmp_path / "ruled")
    assert again.config["components"]["treecrf"]["model"]["rules"] == RULES
    assert [types(doc) for doc in docs(again)] == [types(doc) for doc in docs(nlp)]
    free = spacy.load(tmp_path / "ruled", config={"components.treecrf.model.rules": None})
    assert ["PLACE", "PERSON"] in [types(doc) for doc in docs(free)]


def test_annotation_that_is_there_already_counts_for_the_rules() -> None:
    """`overwrite` off: a person that is set leaves no room for another one."""
    nlp = trained_nlp(model={"rules": RULES[:1]})
    pipe_of(nlp).task = make_ents_task(overwrite=False)
    doc = new_doc(nlp, "they|D|O saw|V|O Ann|N|U-PERSON Lee|N|O .|.|O")
    doc.set_ents([spacy.tokens.Span(doc, 0, 1, "PERSON")], default="unmodified")
    assert types(nlp(doc)).count("PERSON") == 1


def test_rules_about_unknown_labels_are_refused_at_initialization() -> None:
    nlp = new_nlp(model={"rules": ["ZIP once"]})
    examples = corpus(nlp)
    with pytest.raises(ValueError, match="rule 'ZIP once' names 'ZIP', which is no label"):
        nlp.initialize(lambda: examples)


def test_a_wrong_rule_is_refused_when_the_pipe_is_made() -> None:
    with pytest.raises(ValueError, match="rule 'ZIP twice' is none that is known"):
        new_nlp(model={"rules": ["ZIP twice"]})


def test_scores_leave_out_what_the_rules_forbid(nlp: Language) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = pipe_of(nlp).score([*corpus(nlp)])
    assert np.isfinite(scores["treecrf_nll"])


def test_explanations_of_docs_say_that_they_are_given_the_rules(nlp: Language) -> None:
    doc = new_doc(nlp, CORPUS[0])
    explained = pipe_of(nlp).explain(doc, [0], words=["Bob"])
    marginals = pipe_of(nlp).marginals(doc)
    (token,) = explained.tokens
    label = list(pipe_of(nlp).sequence_labels).index(str(token.label))
    assert token.probability == pytest.approx(marginals[0, label])
    assert any("rules" in reason for reason in token.missing)
