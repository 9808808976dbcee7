"""A tagger that reads and labels docs, text or column files with a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import Any, TypeVar

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_treecrf.columnar.files import ColumnFile, Row, read_column_file, read_text_lines
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.tagger import CHUNK_SEQUENCES, Chunk
from spacy_treecrf.features.tokenizer import CharacterTokenizer
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels, as_biluo
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from spacy_treecrf.models.ruled import rules_of
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.taggers.unaligned import unaligned

Item = TypeVar("Item")


class PipelineTagger:
    """A tagger whose model is a treecrf pipe in a spaCy pipeline.

    as_text: Whether docs are read for their text alone, as `spacy evaluate` reads them.
    """

    def __init__(
        self, nlp: Language, pipe: TreeCRF, name: str, threads: int = 0, *, as_text: bool = False
    ) -> None:
        self.nlp = nlp
        self.pipe = pipe
        self.model = pipe.shim.trained
        self.name = name
        self.threads = threads
        self.as_text = as_text

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        if text:
            lines = read_text_lines(source, encoding)
            return self._n_chunks(len(lines)), self.read_texts(lines)
        if source.endswith(".spacy"):
            n, pairs = self._examples(source)
        else:
            if self.as_text:
                raise ValueError(
                    f"treecrf: {source} is a column file, which has its tokens; leave --as-text "
                    "out, or pass a .spacy file"
                )
            file = read_column_file(source, encoding)
            n = len(file.sequences)
            return self._n_chunks(n), self._column_file_chunks(file, gold)
        return self._n_chunks(n), self._doc_chunks(pairs)

    def read_texts(self, texts: Sequence[str]) -> Iterator[Chunk]:
        return self._doc_chunks((self.nlp.make_doc(text), None) for text in texts)

    def _n_chunks(self, n: int) -> int:
        return -(-n // CHUNK_SEQUENCES)

    def examples(self, source: str, part: str = "dev") -> Iterator[Example]:
        """The examples of a .spacy file as the config reads a part of the data, after other pipes.

        part: "train", or "dev", which is read for its text alone if the tagger is told so.
        """
        for pairs in _batched(self._examples(source, part)[1], CHUNK_SEQUENCES):
            docs = self._upstream([doc for doc, _ in pairs])
            for doc, (_, example) in zip(docs, pairs, strict=True):
                example.predicted = doc
                yield example

    def _examples(self, source: str, part: str = "dev") -> tuple[int, Iterator[tuple[Doc, Any]]]:
        try:
            n = len(DocBin(store_user_data=True).from_disk(source))
        except OSError as error:
            raise ValueError(
                f"treecrf: cannot read {source}: {error.strerror or error}; check the path"
            ) from error
        except Exception as error:  # msgpack and zlib raise many kinds
            raise ValueError(
                f"treecrf: {source} does not hold docs of spaCy ({error}); write it by "
                "DocBin.to_disk"
            ) from error
        if not n:
            raise ValueError(f"treecrf: {source} holds no docs")
        read = self._reader(source, part)
        return n, ((example.predicted, example) for example in read(self.nlp))

    def _reader(self, source: str, part: str) -> Callable[[Language], Iterator[Example]]:
        """The reader of a part of the config's [corpora]: tokens and inputs are as in training."""
        block = self._reader_block(part)
        if block is None:
            return Corpus(source)
        whole = {"path": source, "limit": 0, "max_length": 0}
        block.update({name: value for name, value in whole.items() if name in block})
        reader: Callable[[Language], Iterator[Example]] = registry.resolve({part: block})[part]
        return reader

    def _reader_block(self, part: str = "dev") -> dict[str, Any] | None:
        """The settings of the config's reader; None if docs are read as `spacy evaluate` does."""
        block: dict[str, Any] = self.nlp.config.interpolate().get("corpora", {}).get(part, {})
        reads_files = "path" in block
        return block if reads_files and not self.as_text else None

    def reading_of(self, source: str) -> str:
        if not source.endswith(".spacy"):
            return "tokens and sequences are those of the file"
        block = self._reader_block()
        if block is None:
            return (
                "docs are read by spacy.Corpus.v1, as `spacy evaluate` does: the pipeline finds "
                "sentences, and tokens unless the spaces between them are unknown, as in docs of "
                "column files; spans count by its tokens, and as missed if these cannot spell "
                "them; in `spacy evaluate` spans count by the tokens of the data"
            )
        inputs = ", ".join(block.get("inputs", ())) or "none"
        return (
            f"docs are read by {block.get('@readers')}, as [corpora.dev] of the config says; "
            f"annotation that the pipeline is given: {inputs}"
        )

    def _doc_chunks(self, pairs: Iterable[tuple[Doc, Any]]) -> Iterator[Chunk]:
        for part in _batched(pairs, CHUNK_SEQUENCES):
            docs = self._upstream([doc for doc, _ in part])
            gold: list[Label] | None = None
            lost: list[TokenSpan] = []
            everything = False
            if part[0][1] is not None:
                gold = []
                for doc, (_, example) in zip(docs, part, strict=True):
                    example.predicted = doc
                    labels = self.pipe.task.gold(example)
                    own, at = unaligned(self.pipe.task, example, labels), len(gold)
                    lost += [(at + start, at + end, name) for start, end, name in own.spans]
                    everything |= own.everything
                    gold += labels
            rows = [[[token.text] for token in doc] for doc in docs]
            read = self._chunk(docs, list(chain.from_iterable(rows)), gold)
            yield replace(read, unaligned=lost, all_unaligned=everything)

    def _column_file_chunks(self, file: ColumnFile, need_gold: bool) -> Iterator[Chunk]:
        if file.n_fields < 2 and need_gold:
            raise ValueError(
                f"treecrf: {file.place(0, 0)}: expected at least 2 columns, a token and, in the "
                f"last one, its label, found {file.n_fields}"
            )
        spans = self.pipe.task.constraints == "biluo"
        every = (row[-1] for rows in file.sequences for row in rows)
        if need_gold and spans and not are_span_labels(labels := set(every)) and labels != {"O"}:
            raise ValueError(
                f"treecrf: {file.name} has other labels than B-X, I-X and O in its last column, "
                f"and the pipe {self.pipe.name!r} labels spans; pass a file of spans"
            )
        for rows in _batched(file.sequences, CHUNK_SEQUENCES):
            words = ([row[0] for row in own] for own in rows)
            docs = self._upstream([doc_of_words(self.nlp, own, whole=True) for own in words])
            gold: list[Label] = []
            for own in rows if file.n_fields > 1 else []:
                labels_of = [row[-1] for row in own]
                gold += as_biluo(labels_of) if spans else labels_of
            yield self._chunk(docs, list(chain.from_iterable(rows)), gold or None)

    def _upstream(self, docs: list[Doc]) -> list[Doc]:
        """The docs with the annotation of the pipes in front of ours."""
        names = self.nlp.pipe_names
        others = names[names.index(self.pipe.name) :]
        return list(self.nlp.pipe(docs, disable=others))

    def _chunk(self, docs: list[Doc], rows: list[Row], gold: list[Label] | None) -> Chunk:
        data = self.pipe.encode(docs)
        cut_rows = [rows[a:b] for a, b in pairwise(data.offsets.tolist())]
        cut = self.pipe.task.constraints == "biluo"
        return Chunk(cut_rows, gold, data, docs, cut=cut)

    def predictor(self, workers: Workers) -> Predictor:
        settings = self.pipe.shim.settings
        return Predictor(self.model, workers, settings.predictor, rules_of(settings))

    def apply(self, chunk: Chunk, workers: Workers) -> ScoredSequences:
        assert chunk.docs is not None
        return self.pipe.agreed(chunk.docs, self.predictor(workers).apply(chunk.data))

    def label(self, chunk: Chunk, scored: ScoredSequences) -> list[str]:
        """What stands on the docs in the end: the pipe may drop spans and keep what is there."""
        assert chunk.docs is not None
        allowed = self.pipe.allowed(chunk.docs)
        predictions = self.pipe.decode(
            chunk.docs, scored if allowed is None else scored.under(allowed)
        )
        self.pipe.set_annotations(chunk.docs, predictions)
        spans = self.pipe.task.constraints == "biluo"
        labels: list[str] = []
        for doc, prediction in zip(chunk.docs, predictions, strict=True):
            written = self.pipe.task.gold(Example(doc, doc))
            default = ["O"] * len(doc) if spans else prediction.labels
            labels += [own or other for own, other in zip(written, default, strict=True)]
        return labels


def doc_of_words(nlp: Language, words: list[str], *, whole: bool = False) -> Doc:
    """A doc with these words as tokens, with spaces between them unless they are letters.

    whole: Whether they are one sentence, whatever punctuation is in it.
    """
    letters = isinstance(nlp.tokenizer, CharacterTokenizer)
    starts: list[bool | int | None] | None = None
    if whole:
        starts = [i == 0 for i in range(len(words))]
    return Doc(nlp.vocab, words=words, spaces=[not letters] * len(words), sent_starts=starts)


def _batched(items: Iterable[Item], n: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while part := list(islice(iterator, n)):
        yield part
