"""Lessons: what a teacher, any spaCy pipeline, says of texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_treecrf.columnar.files import read_text_lines
from spacy_treecrf.labels.doc_keys import LATTICE
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


def lessons(
    nlp: Language, pipe: TreeCRF | None, docs: Iterable[Doc], extensions: Collection[str] = ()
) -> Iterator[Doc]:
    """The docs as the teacher labels them, with its probabilities if it has any.

    extensions: Those whose values stay on the docs. Whatever else a teacher leaves there, beside
    annotation, may be large, or nothing that a file can hold.
    """
    batch: list[Doc] = []
    for doc in nlp.pipe(docs, batch_size=BATCH):
        if not len(doc):
            continue
        batch.append(doc)
        if len(batch) == BATCH:
            yield from _taught(pipe, batch, extensions)
            batch = []
    yield from _taught(pipe, batch, extensions)


def _taught(pipe: TreeCRF | None, docs: list[Doc], extensions: Collection[str]) -> list[Doc]:
    if pipe is not None and docs:
        pipe.teach(docs)
    for doc in docs:
        stored: dict[Any, Any] = doc.user_data
        doc.user_data = {key: stored[key] for key in stored if _is_kept(key, extensions)}
        doc.tensor = np.zeros((0,), np.float32)
    return docs


def _is_kept(key: Any, extensions: Collection[str]) -> bool:
    """Whether an item of the user data is the lattice or a value of one of the extensions."""
    if isinstance(key, tuple):
        return len(key) > 1 and key[0] == "._." and key[1] in extensions
    return bool(key == LATTICE)
