"""Entities and spans as BILUO labels: gold, preset, annotate and scores agree with spaCy's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline.spancat import spancat_score
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example, biluo_tags_to_spans

from spacy_treecrf.pipeline.tasks import EntsTask, SpansTask, Task
from tests.pipeline.random_labels import biluo_sequences

VOCAB = spacy.blank("en").vocab
BOTH: list[Task] = [EntsTask(), SpansTask()]
ODD_LABELS = ["", "O", "-", "B", "B-", "-A", "I-A", "L-A", "B-A", "U-A", "L-B", "other", "o", "🙂"]


def new_doc(*words: str, **annotation: Any) -> Doc:
    return Doc(VOCAB, words=list(words), **annotation)


def numbered(n: int) -> Doc:
    return new_doc(*(f"w{i}" for i in range(n)))


def glued(words: Iterable[str]) -> Doc:
    """A doc without blanks between its words."""
    words = list(words)
    return new_doc(*words, spaces=[False] * len(words))


def found(task: Task, doc: Doc) -> list[tuple[int, int, str]]:
    spans = doc.ents if isinstance(task, EntsTask) else doc.spans["sc"]
    return [(span.start, span.end, span.label_) for span in spans]


def with_spans(doc: Doc, *spans: tuple[int, int, str], key: str = "sc") -> Doc:
    doc.spans[key] = [Span(doc, start, end, label=name) for start, end, name in spans]
    return doc


@pytest.mark.parametrize("task", BOTH)
@given(labels=biluo_sequences())
def test_gold_of_annotated_labels_is_the_labels(task: Task, labels: list[str]) -> None:
    doc = numbered(len(labels))
    made = task.annotate(doc, labels)
    assert task.gold(Example(numbered(len(labels)), doc)) == labels
    assert made is not None
    assert found(task, doc) == [(span.start, span.end, span.label_) for span in made]
    assert found(task, doc) == [
        (span.start, span.end, span.label_) for span in biluo_tags_to_spans(doc, labels)
    ]


@pytest.mark.parametrize("task", BOTH)
@given(labels=biluo_sequences(min_size=1), data=st.data())
def test_gold_of_other_tokens_is_partial_where_a_span_cannot_be_expressed(
    task: Task, labels: list[str], data: st.DataObject
) -> None:
    reference = glued(f"w{i}" for i in range(len(labels)))
    task.annotate(reference, labels)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(reference.text) - 1))))
    predicted = glued(reference.text[a:b] for a, b in pairwise([0, *cuts, len(reference.text)]))
    gold = task.gold(Example(predicted, reference))
    known = biluo_tags_to_spans(predicted, [label or "O" for label in gold])
    in_gold = {(span.start_char, span.end_char, span.label_) for span in known}
    edges = {0, *cuts, len(reference.text)}
    for start, end, name in found(task, reference):
        span = reference[start:end]
        offsets = (span.start_char, span.end_char, name)
        assert (offsets in in_gold) == (offsets[0] in edges and offsets[1] in edges)
        in_gold.discard(offsets)
        for token in predicted:
            if token.idx < offsets[1] and token.idx + len(token) > offsets[0]:
                assert gold[token.i] != "O"
    assert not in_gold


@pytest.mark.parametrize("task", BOTH)
@given(labels=st.lists(st.one_of(st.sampled_from(ODD_LABELS), st.text(max_size=3)), max_size=12))
def test_odd_labels_never_fail(task: Task, labels: list[str]) -> None:
    doc = numbered(len(labels))
    made = task.annotate(doc, labels)
    assert made is not None
    assert len(made) == len(found(task, doc))
    assert all(token.ent_iob != 0 for token in doc) or isinstance(task, SpansTask)
    assert None not in task.gold(Example(numbered(len(labels)), doc))


@given(
    iob=st.lists(st.sampled_from(["", "O", "B-A", "I-A", "B-B", "-"]), min_size=1, max_size=8),
    data=st.data(),
)
def test_same_tokens_give_the_labels_of_spacys_alignment(
    iob: list[str], data: st.DataObject
) -> None:
    words = [data.draw(st.sampled_from(["a", "b", "\n"])) for _ in iob]
    words_only = [w if tag in ("", "O", "-") else "a" for w, tag in zip(words, iob, strict=True)]
    ents = [
        f"B{t[1:]}" if t == "I-A" and (i == 0 or iob[i - 1][2:] != "A") else t
        for i, t in enumerate(iob)
    ]
    reference = new_doc(*words_only, ents=[None if tag in ("", "-") else tag for tag in ents])
    example = Example(new_doc(*words_only), reference)
    assert EntsTask().gold(example) == example.get_aligned_ner()


def test_missing_entity_annotation_is_not_outside() -> None:
    reference = new_doc("a", "b", "c", "\n", "d", ents=["B-A", None, "O", None, None])
    gold = EntsTask().gold(Example(new_doc("a", "b", "c", "\n", "d"), reference))
    assert gold == ["U-A", None, "O", "O", None]


def test_entities_of_other_tokens() -> None:
    reference = new_doc(
        "New", "York", "and", "San", "Jose", ents=["B-X-1 : y", "I-X-1 : y", "O", "B-L", "I-L"]
    )
    example = Example(new_doc("N", "ewYork", " ", "andSan", "Jose"), reference)
    assert EntsTask().gold(example) == ["B-X-1 : y", "L-X-1 : y", "O", None, None]


def test_gold_without_the_key_is_unknown_and_an_empty_key_is_outside() -> None:
    reference = new_doc("a", "b")
    example = Example(new_doc("a", "b"), reference)
    misaligned = Example(new_doc("ab"), reference)
    assert SpansTask().gold(example) == [None, None]
    assert SpansTask().gold(misaligned) == [None]
    reference.spans["sc"] = []
    assert SpansTask().gold(example) == ["O", "O"]
    assert SpansTask().gold(misaligned) == ["O"]
    assert SpansTask("other").gold(example) == [None, None]


@pytest.mark.parametrize("words", [["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "e", " "]])
def test_of_overlapping_spans_the_longest_is_learned(words: list[str]) -> None:
    """Nested ones vanish; tokens that only a lost span has are not annotated."""
    reference = with_spans(
        new_doc("a", "b", "c", "d", "e"), (1, 2, "N"), (0, 3, "A"), (2, 4, "B"), (0, 3, "C")
    )
    gold = SpansTask().gold(Example(new_doc(*words), reference))
    assert gold == ["B-A", "I-A", "L-A", None, "O", "O"][: len(words)]


def test_spans_without_a_label_are_not_annotated() -> None:
    reference = with_spans(new_doc("a", "b", "c"), (0, 2, ""))
    assert SpansTask().gold(Example(new_doc("a", "b", "c"), reference)) == [None, None, "O"]


def test_spans_of_other_tokens() -> None:
    reference = with_spans(new_doc("New", "York", "and", "San", "Jose"), (0, 2, "L"), (3, 5, "L"))
    example = Example(new_doc("NewYork", "\n", "an", "dSan", "Jose"), reference)
    assert SpansTask().gold(example) == ["U-L", "O", "O", None, None]


@pytest.mark.parametrize("task", BOTH)
def test_whitespace_is_cut_off_the_ends_of_spans(task: Task) -> None:
    words = ["\n", "a", " ", "b", " ", "\n", "c", "\n"]
    doc = new_doc(*words)
    labels = ["B-A", "I-A", "I-A", "I-A", "I-A", "L-A", "O", "U-A"]
    task.annotate(doc, labels)
    assert found(task, doc) == [(1, 4, "A")]
    assert all(token.ent_iob != 0 for token in doc) or isinstance(task, SpansTask)
    reference = new_doc(*words)
    whole = [Span(reference, 0, 6, label="A"), Span(reference, 7, 8, label="A")]
    reference.set_ents(whole)
    reference.spans["sc"] = whole
    trimmed = ["O", "B-A", "I-A", "L-A", "O", "O", "O", "O"]
    assert task.gold(Example(new_doc(*words), reference)) == trimmed


@pytest.mark.parametrize("overwrite", [False, True])
def test_tokens_without_entity_become_outside(overwrite: bool) -> None:
    doc = numbered(3)
    EntsTask(overwrite).annotate(doc, ["O", "U-A", "O"])
    assert [token.ent_iob_ for token in doc] == ["O", "B", "O"]


def preset_doc() -> Doc:
    """Tokens: entity of two, blocked, outside, missing, missing, entity with ids."""
    doc = numbered(7)
    doc.set_ents(
        [
            Span(doc, 0, 2, label="OLD"),
            Span(doc, 6, 7, label="OLD", kb_id="Q1", span_id="id1"),
        ],
        blocked=[doc[2:3]],
        outside=[doc[3:4]],
        missing=[doc[4:6]],
    )
    return doc


def test_preset_entities_and_blocked_tokens_are_kept() -> None:
    doc = preset_doc()
    task = EntsTask()
    assert task.preset(doc) == ["B-OLD", "L-OLD", "O", None, None, None, "U-OLD"]
    made = task.annotate(doc, ["U-NEW", "B-NEW", "L-NEW", "U-NEW", "O", "B-NEW", "L-NEW"])
    assert [(span.start, span.end, span.label_) for span in made] == [(3, 4, "NEW")]
    assert found(task, doc) == [(0, 2, "OLD"), (3, 4, "NEW"), (6, 7, "OLD")]
    assert [token.ent_iob_ for token in doc] == ["B", "I", "B", "B", "O", "O", "B"]
    assert doc[2].ent_type == 0
    assert (doc.ents[2].kb_id_, doc.ents[2].ent_id_) == ("Q1", "id1")


def test_predicting_the_preset_entities_changes_nothing() -> None:
    doc = preset_doc()
    labels = [label or "O" for label in EntsTask().preset(doc) or []]
    assert EntsTask().annotate(doc, labels) == []
    assert found(EntsTask(), doc) == [(0, 2, "OLD"), (6, 7, "OLD")]


def test_overwrite_replaces_preset_entities_with_all_they_had() -> None:
    doc = preset_doc()
    task = EntsTask(overwrite=True)
    assert task.preset(doc) is None
    made = task.annotate(doc, ["O", "B-NEW", "L-NEW", "O", "O", "O", "U-NEW"])
    assert found(task, doc) == [(1, 3, "NEW"), (6, 7, "NEW")]
    assert len(made) == 2
    assert [token.ent_iob_ for token in doc] == ["O", "B", "I", "O", "O", "O", "B"]
    assert (doc.ents[1].kb_id_, doc.ents[1].ent_id_) == ("", "")


def test_tokens_that_are_only_marked_outside_are_free() -> None:
    doc = numbered(2)
    doc.ents = []
    assert EntsTask().preset(doc) is None
    EntsTask().annotate(doc, ["O", "U-A"])
    assert found(EntsTask(), doc) == [(1, 2, "A")]


def test_preset_spans_are_kept_unless_overwritten() -> None:
    spans = [(3, 4, ""), (0, 2, "A"), (1, 3, "B")]
    labels = ["B-N", "L-N", "O", "U-N", "U-N"]
    doc = with_spans(numbered(5), *spans)
    doc.spans["sc"].attrs["note"] = "kept"
    task = SpansTask(overwrite=False)
    assert task.preset(doc) == ["B-A", "L-A", "O", "O", None]
    made = task.annotate(doc, labels)
    assert [(span.start, span.end) for span in made] == [(4, 5)]
    assert found(task, doc) == [(0, 2, "A"), (1, 3, "B"), (3, 4, ""), (4, 5, "N")]
    assert doc.spans["sc"].attrs == {"note": "kept"}

    doc = with_spans(numbered(5), *spans)
    assert SpansTask().preset(doc) is None
    SpansTask().annotate(doc, labels)
    assert found(SpansTask(), doc) == [(0, 2, "N"), (3, 4, "N"), (4, 5, "N")]


def test_spans_are_written_under_their_key_only() -> None:
    doc = with_spans(numbered(2), (0, 1, "A"), key="other")
    for overwrite in (False, True):
        SpansTask("np", overwrite).annotate(doc, ["O", "U-B"])
        assert [span.label_ for span in doc.spans["np"]] == ["B"]
    assert [span.label_ for span in doc.spans["other"]] == ["A"]
    assert doc.ents == ()


def test_entity_score_is_spacys_and_skips_missing_gold() -> None:
    reference = new_doc("a", "b", "c", "d", ents=["B-A", None, "O", "B-B"])
    predicted = new_doc("a", "b", "c", "d", ents=["B-A", "B-A", "B-A", "O"])
    examples = [Example(predicted, reference), Example(numbered(2), numbered(2))]
    scores = EntsTask().score(iter(examples))
    expected = get_ner_prf(examples)
    assert {key: scores[key] for key in expected} == expected
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(0.5), pytest.approx(0.5))
    assert scores["ents_token_acc"] == pytest.approx(1 / 3)


def test_span_score_is_spacys_and_counts_gold_that_labels_cannot_express() -> None:
    reference = with_spans(numbered(4), (0, 2, "A"), (1, 2, "A"))
    predicted = with_spans(numbered(4), (0, 2, "A"))
    examples = [Example(predicted, reference), Example(with_spans(numbered(2)), numbered(2))]
    scores = SpansTask().score(iter(examples), spans_key="other")
    expected = spancat_score(examples, spans_key="sc")
    assert {key: scores[key] for key in expected} == expected
    assert (scores["spans_sc_p"], scores["spans_sc_r"]) == (pytest.approx(1.0), pytest.approx(0.5))
    assert scores["spans_sc_token_acc"] == 1.0
