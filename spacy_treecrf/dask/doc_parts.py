"""Feature dicts and labels of spaCy's docs, as column files of their words would have them.

Importing this loads spaCy; other modules of this room import it where a part is a .spacy file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import fsspec
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.columnar.template import Template
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences
from spacy_treecrf.formats.token_files import parse_spacy_docs
from spacy_treecrf.labels.biluo import Label, without_cut_spans
from spacy_treecrf.pipeline.gold.soft_gold import is_weighted
from spacy_treecrf.pipeline.sequencing import starts_of
from spacy_treecrf.pipeline.tasks import Task, make_task

WORDS = Template(("word", "label"))
SENTENCES = "auto"  # where a doc has boundaries; else it is one sequence


def read_docs(
    path: str | os.PathLike[str], task: str | None = None, *, template: Template | None = None
) -> tuple[FeatureSequences, LabelSequences]:
    """X and y of a `.spacy` file, as `DaskBoostedCRF.fit(path, task=task)` sees them.

    A sequence is a sentence where a doc has boundaries, else the doc.

    path: The file; it may be an address that fsspec knows.
    task: Which annotation the labels are: "tag", "pos", "ents", "spans", "spans:<key>" or
        "ext:<attr>". Those of spans are in BILUO. None: labels are not read, and are None.
    template: What the words of tokens become; by default what `spacy-treecrf train` makes of the
        first column of a file.
    """
    name = os.fspath(path)
    template = WORDS if template is None else check_template(template)
    reader = None if task is None else make_task(task)
    docs = list(parse_spacy_docs(_bytes_of(name), name))
    for number, doc in enumerate(docs, 1):
        if reader is not None and is_weighted(doc):
            raise ValueError(
                f"treecrf: doc {number} of {name} has weights (treecrf_weight) or what a teacher "
                "says of its labels, which are not read here; use docs without"
            )
    y = [own for doc in docs for own in _labels_of(doc, reader)]
    return doc_features(docs, template=template), y


def read_annotated(path: str, task: str, template: Template) -> tuple[Any, Any]:
    """X and y of a part, which has some annotation for the task if it has tokens."""
    X, y = read_docs(path, task, template=template)
    if X and all(label is None for labels in y for label in labels):
        raise ValueError(
            f"treecrf: no token has annotation for the task {task!r}; name the task that the docs "
            "are annotated for, or leave the file out"
        )
    return X, y


def doc_features(docs: Iterable[Doc], *, template: Template | None = None) -> FeatureSequences:
    """The feature dicts of docs, as `read_docs` makes them: sequences of one doc after the other.

    template: That of the training.
    """
    template = WORDS if template is None else check_template(template)
    rows = [
        [[token.text] for token in doc[first:last]]
        for doc in docs
        for first, last in pairwise(_bounds(doc))
    ]
    return list(template.features(rows, lambda s, t: f"sequence {s + 1}, token {t + 1}"))


def check_template(template: Template) -> Template:
    """A template for docs: one column of words, or of letters, and the label."""
    if template.kinds not in (("word", "label"), ("letter", "label"), ("value", "label")):
        raise ValueError(
            f"treecrf: the template has the columns {', '.join(template.kinds)}; docs have a "
            'column of words and one of labels: use Template(("word", "label")), or "letter" or '
            '"value" instead of "word"'
        )
    return template


def _bytes_of(path: str) -> bytes:
    try:
        with fsspec.open(path, "rb") as file:
            return bytes(file.read())
    except (OSError, ImportError) as error:
        raise ValueError(f"treecrf: cannot read {path}: {error}; check the path") from error


def _bounds(doc: Doc) -> list[int]:
    """Where the sequences of a doc begin, and where the last one ends; none in an empty doc."""
    return [*starts_of(doc, SENTENCES).tolist(), len(doc)]


def _labels_of(doc: Doc, task: Task | None) -> list[list[Label]]:
    """The labels of each sequence of a doc."""
    labels: list[Label] = [None] * len(doc)
    if task is not None:
        labels = task.gold(Example(doc, doc))
        if task.constraints == "biluo":
            labels = without_cut_spans(labels, _bounds(doc)[:-1], None)
    return [labels[first:last] for first, last in pairwise(_bounds(doc))]
