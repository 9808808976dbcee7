"""Setting `expected_f1`: the spans that serve F1 best instead of the most probable labelling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.labels.biluo import TokenSpan, labels_of_spans
from spacy_treecrf.pipeline.annotation.predictions import span_labels_of
from tests.pipeline.tiny_pipes import (
    CORPUS,
    SPAN_TASKS,
    new_doc,
    pipe_of,
    spans_on,
    trained_nlp,
)
from tests.refusals import assert_refused

SENTENCES = [*CORPUS, "Ann|N|O saw|V|O New|N|O York|N|O", "Paris|N|O Rome|N|O"]
F1S = [0.1, 0.4, 0.9]


def unsure(task: Any = "ents", **config: Any) -> Language:
    """A pipe that has learned so little that no span is certain."""
    return trained_nlp(task, steps=1, rounds_per_step=1, **config)


def found_on(doc: Doc, task: str = "ents") -> list[TokenSpan]:
    return [(span.start, span.end, span.label_) for span in spans_on(doc, task)]


def probabilities_of(nlp: Language, doc: Doc) -> dict[TokenSpan, float]:
    """The probability of every span that a doc may have."""
    pipe, n = pipe_of(nlp), len(doc)
    return {
        (start, end, label): pipe.span_probability(Span(doc, start, end, label))
        for start in range(n)
        for end in range(start + 1, n + 1)
        for label in pipe.labels
    }


def sets_of(spans: Sequence[TokenSpan], first: int = 0) -> Iterator[list[TokenSpan]]:
    """All sets of spans that do not overlap and do not begin before `first`."""
    yield []
    for span in spans:
        if span[0] >= first:
            for rest in sets_of(spans, span[1]):
                yield [span, *rest]


@pytest.mark.parametrize("task", SPAN_TASKS)
@pytest.mark.parametrize("expected_f1", F1S)
def test_no_other_spans_gain_more(task: str, expected_f1: float) -> None:
    nlp = unsure(task, expected_f1=expected_f1)
    for sentence in SENTENCES:
        doc = nlp(new_doc(nlp, sentence))
        gain = {
            span: p - expected_f1 / 2
            for span, p in probabilities_of(nlp, doc).items()
            if p > expected_f1 / 2
        }
        best = max(sum(gain[s] for s in some) for some in sets_of(sorted(gain)))
        found = found_on(doc, task)
        assert all(span in gain for span in found)
        assert sum(gain[span] for span in found) == pytest.approx(best, abs=1e-6)


def test_other_spans_are_found_than_those_of_the_most_probable_labelling() -> None:
    nlp = unsure()
    pipe = pipe_of(nlp)
    plain = [found_on(nlp(new_doc(nlp, sentence))) for sentence in SENTENCES]
    for sentence, spans in zip(SENTENCES, plain, strict=True):
        doc = new_doc(nlp, sentence)
        ((labels, _),) = pipe.nbest(doc, 1)
        assert labels == labels_of_spans(spans, len(doc))
    for expected_f1 in F1S:
        pipe.expected_f1 = expected_f1
        assert [found_on(nlp(new_doc(nlp, sentence))) for sentence in SENTENCES] != plain


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_single_calls_batches_and_pipes_without_probabilities_find_the_same(family: str) -> None:
    nlp = unsure(expected_f1=0.4, model={"family": family})
    docs = [new_doc(nlp, sentence) for sentence in SENTENCES]
    expected = [found_on(doc) for doc in nlp.pipe(docs)]
    assert any(expected)
    for probabilities in (True, False):
        pipe_of(nlp).probabilities = probabilities
        for _ in range(QUICK_AFTER):
            assert [found_on(nlp(new_doc(nlp, sentence))) for sentence in SENTENCES] == expected


def test_probabilities_are_those_of_the_spans_that_are_set() -> None:
    nlp = unsure(expected_f1=0.4)
    for sentence in SENTENCES:
        doc = nlp(new_doc(nlp, sentence))
        p = probabilities_of(nlp, doc)
        for ent in doc.ents:
            assert ent._.treecrf_prob == pytest.approx(p[ent.start, ent.end, ent.label_], rel=1e-4)
            assert ent._.treecrf_prob > 0.2


def test_entities_that_are_there_already_stay() -> None:
    nlp = unsure(expected_f1=0.9)
    doc = new_doc(nlp, SENTENCES[-2])
    doc.ents = [Span(doc, 1, 3, label="PLACE")]
    assert (1, 3, "PLACE") in found_on(nlp(doc))


def test_rules_and_single_labels_win() -> None:
    for model in ({"rules": ["PERSON once"]}, {"predictor": "marginal"}):
        nlp = unsure(model=model)
        docs = [new_doc(nlp, sentence) for sentence in SENTENCES]
        expected = [found_on(doc) for doc in nlp.pipe(docs)]
        pipe_of(nlp).expected_f1 = 0.1
        docs = [new_doc(nlp, sentence) for sentence in SENTENCES]
        assert [found_on(doc) for doc in nlp.pipe(docs)] == expected


def test_what_is_explained_are_the_labels_that_are_set() -> None:
    nlp = unsure(expected_f1=0.1)
    for sentence in SENTENCES:
        doc = nlp(new_doc(nlp, sentence))
        explained = pipe_of(nlp).explain(new_doc(nlp, sentence))
        assert list(explained.labels) == labels_of_spans(found_on(doc), len(doc))


def test_wrong_settings_are_refused() -> None:
    nlp = spacy.blank("en")
    for value in (-0.1, 1.1):
        config = {"expected_f1": value}
        assert_refused(lambda: nlp.add_pipe("treecrf", config=config), "'expected_f1'")  # noqa: B023
    config = {"expected_f1": 0.9, "task": "tag"}
    assert_refused(lambda: nlp.add_pipe("treecrf", config=config), "'expected_f1'", "spans")


def test_it_is_stored_and_pipelines_without_it_stay_as_they_are(tmp_path: Path) -> None:
    nlp = unsure(expected_f1=0.4)
    nlp.to_disk(tmp_path)
    assert pipe_of(spacy.load(tmp_path)).expected_f1 == 0.4
    file = tmp_path / "config.cfg"
    text = file.read_text()
    assert "expected_f1 = 0.4\n" in text
    file.write_text(text.replace("expected_f1 = 0.4\n", ""))
    assert pipe_of(spacy.load(tmp_path)).expected_f1 == 0.0


def test_labels_are_found_by_their_prefixes() -> None:
    labels = "L-A", "O", "U-B-C", "B-A"
    found = span_labels_of(labels)
    assert found is not None
    outside, of_types, opens = found
    assert outside == 1
    assert of_types.tolist() == [[3, -1, 0, -1], [-1, -1, -1, 2]]
    assert opens.tolist() == [False, True, True, True]
    assert span_labels_of(("U-A",)) is None
