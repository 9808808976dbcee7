"""Lessons: what a teacher, any spaCy pipeline, says of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_treecrf.columnar.files import read_text_lines
from spacy_treecrf.pipeline.pipe import TreeCRF

BATCH = 256  # docs


def teaching_pipe(nlp: Language, name: str | None) -> TreeCRF | None:
    """The treecrf pipe whose probabilities are taught; None: labels are all that there is."""
    found = {own: pipe for own, pipe in nlp.pipeline if isinstance(pipe, TreeCRF)}
    if name is None and len(found) < 2:
        return next(iter(found.values()), None)
    if name in found:
        return found[name]
    names = ", ".join(found) or "none"
    raise ValueError(f"treecrf: the teacher has these treecrf pipes: {names}; name one by --pipe")


def read_texts(path: Path, nlp: Language, encoding: str = "utf-8") -> Iterator[Doc]:
    """Docs to be labelled: the lines of a text, or the docs of a .spacy file as tokens alone.

    Tokens and boundaries of sentences stay as a .spacy file has them.
    """
    if path.suffix != ".spacy":
        for line in read_text_lines(path, encoding):
            yield nlp.make_doc(line)
        return
    for doc in read_annotated(path, nlp):
        yield _tokens_of(doc)


def read_annotated(path: Path, nlp: Language) -> list[Doc]:
    """The docs of a .spacy file as they are."""
    try:
        return list(DocBin(store_user_data=True).from_disk(path).get_docs(nlp.vocab))
    except OSError as error:
        raise ValueError(f"treecrf: cannot read {path}: {error}; check the path") from error
    except Exception as error:  # msgpack and zlib raise many kinds
        raise ValueError(f"treecrf: {path} does not hold docs of spaCy: {error}") from error


def _tokens_of(doc: Doc) -> Doc:
    words = [token.text for token in doc]
    spaces = [bool(token.whitespace_) for token in doc]
    if not doc.has_annotation("SENT_START"):
        return Doc(doc.vocab, words=words, spaces=spaces)
    starts: list[bool | int | None] = [bool(token.is_sent_start) for token in doc]
    return Doc(doc.vocab, words=words, spaces=spaces, sent_starts=starts)


def lessons(nlp: Language, pipe: TreeCRF | None, docs: Iterable[Doc]) -> Iterator[Doc]:
    """The docs as the teacher labels them, with its probabilities if it has any."""
    batch: list[Doc] = []
    for doc in nlp.pipe(docs, batch_size=BATCH):
        if not len(doc):
            continue
        batch.append(doc)
        if len(batch) == BATCH:
            yield from _taught(pipe, batch)
            batch = []
    yield from _taught(pipe, batch)


def _taught(pipe: TreeCRF | None, docs: list[Doc]) -> list[Doc]:
    if pipe is not None and docs:
        pipe.teach(docs)
    return docs
