"""Labelled sequences as spaCy docs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.registry import Corpus
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.labels.iob import are_biluo_labels

BLANK_LINE = "\n"  # spaCy has no empty tokens


def tasks_of(corpus: Corpus, sequences: Iterable[LabelledSequence]) -> dict[str, str]:
    """The task of each layer: that of the corpus, or "ents" where labels are spans, else "tag"."""
    if corpus.tasks:
        return corpus.tasks
    labels: dict[str, set[str]] = {}
    for sequence in sequences:
        for layer, values in sequence.labels.items():
            labels.setdefault(layer, set()).update(values)
    return {layer: "ents" if are_biluo_labels(found) else "tag" for layer, found in labels.items()}


def to_docs(
    sequences: Iterable[LabelledSequence],
    corpus: Corpus,
    vocab: Vocab,
    tasks: Mapping[str, str] | None = None,
) -> Iterator[Doc]:
    """A doc for each document where a corpus has documents, else for each sequence.

    Labels are where the tasks look for them; features are in token._.<name>. Letters are tokens as
    CharacterTokenizer makes them. The blanks between words are not known: there is one after each.
    """
    sequences = list(sequences)
    tasks = tasks_of(corpus, sequences) if tasks is None else tasks
    numbered = enumerate(sequences)
    for _, group in itertools.groupby(
        numbered, lambda pair: -1 - pair[0] if pair[1].document is None else pair[1].document
    ):
        yield _doc([sequence for _, sequence in group], corpus.unit, vocab, tasks)


def _doc(
    sequences: list[LabelledSequence], unit: str, vocab: Vocab, tasks: Mapping[str, str]
) -> Doc:
    words = [word or BLANK_LINE for sequence in sequences for word in sequence.words]
    spaces = [False] * len(words) if unit == "letter" else None
    starts = [i == 0 for sequence in sequences for i in range(len(sequence.words))]
    sentences: Any = starts if unit == "word" else None
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=sentences)
    for layer in sequences[0].labels:
        labels = [label for sequence in sequences for label in sequence.labels[layer]]
        _annotate(doc, tasks[layer], labels)
    for name in sequences[0].features:
        values = [value for sequence in sequences for value in sequence.features[name]]
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
    return [Span(doc, start, end, label=name) for start, end, name in biluo_spans(labels)]


def register_extension(name: str) -> None:
    """Register token._.<name>, if no one has done it yet."""
    if not Token.has_extension(name):
        Token.set_extension(name, default=None)


def _set_extension(doc: Doc, name: str, values: list[Any]) -> None:
    register_extension(name)
    for token, value in zip(doc, values, strict=True):
        token._.set(name, value)
