"""Models for column files and spaCy pipelines behind one interface: read data, label it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from spacy_treecrf.columnar.files import ColumnFile, Row, read_column_file, read_text_lines
from spacy_treecrf.columnar.model import KIND, ColumnModel, model_file
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.labels import Label
from spacy_treecrf.evaluation.spans import are_span_labels, spans_of
from spacy_treecrf.models import storage
from spacy_treecrf.models.files import KINDS as MODEL_KINDS
from spacy_treecrf.models.files import model_from_state
from spacy_treecrf.models.model import Predictor, SequenceModel

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from spacy_treecrf.pipeline.pipe import TreeCRF

Item = TypeVar("Item")
CHUNK_SEQUENCES = 256


@dataclass(frozen=True)
class Chunk:
    """Some sequences of a data set, as a tagger has read them."""

    rows: list[list[Row]]  # of each sequence, what `tag` writes before the label
    gold: list[Label] | None  # of all positions; None: the data are not annotated
    data: Sequences
    docs: list[Doc] | None = None  # of a pipeline


class Tagger(Protocol):
    """A trained model and how it reads data."""

    model: SequenceModel
    threads: int
    name: str

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        """How many chunks there are (about), and these. text: raw text, a document per line.

        gold: refuse data without annotation.
        """
        ...

    def label(self, chunk: Chunk) -> list[str]:
        """The predicted label of each position."""
        ...


class ColumnTagger:
    """A model for column files."""

    def __init__(self, model: ColumnModel, name: str, threads: int = 0) -> None:
        self.columns = model
        self.model: SequenceModel = model.crf
        self.name = name
        self.threads = threads

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        if text:
            raise ValueError(
                f"treecrf: {self.name} is a model for column files and cannot cut raw text into "
                "tokens; pass a column file without --text, or a spaCy pipeline"
            )
        if source.endswith(".spacy"):
            raise ValueError(
                f"treecrf: {self.name} is a model for column files, and {source} holds docs of "
                "spaCy; pass a column file, or a spaCy pipeline"
            )
        file = read_column_file(source, encoding)
        sequences, labels = self.columns.template.split(file, need_labels=gold)
        n = -(-len(sequences) // CHUNK_SEQUENCES)
        return n, self._chunks(file, sequences, labels)

    def _chunks(
        self, file: ColumnFile, sequences: list[list[Row]], labels: list[list[Label]] | None
    ) -> Iterator[Chunk]:
        for first in range(0, len(sequences), CHUNK_SEQUENCES):
            part = slice(first, first + CHUNK_SEQUENCES)
            own = None if labels is None else list(chain.from_iterable(labels[part]))
            data = self.columns.encode(sequences[part], file, first)
            yield Chunk(file.sequences[part], own, data)

    def label(self, chunk: Chunk) -> list[str]:
        with Workers(self.threads) as workers:
            ids = Predictor(self.model, workers).labels(chunk.data)
        return [self.model.labels[i] for i in ids.tolist()]


class PipelineTagger:
    """A spaCy pipeline with a treecrf pipe."""

    def __init__(self, nlp: Language, pipe: TreeCRF, name: str, threads: int = 0) -> None:
        self.nlp = nlp
        self.pipe = pipe
        self.model = pipe.shim.trained
        self.name = name
        self.threads = threads

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        pairs: Iterator[tuple[Doc, Any]]
        if text:
            lines = read_text_lines(source, encoding)
            pairs = ((self.nlp.make_doc(line), None) for line in lines)
            n = len(lines)
        elif source.endswith(".spacy"):
            n, pairs = self._examples(source)
        else:
            file = read_column_file(source, encoding)
            n = len(file.sequences)
            return self._n_chunks(n), self._column_chunks(file, gold)
        return self._n_chunks(n), self._doc_chunks(pairs)

    def _n_chunks(self, n: int) -> int:
        return -(-n // CHUNK_SEQUENCES)

    def _examples(self, source: str) -> tuple[int, Iterator[tuple[Doc, Any]]]:
        from spacy.tokens import DocBin

        try:
            n = len(DocBin(store_user_data=True).from_disk(source))
        except OSError as error:
            raise ValueError(
                f"treecrf: cannot read {source}: {error.strerror or error}; check the path"
            ) from error
        except Exception as error:  # of msgpack or zlib, of many kinds
            raise ValueError(
                f"treecrf: {source} does not hold docs of spaCy ({error}); write it by "
                "DocBin.to_disk"
            ) from error
        if not n:
            raise ValueError(f"treecrf: {source} holds no docs")
        read = self._reader(source)
        return n, ((example.predicted, example) for example in read(self.nlp))

    def _reader(self, source: str) -> Callable[[Language], Iterator[Example]]:
        """That of the config's [corpora.dev]: tokens and inputs are as in training."""
        from spacy.training import Corpus
        from spacy.util import registry

        block = self.nlp.config.interpolate().get("corpora", {}).get("dev", {})
        if "path" not in block:  # it reads no files
            return Corpus(source)
        whole = {"path": source, "limit": 0, "max_length": 0}
        block.update({name: value for name, value in whole.items() if name in block})
        reader: Callable[[Language], Iterator[Example]] = registry.resolve({"dev": block})["dev"]
        return reader

    def _doc_chunks(self, pairs: Iterable[tuple[Doc, Any]]) -> Iterator[Chunk]:
        for part in _batched(pairs, CHUNK_SEQUENCES):
            docs = self._upstream([doc for doc, _ in part])
            gold: list[Label] | None = None
            if part[0][1] is not None:
                gold = []
                for doc, (_, example) in zip(docs, part, strict=True):
                    example.predicted = doc
                    gold += self.pipe.task.gold(example)
            rows = [[[token.text] for token in doc] for doc in docs]
            yield self._chunk(docs, list(chain.from_iterable(rows)), gold)

    def _column_chunks(self, file: ColumnFile, need_gold: bool) -> Iterator[Chunk]:
        if file.n_columns < 2 and need_gold:
            raise ValueError(
                f"treecrf: {file.place(0, 0)}: expected at least 2 columns, a token and, in the "
                f"last one, its label, found {file.n_columns}"
            )
        spans = self.pipe.task.constraints == "biluo"
        every = (row[-1] for rows in file.sequences for row in rows)
        if need_gold and spans and not are_span_labels(labels := set(every)) and labels != {"O"}:
            raise ValueError(
                f"treecrf: {file.name} has other labels than B-X, I-X and O in its last column, "
                f"and the pipe {self.pipe.name!r} labels spans; pass a file of spans"
            )
        for rows in _batched(file.sequences, CHUNK_SEQUENCES):
            docs = self._upstream([self._doc([row[0] for row in own]) for own in rows])
            gold: list[Label] = []
            for own in rows if file.n_columns > 1 else []:
                labels_of = [row[-1] for row in own]
                gold += as_biluo(labels_of) if spans else labels_of
            yield self._chunk(docs, list(chain.from_iterable(rows)), gold or None)

    def _doc(self, words: list[str]) -> Doc:
        from spacy.tokens import Doc

        from spacy_treecrf.features.tokenizer import CharacterTokenizer

        letters = isinstance(self.nlp.tokenizer, CharacterTokenizer)
        return Doc(self.nlp.vocab, words=words, spaces=[not letters] * len(words))

    def _upstream(self, docs: list[Doc]) -> list[Doc]:
        """The docs with what the pipes in front of ours write on them."""
        names = self.nlp.pipe_names
        others = names[names.index(self.pipe.name) :]
        return list(self.nlp.pipe(docs, disable=others))

    def _chunk(self, docs: list[Doc], rows: list[Row], gold: list[Label] | None) -> Chunk:
        from spacy_treecrf.pipeline.sequencing import cut

        offsets = cut(docs, self.pipe.sequence)
        codes, numeric = self.pipe.features.encode(docs, offsets, self.model.columns)
        n = len(codes)
        labels = np.full(n, UNKNOWN_LABEL, np.int32)
        data = Sequences(offsets, codes, numeric, labels, np.ones(n, np.float32))
        cut_rows = [rows[a:b] for a, b in pairwise(offsets.tolist())]
        return Chunk(cut_rows, gold, data, docs)

    def label(self, chunk: Chunk) -> list[str]:
        """What stands on the docs in the end: the pipe may drop spans and keep what is there."""
        from spacy.training import Example

        assert chunk.docs is not None
        predictions = self.pipe.predict(chunk.docs)
        self.pipe.set_annotations(chunk.docs, predictions)
        spans = self.pipe.task.constraints == "biluo"
        labels: list[str] = []
        for doc, prediction in zip(chunk.docs, predictions, strict=True):
            written = self.pipe.task.gold(Example(doc, doc))
            default = ["O"] * len(doc) if spans else prediction.labels
            labels += [own or other for own, other in zip(written, default, strict=True)]
        return labels


def as_biluo(labels: Sequence[Label]) -> list[Label]:
    """Labels of any scheme in that of the pipe."""
    from spacy_treecrf.pipeline.tasks.biluo import write_span

    biluo: list[Label] = [None if label is None else "O" for label in labels]
    for start, end, name in spans_of(labels):
        write_span(biluo, start, end, name)
    return biluo


def load_tagger(model: str, *, pipe: str | None = None, threads: int = 0) -> Tagger:
    """The model in a file or folder, or a spaCy pipeline by folder or package name.

    pipe: name of the treecrf pipe, where a pipeline has several.
    """
    path = model_file(model)
    if path.is_file():
        state = storage.read(path)
        if state.get("kind") in MODEL_KINDS:
            raise ValueError(
                f"treecrf: {path} was saved by an estimator: only the program that made its "
                "features can make them again; train with `spacy-treecrf train`, or use "
                "the estimator's load there"
            )
        return ColumnTagger(_column_model(state, path), model, threads)
    nlp, found = load_pipe(model, pipe)
    if threads:
        found.shim.recipe = found.shim.recipe.changed(threads=threads)
    return PipelineTagger(nlp, found, model, threads)


def load_model(model: str, *, pipe: str | None = None) -> tuple[SequenceModel, ColumnModel | None]:
    """What was learned, of any kind of model; and the whole model if it is for column files."""
    path = model_file(model)
    if not path.is_file():
        return load_pipe(model, pipe)[1].shim.trained, None
    state = storage.read(path)
    if state.get("kind") in MODEL_KINDS:
        return model_from_state(state), None
    loaded = _column_model(state, path)
    return loaded.crf, loaded


def load_pipe(model: str, pipe: str | None) -> tuple[Language, TreeCRF]:
    import spacy

    from spacy_treecrf.pipeline.pipe import TreeCRF

    if not Path(model).exists() and (os.sep in model or model.endswith(".treecrf")):
        raise ValueError(f"treecrf: there is no model {model}; check the path")
    try:
        nlp = spacy.load(model)
    except OSError as error:
        raise ValueError(
            f"treecrf: {model} is neither a model of `spacy-treecrf train` nor a spaCy pipeline "
            f"({error}); check the path, or install the package"
        ) from error
    found = {name: own for name, own in nlp.pipeline if isinstance(own, TreeCRF)}
    if pipe is None and len(found) == 1:
        return nlp, next(iter(found.values()))
    if pipe in found:
        return nlp, found[pipe]
    names = ", ".join(found) or "none"
    raise ValueError(
        f"treecrf: the pipeline {model} has these treecrf pipes: {names}; name one by --pipe"
        + ("" if found else ", in a pipeline that has one")
    )


def _column_model(state: dict[str, Any], path: Path) -> ColumnModel:
    if state.get("kind") != KIND:
        raise ValueError(
            f"treecrf: {path} holds a {state.get('kind')!r}, not a model for column files; pass "
            "the folder of the spaCy pipeline that it belongs to"
        )
    return ColumnModel.from_state(state)


def _batched(items: Iterable[Item], n: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while part := list(islice(iterator, n)):
        yield part
