"""Tags, parts of speech and extensions as labels of single tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.scorer import Scorer
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_treecrf.pipeline.tasks import (
    AttributeTask,
    ExtTask,
    make_pos_task,
    make_tag_task,
)

VOCAB = spacy.blank("en").vocab


def new_doc(*words: str, **annotation: Any) -> Doc:
    return Doc(VOCAB, words=list(words), **annotation)


@pytest.fixture
def extension() -> Iterator[str]:
    Token.set_extension("task_test", default=None, force=True)
    yield "task_test"
    Token.remove_extension("task_test")


TAGS = st.sampled_from(["NN", "VB", "-LRB-", "x y", "new\nline", "🙂", "#", "!NN", ""])
POS = st.sampled_from(["NOUN", "VERB", "X", "SPACE", ""])


@given(st.lists(TAGS, min_size=1, max_size=8))
def test_tags_are_read_as_they_were_written(tags: list[str]) -> None:
    doc = new_doc(*(f"w{i}" for i in range(len(tags))))
    make_tag_task().annotate(doc, tags)
    assert [token.tag_ for token in doc] == tags
    assert make_tag_task().gold(Example(doc.copy(), doc)) == [tag or None for tag in tags]


@given(st.lists(POS, min_size=1, max_size=8))
def test_parts_of_speech_are_read_as_they_were_written(parts: list[str]) -> None:
    doc = new_doc(*(f"w{i}" for i in range(len(parts))))
    make_pos_task().annotate(doc, parts)
    assert [token.pos_ for token in doc] == parts
    assert make_pos_task().gold(Example(doc.copy(), doc)) == [part or None for part in parts]


@pytest.mark.parametrize("label", ["PERSON", "NN", "nsubj", "no such part"])
def test_unknown_part_of_speech_leaves_the_token_as_it_was(label: str) -> None:
    doc = new_doc("a", "b", pos=["NOUN", ""])
    make_pos_task().annotate(doc, [label, label])
    assert [token.pos_ for token in doc] == ["NOUN", ""]


@pytest.mark.parametrize("attr", ["TAG", "POS"])
def test_same_tokens_give_the_labels_of_spacys_alignment(attr: str) -> None:
    values = ["NOUN", "", "VERB"]
    reference = new_doc("a", "b", "c", **{"tags" if attr == "TAG" else "pos": values})
    example = Example(new_doc("a", "b", "c"), reference)
    aligned = [value or None for value in example.get_aligned(attr, as_string=True)]
    assert AttributeTask(attr).gold(example) == aligned == ["NOUN", None, "VERB"]


def test_other_tokens_get_their_tag_where_it_is_clear() -> None:
    reference = new_doc("can", "not", "New", "York", "I", "go", tags=["A", "B", "N", "N", "P", ""])
    predicted = new_doc("cannot", "NewYork", " ", "I", "g", "o")
    gold = make_tag_task().gold(Example(predicted, reference))
    assert gold == [None, "N", None, "P", None, None]


@pytest.mark.parametrize("make", [make_tag_task, make_pos_task])
def test_overwrite_of_token_values(make: Any) -> None:
    name = make().attr.lower()
    for overwrite, expected in [(False, ["NOUN", "VERB"]), (True, ["VERB", "VERB"])]:
        doc = new_doc("a", "b", **{"tags" if name == "tag" else "pos": ["NOUN", ""]})
        task = make(overwrite=overwrite)
        assert task.preset(doc) == (None if overwrite else ["NOUN", None])
        assert task.annotate(doc, ["VERB", "VERB"]) is None
        assert [getattr(token, f"{name}_") for token in doc] == expected


def test_writing_tags_leaves_other_annotation_alone() -> None:
    doc = new_doc("a", "b", "c", sent_starts=[True, False, True], lemmas=["x", "y", "z"])
    make_tag_task().annotate(doc, ["A", "B", "C"])
    assert [token.is_sent_start for token in doc] == [True, False, True]
    assert [token.lemma_ for token in doc] == ["x", "y", "z"]


def test_tag_score_is_spacys_and_skips_missing_gold() -> None:
    reference = new_doc("a", "b", "c", tags=["A", "", "C"])
    example = Example(new_doc("a", "b", "c", tags=["A", "B", "B"]), reference)
    scores = make_tag_task().score([example])
    assert scores == Scorer.score_token_attr([example], "tag")
    assert scores["tag_acc"] == pytest.approx(0.5)


def test_extension_values_become_labels(extension: str) -> None:
    values = ["x", 0, False, 2.5, None, "", "B-A\n🙂"]
    reference = new_doc(*"abcdefg")
    for token, value in zip(reference, values, strict=True):
        token._.set(extension, value)
    gold = ExtTask(extension).gold(Example(new_doc(*"abcdefg"), reference))
    assert gold == ["x", "0", "False", "2.5", None, None, "B-A\n🙂"]


@pytest.mark.parametrize(
    "how",
    [
        {"default": None},
        {"default": "no"},
        {"default": 7},
        {"default": ["list"]},
        {"getter": lambda token: token.text * token.i, "setter": lambda token, value: None},
    ],
)
def test_gold_labels_are_what_tokens_say_one_by_one(extension: str, how: dict[str, Any]) -> None:
    Token.set_extension(extension, **how, force=True)
    task = ExtTask(extension)
    reference = new_doc("wörd", "a", " ", "🙂", "b")
    reference[1]._.set(extension, "yes")
    reference[3]._.set(extension, "")
    found = task.gold(Example(new_doc("wörd", "a", " ", "🙂", "b"), reference))
    values = [token._.get(extension) for token in reference]
    assert found == [None if value is None or value == "" else str(value) for value in values]


def test_extension_of_other_tokens_is_known_where_it_is_clear(extension: str) -> None:
    reference = new_doc("can", "not", "New", "York", "I")
    ExtTask(extension).annotate(reference, ["A", "B", "N", "N", "P"])
    predicted = new_doc("cannot", "NewYork", " ", "I")
    assert ExtTask(extension).gold(Example(predicted, reference)) == [None, "N", None, "P"]


def test_extension_is_written_and_scored_as_strings(extension: str) -> None:
    reference, predicted = new_doc("a", "b", "c"), new_doc("a", "b", "c")
    for token, value in zip(reference, [True, 0, None], strict=True):
        token._.set(extension, value)
    task = ExtTask(extension)
    assert task.annotate(predicted, ["True", "1", "x"]) is None
    assert [token._.get(extension) for token in predicted] == ["True", "1", "x"]
    assert task.score([Example(predicted, reference)]) == {
        f"ext_{extension}_acc": pytest.approx(0.5)
    }


def test_extension_is_registered_if_no_one_did() -> None:
    if Token.has_extension("task_test"):
        Token.remove_extension("task_test")
    ExtTask("task_test")
    assert Token.get_extension("task_test") == (None, None, None, None)
    Token.remove_extension("task_test")


def test_extension_with_getter_and_setter_is_written_through_them(extension: str) -> None:
    written: dict[int, str] = {}
    Token.set_extension(
        extension,
        getter=lambda token: written.get(token.i),
        setter=lambda token, value: written.update({token.i: value}),
        force=True,
    )
    ExtTask(extension).annotate(new_doc("a", "b"), ["X", "Y"])
    assert written == {0: "X", 1: "Y"}


@pytest.mark.parametrize("kind", ["getter", "method"])
def test_extension_that_cannot_be_written_is_refused(extension: str, kind: str) -> None:
    Token.set_extension(extension, **{kind: lambda token: "x"}, force=True)
    with pytest.raises(ValueError, match=r"^treecrf: .*cannot be written.*getter and a setter"):
        ExtTask(extension)
