"""Tasks that all share rules, their registered names, and the tasks of single tokens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import spacy
from confection import Config, ConfigValidationError
from hypothesis import given
from hypothesis import strategies as st
from spacy.scorer import Scorer
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import registry

from spacy_treecrf.engine.constraints import KINDS
from spacy_treecrf.pipeline.tasks import (
    AttributeTask,
    EntsTask,
    ExtTask,
    SpansTask,
    Task,
    make_pos_task,
    make_tag_task,
    make_task,
)

VOCAB = spacy.blank("en").vocab
NAMES = ["tag", "pos", "ents", "spans", "spans:np", "ext:task_test"]


def new_doc(*words: str, **annotation: Any) -> Doc:
    return Doc(VOCAB, words=list(words), **annotation)


@pytest.fixture
def extension() -> Iterator[str]:
    Token.set_extension("task_test", default=None, force=True)
    yield "task_test"
    Token.remove_extension("task_test")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_what_the_pipe_needs(name: str) -> None:
    task = make_task(name)
    assert isinstance(task, Task)
    assert task.constraints in KINDS
    assert sum(weight or 0.0 for weight in task.score_weights.values()) == 1.0
    assert "treecrf_nll" in task.score_weights


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", [[], [" "], ["\n", "\t \n"], ["one"]])
def test_empty_whitespace_and_unannotated_docs(name: str, words: list[str]) -> None:
    task = make_task(name)
    doc = new_doc(*words)
    example = Example(doc, new_doc(*words))
    assert task.gold(example) == [None] * len(words)
    assert task.preset(doc) is None
    assert not task.annotate(doc, ["O"] * len(words))
    scores = task.score([example])
    assert all(scores[key] is None for key in task.score_weights if key != "treecrf_nll")


@pytest.mark.parametrize("name", NAMES)
def test_scores_hold_every_weighted_key(name: str) -> None:
    task = make_task(name)
    reference, predicted = new_doc("a", "b"), new_doc("a", "b")
    labels = {"tag": ["X", "Y"], "pos": ["NOUN", "VERB"]}.get(name, ["U-A", "O"])
    task.annotate(reference, labels)
    task.annotate(predicted, labels)
    # A generator, and settings of the pipe, as spaCy's Scorer passes them on.
    scores = task.score(
        (example for example in [Example(predicted, reference)]), labels=["A"], overwrite=True
    )
    assert set(scores) == set(task.score_weights) - {"treecrf_nll"}
    for key, weight in task.score_weights.items():
        if weight is not None:
            assert scores[key] == pytest.approx(1.0)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_number_of_labels_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: 1 labels for a doc of 2 tokens"):
        make_task(name).annotate(new_doc("a", "b"), ["O"])


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"@misc": "spacy_treecrf.TagTask.v1"}, AttributeTask("TAG", overwrite=False)),
        ({"@misc": "spacy_treecrf.PosTask.v1"}, AttributeTask("POS", overwrite=True)),
        ({"@misc": "spacy_treecrf.EntsTask.v1", "overwrite": True}, EntsTask(overwrite=True)),
        ({"@misc": "spacy_treecrf.SpansTask.v1", "key": "np"}, SpansTask("np")),
        ({"@misc": "spacy_treecrf.ExtTask.v1", "attr": "task_test"}, ExtTask("task_test")),
    ],
)
def test_config_blocks_make_tasks(block: dict[str, Any], expected: Task) -> None:
    assert registry.resolve(Config({"task": block}))["task"] == expected


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"@misc": "spacy_treecrf.EntsTask.v1", "overwrite": "maybe"}, "overwrite"),
        ({"@misc": "spacy_treecrf.SpansTask.v1", "key": 3}, "key"),
        ({"@misc": "spacy_treecrf.ExtTask.v1"}, "attr"),
        ({"@misc": "spacy_treecrf.TagTask.v1", "colour": 1}, "colour"),
    ],
)
def test_bad_config_blocks_are_refused_by_name(block: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigValidationError, match=part):
        registry.resolve(Config({"task": block}))


def test_short_names() -> None:
    assert make_task("tag") == make_tag_task()
    assert make_task("pos") == make_pos_task()
    assert make_task("ents") == EntsTask()
    assert make_task("spans") == SpansTask("sc")
    assert make_task("spans:a:b") == SpansTask("a:b")
    assert make_task("ext:task_test") == ExtTask("task_test")
    task = EntsTask(overwrite=True)
    assert make_task(task) is task


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("ner", "unknown task 'ner'"),
        ("", "unknown task ''"),
        ("tag:x", "unknown task 'tag:x'"),
        (None, "unknown task None"),
        (3, "unknown task 3"),
        ("ext", "'ext:name'"),
        ("ext:", "'ext:name'"),
        ("spans:", "key of the spans task is ''"),
    ],
)
def test_bad_names_are_refused_with_the_remedy(name: Any, part: str) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: ") as caught:
        make_task(name)
    assert part in str(caught.value)


def test_importing_the_tasks_does_not_load_numba() -> None:
    code = "import sys, spacy_treecrf.pipeline.tasks; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
