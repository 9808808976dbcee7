"""CoNLL-U: read by spaCy's converter after each line is checked, entities in the last column.

The converter knows only labels in capitals; so entities are read here, from `name=B-X` or `NE=B-X`
of the column MISC, whatever their labels are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.tokens import Doc, Span, Token
from spacy.training.converters.conllu_to_docs import conllu_to_docs

from spacy_treecrf.corpora.reading import malformed, quoted, read_lines
from spacy_treecrf.formats.token_files import bio_labels, written_sentences
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import conll_spans

N_COLUMNS = 10
NEW_DOC = "# newdoc"
NO_SPACE = "SpaceAfter=No"
_ENTITY = re.compile(r"(?:(?:name|NE)=)?([BILUES])-([^|\s]+)")
_EMPTY = "_"

Row = list[str]


def read_conllu(path: Path) -> Iterator[Doc]:
    """The docs of a file: `# newdoc` begins one; without any, each sentence is a doc."""
    sentences = list(_sentences(path))
    grouped = any(begins for begins, _ in sentences)
    pending: list[list[Row]] = []
    for begins, rows in sentences:
        if pending and (begins or not grouped):
            yield _doc(path, pending)
            pending = []
        pending.append(rows)
    if pending:
        yield _doc(path, pending)


def _sentences(path: Path) -> Iterator[tuple[bool, list[Row]]]:
    """The rows of each sentence, and whether it begins a doc."""
    rows: list[Row] = []
    begins = False
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if line.startswith("#"):
            begins = begins or line.split("=")[0].startswith(NEW_DOC)
        elif line.strip():
            rows.append(_row(path, number, line, rows))
        elif rows:
            yield begins, rows
            rows, begins = [], False


def _row(path: Path, number: int, line: str, before: list[Row]) -> Row:
    row = line.split("\t")
    if len(row) != N_COLUMNS:
        found = f"{len(row)} columns in {quoted(line)}"
        raise malformed(path, number, found, f"{N_COLUMNS} columns separated by tabs")
    if not all(cell.strip() for cell in row):
        raise malformed(path, number, f"an empty column in {quoted(line)}", f"{_EMPTY!r} there")
    place = row[0]
    words = sum(part[0].isdigit() for part in before)
    if not re.fullmatch(r"[0-9]{1,6}([-.][0-9]{1,6})?", place):
        raise malformed(path, number, quoted(place), "the number of a word, as 3, 3-4 or 3.1")
    if place.isdigit() and int(place) != words + 1:
        raise malformed(path, number, f"word {place}", f"word {words + 1}")
    if row[6] != _EMPTY and not re.fullmatch("[0-9]{1,6}", row[6]):
        raise malformed(path, number, quoted(row[6]), "the number of the head, or _")
    return row


def _doc(path: Path, sentences: list[list[Row]]) -> Doc:
    text = "\n\n".join("\n".join("\t".join(row) for row in rows) for rows in sentences)
    try:
        found = conllu_to_docs(text, len(sentences), no_print=True)  # type: ignore[no-untyped-call]
        doc: Doc = next(found)
    except Exception as error:  # spaCy raises many kinds
        reason = " ".join(str(error).split())
        first = quoted(" ".join(row[1] for row in sentences[0]))
        raise ValueError(f"treecrf: {path}: the document {first}: {reason}") from error
    entities = []
    begin = 0
    for rows in sentences:
        labels = [_label(row[9]) for row in rows if row[0].isdigit()]
        for start, end, name in conll_spans(labels):
            entities.append(Span(doc, begin + start, begin + end, label=name))
        begin += len(labels)
    doc.set_ents(entities, default="outside")
    if not all(any(row[0].isdigit() and row[6] != _EMPTY for row in rows) for rows in sentences):
        _forget_heads(doc, sentences)
    return doc


def _forget_heads(doc: Doc, sentences: list[list[Row]]) -> None:
    """Give a doc the sentences of its file where some have no heads: each word of these was one.

    A doc cannot have boundaries beside heads, so those of its other sentences are dropped.
    """
    for token in doc:
        token.dep_ = ""
    starts = (row[0] == "1" for rows in sentences for row in rows if row[0].isdigit())
    for token, is_start in zip(doc, starts, strict=True):
        token.is_sent_start = is_start


def _label(misc: str) -> str:
    for part in misc.split("|"):
        if found := _ENTITY.fullmatch(part):
            return f"{found[1]}-{found[2]}"
    return OUTSIDE


def write_conllu(docs: Iterable[Doc]) -> Iterator[bytes]:
    """Ten columns for each token, entities as `name=B-X` in the last; no tokens of blanks."""
    for doc in docs:
        yield f"{NEW_DOC}\n".encode()
        labels = bio_labels(doc)
        for tokens in written_sentences(doc):
            places = {token.i: number for number, token in enumerate(tokens, start=1)}
            for token in tokens:
                yield ("\t".join(_written(token, labels[token.i], places)) + "\n").encode()
            yield b"\n"


def _written(token: Token, label: str, places: dict[int, int]) -> Row:
    head = _EMPTY
    if token.has_dep():
        head = "0" if token.head.i == token.i else str(places.get(token.head.i, _EMPTY))
    misc = []
    if label != OUTSIDE:
        if re.search(r"[|\s]", label):
            raise ValueError(
                f"treecrf: the label {token.ent_type_!r} has a blank or '|', which separates in "
                "CoNLL-U; rename it"
            )
        misc.append(f"name={label}")
    if not token.whitespace_:
        misc.append(NO_SPACE)
    dep = "root" if token.dep_ == "ROOT" else token.dep_
    cells = [token.text, token.lemma_, token.pos_, token.tag_, str(token.morph), head, dep]
    row = [str(places[token.i]), *cells, _EMPTY, "|".join(misc)]
    return [re.sub(r"[\t\r\n]", " ", cell) if cell.strip() else _EMPTY for cell in row]
