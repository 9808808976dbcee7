"""Column files that are audited: how they are read, and written with corrections.

A corrected file is the file as it was but for the labels of some lines: columns, separators,
line ends and the scheme of labels stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spacy_treecrf.audit.auditing import UNTYPED, LabelledData, annotation_of, groups_of
from spacy_treecrf.audit.entries import Correction, Layer, Place, refused
from spacy_treecrf.columnar.files import ColumnFile, Row, read_column_file
from spacy_treecrf.columnar.model import features_of
from spacy_treecrf.columnar.template import Template, make_template
from spacy_treecrf.columnar.word_features import WordFeatures
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans, scheme_of, spelled

DOCUMENT_START = "-DOCSTART-"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|$)")
_CELL = re.compile(r"[^ ]+")


@dataclass(frozen=True)
class ColumnCorpus:
    """A column file and the meaning of its columns.

    file: Its sequences; a row of -DOCSTART- is one of its own, also without empty lines around it.
    units: The numbers of the sequences that are judged: rows of -DOCSTART- are not.
    """

    path: Path
    encoding: str
    file: ColumnFile
    template: Template
    units: list[int]

    @classmethod
    def read(cls, path: Path, encoding: str, **columns: Any) -> ColumnCorpus:
        """columns: What `make_template` takes."""
        file = _with_marks_apart(read_column_file(path, encoding))
        template = make_template(file, **columns)
        units = [s for s, rows in enumerate(file.sequences) if rows[0][0] != DOCUMENT_START]
        if not units:
            raise ValueError(f"treecrf: {file.name} has no tokens to judge")
        return cls(path, encoding, file, template, units)

    @property
    def layer(self) -> Layer:
        template = self.template
        return Layer(label_column=template.label_field + 1, unlabelled=template.unlabelled)

    def labels(self) -> list[list[Label]]:
        """The labels of all sequences of the file."""
        _, labels = self.template.split(self.file, need_labels=True)
        assert labels is not None
        return labels

    @cached_property
    def words(self) -> list[list[str]]:
        """What stands in the column of words, or of letters, of the sequences that are judged."""
        at = self.template.text_field
        return [[row[at] for row in self.file.sequences[s]] for s in self.units]

    def labelled(self, settings: Settings, word_features: WordFeatures | None) -> LabelledData:
        """The encoded data; documents end at rows of -DOCSTART-, if there are any."""
        every = self.labels()
        rows, _ = self.template.split(self.file, need_labels=True)
        chosen = [rows[s] for s in self.units]
        annotation, names = annotation_of(
            [every[s] for s in self.units],
            f"column {self.template.label_field + 1} of {self.file.name}",
        )
        X = list(
            features_of(
                self.template,
                word_features,
                chosen,
                lambda s, t: self.file.place(self.units[s], t),
            )
        )
        columns, offsets, feature_ids, numeric = fit_columns(
            X, min_count=settings.min_count, max_bins=settings.max_bins, missing=settings.missing
        )
        ids: dict[Label, int] = {label: i for i, label in enumerate(annotation.labels)}
        flat = np.array([ids.get(y, UNKNOWN_LABEL) for own in names for y in own], np.int32)
        weights = np.ones(len(flat), np.float32)
        data = Sequences(offsets, feature_ids, numeric, flat, weights)
        words = self.words
        compared = words if "word" in self.template.kinds else None
        return LabelledData(data, columns, annotation, self._documents(words), compared)

    def _documents(self, words: Sequence[Sequence[str]]) -> Any:
        starts = np.array([rows[0][0] == DOCUMENT_START for rows in self.file.sequences])
        if starts.any():
            return np.cumsum(starts)[self.units]
        # Equal sequences would judge each other.
        return groups_of([tuple(own) for own in words], len(words))

    def place(self, sequence: int, position: int) -> Place:
        unit = self.units[sequence]
        return Place(unit, 0, self.file.place(unit, position))

    def corrected(self, corrections: Sequence[Correction]) -> bytes:
        """The file with other labels."""
        every = self.labels()
        judged = [every[s] for s in self.units]
        has_spans = are_span_labels({label for own in judged for label in own})
        spelling = _Spelling.of(judged)
        by_unit: dict[int, list[Correction]] = {}
        for one in corrections:
            by_unit.setdefault(one.unit, []).append(one)
        changed: dict[int, str] = {}  # by number of the line, from 1
        for unit, own in by_unit.items():
            if unit >= len(every):
                raise refused(own[0], f"sequence {unit} of {len(every)}")
            self._check_words(unit, own)
            self._check_labels(own)
            labels = every[unit]
            edited = _respelled(labels, own, spelling) if has_spans else _relabelled(labels, own)
            for t, (old, new) in enumerate(zip(labels, edited, strict=True)):
                if new is not None and new != old:
                    changed[self.file.lines[unit] + t] = new
        return self._with_labels(changed).encode(self.encoding)

    def _check_words(self, unit: int, corrections: Sequence[Correction]) -> None:
        words = dict(zip(self.units, self.words, strict=True)).get(unit, [])
        for one in corrections:
            if tuple(words[one.start : one.end]) != one.words:
                raise refused(one, " ".join(words[one.start : one.end]) or "nothing")

    def _check_labels(self, corrections: Sequence[Correction]) -> None:
        for one in corrections:
            for _, _, name in one.suggested:
                if " " in name and not self._tabs:
                    raise ValueError(
                        f"treecrf: {one.where} suggests the label {name!r}, and blanks separate "
                        f"the columns of {self.file.name}; write a label without blanks"
                    )

    @cached_property
    def _lines(self) -> list[tuple[str, str]]:
        """The lines of the file as they are, and what ends each of them."""
        return _LINE.findall(self.path.read_bytes().decode(self.encoding))

    @property
    def _tabs(self) -> bool:
        """Whether tabs separate columns, as `read_column_file` decides it."""
        return "\t" in next(line for line, _ in self._lines if line.strip(" \t\ufeff"))

    def _with_labels(self, changed: dict[int, str]) -> str:
        tabs = self._tabs
        at = self.template.label_field
        written = []
        for number, (line, end) in enumerate(self._lines, start=1):
            if number in changed:
                line = _with_field(line, at, changed[number], tabs)
            written.append(line + end)
        return "".join(written)


def _with_marks_apart(file: ColumnFile) -> ColumnFile:
    """The file, where every row of -DOCSTART- is a sequence of its own."""
    sequences: list[list[Row]] = []
    lines: list[int] = []
    for line, rows in zip(file.lines, file.sequences, strict=True):
        before = DOCUMENT_START
        for t, row in enumerate(rows):
            if DOCUMENT_START in (before, row[0]):
                sequences.append([])
                lines.append(line + t)
            sequences[-1].append(row)
            before = row[0]
    return ColumnFile(file.name, sequences, lines)


def _with_field(line: str, at: int, value: str, tabs: bool) -> str:
    if tabs:
        cells = line.split("\t")
        cells[at] = value
        return "\t".join(cells)
    cell = list(_CELL.finditer(line))[at]
    return line[: cell.start()] + value + line[cell.end() :]


def _respelled(
    labels: Sequence[Label], corrections: Sequence[Correction], spelling: _Spelling
) -> list[Label]:
    """The labels with corrected spans, in their scheme; None stays."""
    spans = conll_spans(labels)
    edited = list(spans)
    for one in corrections:
        known, wanted = spelling.named(one.annotated), spelling.named(one.suggested)
        if [span for span in spans if span[0] < one.end and one.start < span[1]] != known:
            raise refused(one, "another annotation")
        edited = [span for span in edited if span not in known] + wanted
    before = spelled(spans, len(labels), spelling.scheme)
    after = spelled(edited, len(labels), spelling.scheme)
    kept = [
        label if label is None or old == new else new
        for label, old, new in zip(labels, before, after, strict=True)
    ]
    if conll_spans(kept) == sorted(edited):
        return kept
    # A label that is not of the scheme, as I-X after another type, would now join two spans.
    return [None if label is None else new for label, new in zip(labels, after, strict=True)]


@dataclass(frozen=True)
class _Spelling:
    """How the labels of a file spell spans. untyped: Whether they are letters alone."""

    scheme: str
    untyped: bool

    @classmethod
    def of(cls, labels: Sequence[Sequence[Label]]) -> _Spelling:
        typed = any("-" in label for own in labels for label in own if label is not None)
        return cls(scheme_of(labels), not typed)

    def named(self, spans: Sequence[TokenSpan]) -> list[TokenSpan]:
        """The spans as they are in the file, where a span may have no type."""
        return [(a, b, "" if self.untyped and name == UNTYPED else name) for a, b, name in spans]


def _relabelled(labels: Sequence[Label], corrections: Sequence[Correction]) -> list[Label]:
    edited = list(labels)
    for one in corrections:
        here = [(t, t + 1, labels[t]) for t in range(one.start, one.end)]
        if here != list(one.annotated):
            raise refused(one, "another annotation")
        for start, _, label in one.suggested:
            edited[start] = label
    return edited
