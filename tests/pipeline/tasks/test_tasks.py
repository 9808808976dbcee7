"""The rules that all tasks share, and their registered names."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import spacy
from confection import Config, ConfigValidationError
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from spacy_treecrf.engine.limits import CONSTRAINTS
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


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_what_the_pipe_needs(name: str) -> None:
    task = make_task(name)
    assert isinstance(task, Task)
    assert task.constraints in CONSTRAINTS
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
