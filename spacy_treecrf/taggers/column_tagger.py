"""A tagger that reads and labels column files with a model for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from spacy_treecrf.columnar.files import ColumnFile, Row, read_column_file
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.tagger import CHUNK_SEQUENCES, Chunk
from spacy_treecrf.labels.biluo import Label
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.predictor import Predictor, ScoredSequences


class ColumnTagger:
    """A tagger whose model is a ColumnModel."""

    def __init__(self, model: ColumnModel, name: str, threads: int = 0) -> None:
        self.column_model = model
        self.model: SequenceModel = model.crf
        self.name = name
        self.threads = threads

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        if text:
            return 0, self.read_texts(())
        if source.endswith(".spacy"):
            raise ValueError(
                f"treecrf: {self.name} is a model for column files, and {source} holds docs of "
                "spaCy; pass a column file, or a spaCy pipeline"
            )
        file = read_column_file(source, encoding)
        sequences, labels = self.column_model.template.split(file, need_labels=gold)
        n = -(-len(sequences) // CHUNK_SEQUENCES)
        return n, self._chunks(file, sequences, labels)

    def reading_of(self, source: str) -> str:
        return "tokens and sequences are those of the file"

    def read_texts(self, texts: Sequence[str]) -> Iterator[Chunk]:
        raise ValueError(
            f"treecrf: {self.name} is a model for column files and cannot cut raw text into "
            "tokens; pass a column file (to `tag` without --text), or use a spaCy pipeline"
        )

    def _chunks(
        self, file: ColumnFile, sequences: list[list[Row]], labels: list[list[Label]] | None
    ) -> Iterator[Chunk]:
        template = self.column_model.template
        at = template.text_field
        if labels is None and template.label_field < at:  # the file has no column of labels
            at -= 1
        for first in range(0, len(sequences), CHUNK_SEQUENCES):
            part = slice(first, first + CHUNK_SEQUENCES)
            own = None if labels is None else list(chain.from_iterable(labels[part]))
            data = self.column_model.encode(sequences[part], file, first)
            yield Chunk(file.sequences[part], own, data, text_field=at)

    def predictor(self, workers: Workers) -> Predictor:
        return Predictor(self.model, workers)

    def apply(self, chunk: Chunk, workers: Workers) -> ScoredSequences:
        return self.predictor(workers).apply(chunk.data)

    def label(self, chunk: Chunk, scored: ScoredSequences) -> list[str]:
        return [self.model.labels[i] for i in scored.labels().tolist()]
