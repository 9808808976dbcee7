"""Tasks: which annotation of a Doc the labels of a sequence stand for.

A task reads gold labels from an Example, writes predicted ones to a Doc, and scores. Its rules are
those of the spaCy pipe that sets the same annotation: `tagger` (tag), `morphologizer` (pos), `ner`
(ents) and `spancat` (spans). The pipe imports them; they import labels alone.
"""

from __future__ import annotations

from spacy.util import registry

from spacy_treecrf.pipeline.tasks.span_tasks import EntsTask, SpansTask
from spacy_treecrf.pipeline.tasks.task import Task
from spacy_treecrf.pipeline.tasks.token_tasks import AttributeTask, ExtTask

__all__ = [
    "AttributeTask",
    "EntsTask",
    "ExtTask",
    "SpansTask",
    "Task",
    "make_ents_task",
    "make_ext_task",
    "make_pos_task",
    "make_spans_task",
    "make_tag_task",
    "make_task",
    "place_of",
]


def place_of(task: Task) -> str:
    """Where the annotation of a task stands on docs, as people write it."""
    if isinstance(task, EntsTask):
        return "doc.ents"
    if isinstance(task, SpansTask):
        return f'doc.spans["{task.key}"]'
    if isinstance(task, AttributeTask):
        return f"token.{task.attr.lower()}_"
    return f"token._.{task.attr}" if isinstance(task, ExtTask) else type(task).__name__


def make_tag_task(overwrite: bool = False) -> Task:
    return AttributeTask("TAG", overwrite)


def make_pos_task(overwrite: bool = True) -> Task:
    return AttributeTask("POS", overwrite)


def make_ents_task(overwrite: bool = False) -> Task:
    return EntsTask(overwrite)


def make_spans_task(key: str = "sc", overwrite: bool = True) -> Task:
    return SpansTask(key, overwrite)


def make_ext_task(attr: str) -> Task:
    return ExtTask(attr)


# Registered by calls, as decorators would hide the types of the functions.
registry.misc("spacy_treecrf.TagTask.v1", func=make_tag_task)
registry.misc("spacy_treecrf.PosTask.v1", func=make_pos_task)
registry.misc("spacy_treecrf.EntsTask.v1", func=make_ents_task)
registry.misc("spacy_treecrf.SpansTask.v1", func=make_spans_task)
registry.misc("spacy_treecrf.ExtTask.v1", func=make_ext_task)


def make_task(task: str | Task) -> Task:
    """The task of a short name: "tag", "pos", "ents", "spans", "spans:<key>" or "ext:<attr>"."""
    if isinstance(task, Task):
        return task
    name, colon, argument = task.partition(":") if isinstance(task, str) else ("", "", "")
    if name in ("tag", "pos", "ents") and not colon:
        return {"tag": make_tag_task, "pos": make_pos_task, "ents": make_ents_task}[name]()
    if name == "spans":
        return make_spans_task(argument) if colon else make_spans_task()
    if name == "ext":
        if not argument:
            raise ValueError(
                "treecrf: task 'ext' needs the name of a token extension; write 'ext:name'"
            )
        return make_ext_task(argument)
    raise ValueError(
        f"treecrf: unknown task {task!r}; use 'tag', 'pos', 'ents', 'spans', 'spans:key', "
        "'ext:name', or a registered function that returns a Task"
    )
