"""What a worker keeps of a training on docs: examples until they are encoded, then rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import (
    dot_to_object,
    import_file,
    load_config_from_str,
    load_model_from_config,
    registry,
)

from spacy_treecrf.dask.parts import naming
from spacy_treecrf.dask.worker_state import Bools, Span, StateLost, WorkerState
from spacy_treecrf.distribute.plan import DocPart, Site
from spacy_treecrf.engine.chain.constraints import observed_transitions
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences, join_sequences
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.tallying import NumberTally, PartReading, PartTally
from spacy_treecrf.labels.biluo import Label, biluo_spans
from spacy_treecrf.pipeline.gold.soft_gold import is_weighted
from spacy_treecrf.pipeline.label_names import names_of
from spacy_treecrf.pipeline.learning import Learner
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.pipeline.sequencing import cut

Int64s = npt.NDArray[np.int64]


class DocSummary(NamedTuple):
    """What the driver learns of a part that was read."""

    lengths: Int64s  # tokens of each doc
    labels: list[str]  # as users name them
    word: str | None  # some word of it


class EncodedPart(NamedTuple):
    """What the driver learns of a part that was encoded."""

    n_sequences: Int64s  # of each doc, without those that nobody has annotated
    lengths: Int64s  # of these sequences


@dataclass
class _Pipeline:
    """The pipeline on a worker."""

    nlp: Language
    pipe: TreeCRF
    features: Extractor
    learner: Learner


class DocState(WorkerState):
    """One training on docs on one worker."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.site: Site | None = None
        self._here: _Pipeline | None = None
        self._examples: dict[int, list[Example]] = {}
        self._readings: dict[int, PartReading] = {}
        self._encoded: dict[int, Sequences] = {}

    def reset(self) -> None:
        super().reset()
        self._examples, self._readings, self._encoded = {}, {}, {}

    @property
    def here(self) -> _Pipeline:
        if self._here is None:
            raise StateLost("no pipeline")
        return self._here

    def read_docs(self, number: int, part: DocPart, site: Site) -> DocSummary:
        """Read a part; the first time also the pipeline."""
        with naming(part.name), _local_file(part.path) as path:
            if self._here is None:
                self._here, self.site = _pipeline(site, path), site
                self.workers.storage = self._here.learner.shim.recipe.storage.check()
            here = self._here
            examples = _read(here.nlp, site, path)
            _refuse_weights(examples)
            i, n = part.share
            examples = examples[len(examples) * i // n : len(examples) * (i + 1) // n]
            task = here.pipe.task
            names = dict.fromkeys(
                name for example in examples for name in names_of(task, task.gold(example))
            )
        self._examples[number] = examples
        lengths = np.array([len(example.predicted) for example in examples], np.int64)
        words = (token.text for example in examples for token in example.predicted)
        return DocSummary(lengths, list(names), next(words, None))

    def lessons(self, number: int, sequence: str) -> list[list[Any]]:
        """What the annotation of each doc of a part teaches features."""
        here, found = self.here, []
        has_spans = here.pipe.task.constraints == "biluo"
        for example in self._examples[number]:
            (gold,) = here.learner.gold([example], sequence)
            entities = [biluo_spans(gold)] if has_spans else None
            found.append(here.features.lesson([example.predicted], entities))
        return found

    def take_features(self, state: dict[str, Any]) -> None:
        """Take over what features have loaded and learned on the driver."""
        self.here.features.from_state(state)

    def tally_docs(
        self, number: int, starts: Int64s, sequence: str, references: bool
    ) -> tuple[PartTally, int]:
        """Count the values of a part; returns also its number of sequences.

        starts: see `PartReading`, in any order.
        """
        examples = [self._examples[number][i] for i in np.argsort(starts, kind="stable")]
        docs = [e.reference if references else e.predicted for e in examples]
        offsets = cut(docs, sequence)
        reading = self.here.features.read_part(docs, offsets, np.sort(starts))
        self._readings[number] = reading
        return reading.tally, len(offsets) - 1

    def tally_numbers(
        self, number: int, source: int, name: str, known_before: Int64s, step: int
    ) -> NumberTally | None:
        return self._readings[number].numbers(source, name, known_before, step)

    def end_tallies(self) -> None:
        self._readings = {}

    def observed_in_docs(
        self, number: int, labels: Sequence[str], sequence: str
    ) -> tuple[Bools, Bools, Bools]:
        """Which labels start, follow each other and end in a part."""
        examples = self._examples[number]
        ids = _label_ids(labels, self.here.learner.gold(examples, sequence))
        offsets = cut([example.predicted for example in examples], sequence)
        return observed_transitions(ids, offsets, len(labels))

    def annotate(self, number: int) -> int:
        """Let other pipes annotate the docs of a part; returns the number of its sequences."""
        assert self.site is not None
        examples = self._examples[number]
        docs: list[Doc] = [example.predicted for example in examples]
        for name in self.site.annotators:
            pipe: Any = self.here.nlp.get_pipe(name)
            docs = list(pipe.pipe(iter(docs)) if hasattr(pipe, "pipe") else map(pipe, docs))
        self._examples[number] = [
            Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)
        ]
        return len(cut(docs, self.here.pipe.sequence)) - 1

    def encode_docs(self, number: int, columns: Columns, labels: Sequence[str]) -> EncodedPart:
        """Encode a part by columns that are known, and drop its docs."""
        here, examples = self.here, self._examples.pop(number)
        ids = _label_ids(labels, here.learner.gold(examples))
        docs = [example.predicted for example in examples]
        offsets = cut(docs, here.pipe.sequence)
        encoded = here.features.encode(docs, offsets, columns, training=True)
        data = Sequences(offsets, *encoded, ids, np.ones(len(ids), np.float32))
        first_tokens = np.cumsum([0, *map(len, docs)])
        doc_of = np.searchsorted(first_tokens, offsets[:-1], side="right") - 1
        if len(ids):
            annotated = np.add.reduceat(ids != UNKNOWN_LABEL, offsets[:-1]) > 0
            data, doc_of = data.subset(np.flatnonzero(annotated)), doc_of[annotated]
        self._encoded[number] = data
        return EncodedPart(np.bincount(doc_of, minlength=len(docs)), np.diff(data.offsets))

    def strings(self) -> list[str]:
        """All strings that the pipeline has met here."""
        return list(self.here.nlp.vocab.strings)

    def some_rows(self, picks: dict[int, Int64s]) -> Sequences:
        """Sequences of parts, one part after the other. picks: their numbers, by part"""
        return join_sequences([self._encoded[part].subset(own) for part, own in picks.items()])

    def take_rows(self, span: Span, order: Int64s, found: list[Sequences]) -> None:
        """Make sequences the rows of this worker. order: of those that were found"""
        self._shard = None
        storage, data = self.workers.storage, join_sequences(found).subset(order)
        columns = storage.keep(data.feature_ids), storage.keep(data.numeric)
        self.data = replace(data, feature_ids=columns[0], numeric=columns[1])
        self.spans = [span]

    def end_reading(self) -> None:
        """Drop what only reading needs."""
        self._examples, self._encoded = {}, {}


def _pipeline(site: Site, path: Path) -> _Pipeline:
    """The pipeline of a config, initialized but for the pipe that is trained."""
    if site.code is not None:
        _import_code(site.code)
    nlp = load_model_from_config(load_config_from_str(site.config), auto_fill=True)
    some = list(islice(_reader(site, path)(nlp), 1)) or [_empty(nlp)]
    with nlp.select_pipes(enable=list(site.others)):
        nlp.initialize(lambda: some)
    pipe = nlp.get_pipe(site.pipe)
    assert isinstance(pipe, TreeCRF)
    assert isinstance(pipe.features, Extractor)
    return _Pipeline(nlp, pipe, pipe.features, pipe.learner)


@lru_cache
def _import_code(path: str) -> None:
    """Import a file of registered functions, once."""
    import_file("python_code", path)


def _empty(nlp: Language) -> Example:
    return Example(Doc(nlp.vocab), Doc(nlp.vocab))


def _reader(site: Site, path: Path) -> Any:
    """The reader of the training corpus, for another path."""
    block = dict(dot_to_object(load_config_from_str(site.config), site.corpus))
    block["path"] = str(path)
    return registry.resolve({"reader": block})["reader"]


def _read(nlp: Language, site: Site, path: Path) -> list[Example]:
    try:
        return list(_reader(site, path)(nlp))
    except (ValueError, TypeError, OSError):
        raise
    except Exception as error:  # what unpacks a damaged file raises errors of many kinds
        raise ValueError(f"treecrf: it cannot be read: {error}") from error


def _refuse_weights(examples: Sequence[Example]) -> None:
    """Refuse docs of a file that say more than rows on workers hold."""
    for number, example in enumerate(examples, 1):
        if is_weighted(example.reference):
            beginning = example.reference[:5].text
            raise ValueError(
                f"treecrf: example {number} ({beginning!r}) has weights (treecrf_weight) or what a "
                "teacher says of its labels, which are not for clusters; train by `spacy train`, "
                "which takes them, or use docs without"
            )


@contextmanager
def _local_file(path: str) -> Iterator[Path]:
    """A file of this machine with the content of a path, which fsspec may know."""
    if "://" not in path:
        yield Path(path)
        return
    import fsspec

    with TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        with fsspec.open(path, "rb") as file:
            copy.write_bytes(file.read())
        yield copy


def _label_ids(labels: Sequence[str], gold: Sequence[Sequence[Label]]) -> npt.NDArray[np.int32]:
    """The ids of all labels, laid end to end; unknown labels count as not annotated."""
    ids: dict[Label, int] = {label: i for i, label in enumerate(labels)}
    return np.array([ids.get(y, UNKNOWN_LABEL) for some in gold for y in some], np.int32)
