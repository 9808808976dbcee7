"""Docs of spaCy that are audited: how they are read, and written with corrections.

Features and settings are those of a treecrf pipe, of a config or of one that ships with the
package; what other pipes say is not asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_treecrf.audit.auditing import LabelledData, annotation_of
from spacy_treecrf.audit.entries import Correction, Layer, Place, refused
from spacy_treecrf.configs.ready_configs import ready_config, with_value
from spacy_treecrf.corpora.readers import corpus as corpus_reader
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.formats.token_files import read_spacy_docs, write_spacy_docs
from spacy_treecrf.labels.biluo import Label, TokenSpan, without_cut_spans
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.pipeline.sequencing import cut, starts_of
from spacy_treecrf.pipeline.tasks import (
    AttributeTask,
    EntsTask,
    ExtTask,
    SpansTask,
    Task,
    make_task,
    place_of,
)

READY = {"ents": "ner", "spans": "chunk", "tag": "tagger", "pos": "pos"}
INPUTS = ["SENT_START"]


@dataclass(frozen=True)
class DocCorpus:
    """A .spacy file, and the pipe whose features and task are used; config: Where it is from."""

    path: Path
    nlp: Language
    pipe: TreeCRF
    examples: list[Example]
    config: Path | None = None

    @classmethod
    def read(cls, path: Path, task: str, config: Path | None, lang: str | None) -> DocCorpus:
        """task: A short name of a task. config: A config with a treecrf pipe, which tells more."""
        nlp, pipe = _from_config(config) if config else _ready(task, lang)
        inputs = nlp.config.get("corpora", {}).get("train", {}).get("inputs", INPUTS)
        next(iter(read_spacy_docs(path)), None)  # so that a damaged file is refused with its name
        examples = list(corpus_reader(path, inputs)(nlp))
        if not any(len(example.predicted) for example in examples):
            raise ValueError(f"treecrf: {path} has no tokens to judge")
        return cls(path, nlp, pipe, examples, config)

    @property
    def layer(self) -> Layer:
        config = None if self.config is None else str(self.config)
        return Layer(task=_name_of(self.pipe.task), config=config)

    @property
    def settings(self) -> Settings:
        settings = self.pipe.shim.recipe.settings
        if not isinstance(settings, Settings):
            raise ValueError(
                "treecrf: an audit takes probabilities from a boosted CRF, and the config has "
                "another model; use spacy_treecrf.BoostedCRF.v1"
            )
        return settings

    def labelled(self, settings: Settings) -> LabelledData:
        docs = [example.predicted for example in self.examples]
        mode = self.pipe.sequence
        gold: list[list[Label]] = [self.pipe.task.gold(example) for example in self.examples]
        if self.pipe.task.constraints == "biluo":
            gold = [
                without_cut_spans(own, starts_of(doc, mode).tolist(), None)
                for own, doc in zip(gold, docs, strict=True)
            ]
        offsets = cut(docs, mode)
        flat = [label for own in gold for label in own]
        words = [token.text for doc in docs for token in doc]
        bounds = list(pairwise(offsets.tolist()))
        annotation, rows = annotation_of(
            [flat[a:b] for a, b in bounds],
            f"{self.path} for the task {_name_of(self.pipe.task)!r}, which reads "
            f"{place_of(self.pipe.task)}",
        )
        features = self.pipe.features
        features.check(self.nlp.vocab)
        _refuse_learned(features)
        columns = features.fit(
            docs,
            offsets,
            min_count=settings.min_count,
            max_bins=settings.max_bins,
            missing=settings.missing,
        )
        feature_ids, numeric = features.encode(docs, offsets, columns, training=True)
        ids: dict[Label, int] = {label: i for i, label in enumerate(annotation.labels)}
        labels = np.array([ids.get(y, UNKNOWN_LABEL) for own in rows for y in own], np.int32)
        data = Sequences(offsets, feature_ids, numeric, labels, np.ones(len(labels), np.float32))
        groups = np.searchsorted(self._ends, offsets[:-1], side="right")
        return LabelledData(data, columns, annotation, groups, [words[a:b] for a, b in bounds])

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each sequence, which is a doc or a sentence."""
        every = [token.text for example in self.examples for token in example.predicted]
        return [every[a:b] for a, b in pairwise(self._offsets)]

    @cached_property
    def _offsets(self) -> list[int]:
        """Where sequences begin among all tokens, and where the last one ends."""
        offsets = cut([example.predicted for example in self.examples], self.pipe.sequence)
        found: list[int] = offsets.tolist()
        return found

    @cached_property
    def _ends(self) -> list[int]:
        """The number of tokens up to the end of each doc."""
        return list(accumulate(len(example.predicted) for example in self.examples))

    def place(self, sequence: int, position: int) -> Place:
        first = self._offsets[sequence]
        unit = bisect_right(self._ends, first)
        begin = self._ends[unit - 1] if unit else 0
        return Place(unit, first - begin, f"doc {unit + 1}, token {first - begin + position + 1}")

    def corrected(self, corrections: Sequence[Correction]) -> bytes:
        """The docs as a .spacy file; all other annotation stays."""
        docs = list(read_spacy_docs(self.path))
        edit = _editor(self.pipe)
        for one in corrections:
            if one.unit >= len(docs):
                raise refused(one, f"{len(docs)} docs")
            doc = docs[one.unit]
            words = tuple(token.text for token in doc[one.start : one.end])
            if words != one.words:
                raise refused(one, " ".join(words) or "nothing")
            edit(doc, one)
        return b"".join(write_spacy_docs(docs))


def _ready(task: str, lang: str | None) -> tuple[Language, TreeCRF]:
    make_task(task)  # refuses unknown names
    kind = task.partition(":")[0]
    if kind not in READY:
        raise ValueError(
            f"treecrf: the task {task!r} has no features of its own; name a config by --config"
        )
    text = ready_config(READY[kind])
    if lang is not None:  # without its tokenizer: docs keep their tokens
        text = with_value(text, "nlp", "lang", f'"{lang}"')
    text = with_value(text, "components.treecrf", "task", f'"{task}"')
    return _pipe_of(Config().from_str(text, interpolate=False), "the ready config")


def _from_config(path: Path) -> tuple[Language, TreeCRF]:
    try:
        config = Config().from_disk(path, interpolate=False)
    except OSError as error:
        raise ValueError(f"treecrf: cannot read {path}: {error.strerror}; check it") from error
    except ValueError as error:  # of confection
        message = " ".join(str(error).split())
        raise ValueError(f"treecrf: {path} is no config of spaCy: {message}") from error
    return _pipe_of(config, str(path))


def _pipe_of(config: Config, name: str) -> tuple[Language, TreeCRF]:
    nlp = load_model_from_config(config, auto_fill=True, validate=False)
    found = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, TreeCRF)]
    if len(found) != 1:
        raise ValueError(f"treecrf: {name} has {len(found)} treecrf pipes; an audit needs one")
    return nlp, found[0]


def _refuse_learned(features: Any) -> None:
    learning = [one for one in features.sources if getattr(one, "from_entities", False)]
    if learning:
        raise ValueError(
            "treecrf: gazetteer_from_entities learns from the annotation that is to be judged; "
            "set it to false in the config of an audit"
        )


def _name_of(task: Task) -> str:
    """The short name of a task; of one that has none, its own text."""
    if isinstance(task, EntsTask):
        return "ents"
    if isinstance(task, SpansTask):
        return f"spans:{task.key}"
    if isinstance(task, AttributeTask):
        return task.attr.lower()
    return f"ext:{task.attr}" if isinstance(task, ExtTask) else str(task)


def _editor(pipe: TreeCRF) -> Callable[[Doc, Correction], None]:
    """How an accepted suggestion is written to a doc."""
    task = pipe.task
    if isinstance(task, EntsTask):
        return _edit_entities
    if isinstance(task, SpansTask):
        return lambda doc, one: _edit_spans(doc, one, task.key)
    if isinstance(task, AttributeTask):
        name = f"{task.attr.lower()}_"
        return lambda doc, one: _edit_tokens(
            doc, one, lambda t: getattr(t, name), lambda t, label: setattr(t, name, label)
        )
    if isinstance(task, ExtTask):
        attr = task.attr
        return lambda doc, one: _edit_tokens(
            doc, one, lambda t: str(t._.get(attr)), lambda t, label: t._.set(attr, label)
        )
    raise ValueError(f"treecrf: corrections of the task {task} cannot be written to docs")


def _edit_entities(doc: Doc, one: Correction) -> None:
    here = [e for e in doc.ents if e.start < one.end and one.start < e.end]
    if _as_tuples(here) != list(one.annotated):
        raise refused(one, "another annotation")
    made = [Span(doc, a, b, label=name) for a, b, name in one.suggested]
    covered = {t for span in made for t in range(span.start, span.end)}
    outside = [doc[t : t + 1] for t in range(one.start, one.end) if t not in covered]
    doc.set_ents(made, outside=outside, default="unmodified")


def _edit_spans(doc: Doc, one: Correction, key: str) -> None:
    group = doc.spans.get(key)
    spans = [] if group is None else list(group)
    wanted = [span for span in spans if (span.start, span.end, span.label_) in one.annotated]
    if _as_tuples(wanted) != list(one.annotated):
        raise refused(one, "another annotation")
    kept = [span for span in spans if span not in wanted]
    if set(one.suggested).intersection(_as_tuples(kept)):
        raise refused(one, "the suggested annotation")
    kept += [Span(doc, a, b, label=name) for a, b, name in one.suggested]
    doc.spans[key] = sorted(kept, key=lambda span: (span.start, span.end))


def _edit_tokens(
    doc: Doc,
    one: Correction,
    value_of: Callable[[Any], str],
    set_value: Callable[[Any, str], None],
) -> None:
    for start, _, label in one.annotated:
        if value_of(doc[start]) != label:
            raise refused(one, value_of(doc[start]))
    for start, _, label in one.suggested:
        set_value(doc[start], label)


def _as_tuples(spans: Sequence[Span]) -> list[TokenSpan]:
    return [(span.start, span.end, span.label_) for span in spans]
