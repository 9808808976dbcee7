"""Records as spaCy docs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_treecrf.corpora.iob import are_spans
from spacy_treecrf.corpora.record import Record
from spacy_treecrf.corpora.registry import Corpus
from spacy_treecrf.pipeline.tasks.biluo import spans_of

BLANK_LINE = "\n"  # spaCy has no empty tokens


def tasks_of(corpus: Corpus, records: Iterable[Record]) -> dict[str, str]:
    """The task of each layer: the corpus's, or "ents" where labels are spans, else "tag"."""
    if corpus.tasks:
        return corpus.tasks
    labels: dict[str, set[str]] = {}
    for record in records:
        for layer, values in record.labels.items():
            labels.setdefault(layer, set()).update(values)
    return {layer: "ents" if are_spans(found) else "tag" for layer, found in labels.items()}


def to_docs(
    records: Iterable[Record],
    corpus: Corpus,
    vocab: Vocab,
    tasks: Mapping[str, str] | None = None,
) -> Iterator[Doc]:
    """A doc for each document where there are documents, else for each record.

    Labels are where the tasks look for them; features are in token._.<name>. Letters are tokens as
    CharacterTokenizer makes them. Of words, which blanks were between is not known.
    """
    records = list(records)
    tasks = tasks_of(corpus, records) if tasks is None else tasks
    numbered = enumerate(records)
    for _, group in itertools.groupby(
        numbered, lambda pair: -1 - pair[0] if pair[1].document is None else pair[1].document
    ):
        yield _doc([record for _, record in group], corpus.unit, vocab, tasks)


def _doc(records: list[Record], unit: str, vocab: Vocab, tasks: Mapping[str, str]) -> Doc:
    words = [word or BLANK_LINE for record in records for word in record.words]
    spaces = [False] * len(words) if unit == "letter" else None
    starts = [i == 0 for record in records for i in range(len(record.words))]
    sentences: Any = starts if unit == "word" else None
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=sentences)
    for layer in records[0].labels:
        labels = [label for record in records for label in record.labels[layer]]
        _annotate(doc, tasks[layer], labels)
    for name in records[0].features:
        values = [value for record in records for value in record.features[name]]
        _set_extension(doc, name, values)
    return doc


def _annotate(doc: Doc, task: str, labels: list[str]) -> None:
    kind, _, argument = task.partition(":")
    if kind == "tag":
        for token, label in zip(doc, labels, strict=True):
            token.tag_ = label
    elif kind == "ents":
        doc.set_ents(_spans(doc, labels), default="outside")
    elif kind == "spans":
        doc.spans[argument] = _spans(doc, labels)
    else:
        _set_extension(doc, argument, labels)


def _spans(doc: Doc, labels: list[str]) -> list[Span]:
    return [Span(doc, start, end, label=name) for start, end, name in spans_of(labels)]


def register_extension(name: str) -> None:
    """Make token._.<name> known, if no one has done it yet."""
    if not Token.has_extension(name):
        Token.set_extension(name, default=None)


def _set_extension(doc: Doc, name: str, values: list[Any]) -> None:
    register_extension(name)
    for token, value in zip(doc, values, strict=True):
        token._.set(name, value)
