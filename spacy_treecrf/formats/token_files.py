"""Formats of tokens as docs: column files, spaCy's IOB lines and JSON, .spacy files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from spacy.attrs import IS_SPACE  # type: ignore[import-not-found]
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training.converters.iob_to_docs import iob_to_docs
from spacy.training.converters.json_to_docs import json_to_docs
from spacy.vocab import Vocab

from spacy_treecrf.columnar.files import ColumnFile, read_column_file
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import malformed, quoted, read_lines
from spacy_treecrf.corpora.writing import conll_lines
from spacy_treecrf.formats.checking import json_file
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans

DOC_START = "-DOCSTART-"
LABEL = "label"


def read_column_docs(path: Path, encoding: str = "utf-8") -> Iterator[Doc]:
    """The docs of a column file: words first, labels of spans last, tags second if there are more.

    Rows of -DOCSTART- begin docs; without any, each sequence is a doc.
    """
    file = read_column_file(path, encoding)
    if file.n_fields < 2:
        raise ValueError(f"treecrf: {path} has one column; expected words and labels of spans")
    labels = {row[-1] for rows in file.sequences for row in rows} - {OUTSIDE}
    if labels and not are_span_labels(labels):
        other = min(label for label in labels if not are_span_labels([label]))
        raise ValueError(
            f"treecrf: {path}: found the label {other!r} in the last column; expected labels of "
            "spans, as O, B-X and I-X"
        )
    vocab = Vocab()
    for sentences in _documents(file):
        yield _column_doc(vocab, sentences, file.n_fields)


def _documents(file: ColumnFile) -> Iterator[list[list[list[str]]]]:
    """The sentences of each doc."""
    starts = [rows[0][0] == DOC_START for rows in file.sequences]
    document: list[list[list[str]]] = []
    for rows, begins in zip(file.sequences, starts, strict=True):
        if document and (begins or not any(starts)):
            yield document
            document = []
        sentence = [row for row in rows if row[0] != DOC_START]
        if sentence:
            document.append(sentence)
    if document:
        yield document


def _column_doc(vocab: Vocab, sentences: list[list[list[str]]], n_fields: int) -> Doc:
    rows = [row for sentence in sentences for row in sentence]
    doc = Doc(
        vocab,
        words=[row[0] for row in rows],
        tags=[row[1] for row in rows] if n_fields > 2 else None,
        sent_starts=[i == 0 for sentence in sentences for i in range(len(sentence))],
    )
    spans = []
    first = 0
    for sentence in sentences:
        for start, end, name in conll_spans([row[-1] for row in sentence]):
            spans.append(Span(doc, first + start, first + end, label=name or LABEL))
        first += len(sentence)
    doc.set_ents(spans, default="outside")
    return doc


def write_column_docs(docs: Iterable[Doc]) -> Iterator[bytes]:
    """A token in each line with its label in BIO; tokens of blanks are left out.

    Docs begin with a row of -DOCSTART- if any of them has several sentences.
    """
    documents = [list(sentence_rows(doc)) for doc in docs]
    marked = any(len(sentences) > 1 for sentences in documents)
    for sentences in documents:
        for rows in [[(DOC_START, OUTSIDE)], *sentences] if marked else sentences:
            words, labels = zip(*rows, strict=True)
            _refuse_blanks(labels)
            sequence = LabelledSequence(list(words), {LABEL: list(labels)})
            yield from conll_lines([sequence], LABEL, [])


def _refuse_blanks(labels: Iterable[str]) -> None:
    for label in labels:
        if len(label.split()) > 1 or label != label.strip():
            raise ValueError(
                f"treecrf: the label {label!r} has a blank, which separates columns; rename it"
            )


def sentence_rows(doc: Doc) -> Iterator[list[tuple[str, str]]]:
    """Words and BIO labels of each written sentence."""
    labels = bio_labels(doc)
    for tokens in written_sentences(doc):
        yield [(token.text, labels[token.i]) for token in tokens]


def written_sentences(doc: Doc) -> Iterator[list[Token]]:
    """The tokens of each sentence, or of the doc where sentences are not known; none of blanks.

    A boundary within an entity is none: of an entity in two sentences a reader makes two.
    """
    starts = doc.has_annotation("SENT_START")
    number = 0
    numbered = []
    for token in doc:
        number += bool(starts and token.is_sent_start and token.ent_iob_ != "I")
        if not token.is_space:
            numbered.append((number, token))
    for _, tokens in groupby(numbered, key=lambda row: row[0]):
        yield [token for _, token in tokens]


def n_boundaries_within_entities(doc: Doc) -> int:
    """How many sentences of a doc begin in the middle of an entity."""
    return sum(bool(token.is_sent_start and token.ent_iob_ == "I") for token in doc)


def bio_labels(doc: Doc) -> list[str]:
    """The BIO label of each token; entities begin behind their tokens of blanks."""
    labels = [f"I-{token.ent_type_}" if token.ent_type_ else OUTSIDE for token in doc]
    for entity in written_entities(doc):
        first = next(token for token in entity if not token.is_space)
        labels[first.i] = labels[first.i].replace("I-", "B-", 1)
    return labels


def written_entities(doc: Doc) -> list[Span]:
    """The entities that stand in a file without tokens of blanks."""
    return [ent for ent in doc.ents if not all(token.is_space for token in ent)]


def read_iob_docs(path: Path) -> Iterator[Doc]:
    """The docs of a file with a sentence in each line: word|label or word|tag|label."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        sizes = {len(token.split("|")) for token in line.split()}
        if len(sizes) > 1 or not sizes <= {2, 3}:
            raise malformed(path, number, quoted(line), "word|label or word|tag|label, all alike")
        labels = {token.rpartition("|")[2] for token in line.split()} - {OUTSIDE}
        if labels and not (are_span_labels(labels) and all("-" in label for label in labels)):
            raise malformed(path, number, quoted(line), "labels as O, B-X and I-X")
        yield from iob_to_docs(line, n_sents=1, no_print=True)  # type: ignore[no-untyped-call]


def write_iob_docs(docs: Iterable[Doc]) -> Iterator[bytes]:
    """A sentence in each line; a word that holds "|" or a blank has no form there."""
    for doc in docs:
        for rows in sentence_rows(doc):
            for word, label in rows:
                if "|" in word + label or len((word + label).split()) > 1:
                    raise ValueError(
                        f"treecrf: {word!r} with {label!r} has no form in IOB lines, where '|' and "
                        "blanks separate; use conll"
                    )
            yield (" ".join(f"{word}|{label}" for word, label in rows) + "\n").encode()


def read_json_docs(path: Path) -> Iterator[Doc]:
    """The docs of a file in the JSON of spaCy 2."""
    value = json_file(path)
    documents = value.elements() if isinstance(value.value, list) else [value]
    for document in documents:
        document.table().part("paragraphs")
        try:
            data = json.dumps([document.value]).encode()
            yield from json_to_docs(data)  # type: ignore[no-untyped-call]
        except Exception as error:  # spaCy raises many kinds
            reason = f"{type(error).__name__}: {error}"
            raise document.wrong("a document of spaCy 2", reason) from error


def read_spacy_docs(path: Path) -> Iterator[Doc]:
    """The docs of a .spacy file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _no_spacy_file(path, error) from error
    yield from parse_spacy_docs(data, path)


def parse_spacy_docs(data: bytes, name: str | Path) -> Iterator[Doc]:
    """The docs of a .spacy file that was read as these bytes; errors call it by the name."""
    vocab = Vocab(lex_attr_getters={IS_SPACE: str.isspace})  # which writers ask for
    try:
        yield from DocBin().from_bytes(data).get_docs(vocab)
    except MemoryError:
        raise
    except Exception as error:  # spaCy, srsly and zlib raise many kinds
        raise _no_spacy_file(name, error) from error


def _no_spacy_file(name: str | Path, error: Exception) -> ValueError:
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ValueError(f"treecrf: cannot read {name} as a .spacy file ({reason})")


def write_spacy_docs(docs: Iterable[Doc]) -> Iterator[bytes]:
    """The bytes of a .spacy file; user data, which holds extensions, stay with their docs."""
    yield DocBin(docs=docs, store_user_data=True).to_bytes()
