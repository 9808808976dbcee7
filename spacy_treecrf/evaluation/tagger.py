"""The protocol of taggers: they read data in chunks and label them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from spacy_treecrf.columnar.files import Row
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.predictor import Predictor, ScoredSequences

if TYPE_CHECKING:
    from spacy.tokens import Doc

CHUNK_SEQUENCES = 256  # how many sequences taggers read and label at a time


@dataclass(frozen=True)
class Chunk:
    """Some sequences of a data set, as a tagger has read them."""

    rows: list[list[Row]]  # for each sequence, the fields that `tag` writes before the label
    gold: list[Label] | None  # the label of every position; None: the data are not annotated
    data: Sequences
    docs: list[Doc] | None = None  # only where a pipeline has read them
    text_field: int = 0  # which field of a row people read
    cut: bool = False  # whether labels are BILUO, of sequences that were cut out of docs
    # Gold spans that the tokens cannot spell: the positions that they touch, and their names.
    unaligned: Sequence[TokenSpan] = ()
    all_unaligned: bool = False  # whether a doc is annotated, but its labels fit no token

    def words(self, sequence: int) -> list[str]:
        """The tokens of a sequence as people read them."""
        return [row[self.text_field] for row in self.rows[sequence]]


class Tagger(Protocol):
    """A trained model, and how it reads data."""

    model: SequenceModel
    threads: int
    name: str

    def read(
        self, source: str, *, text: bool = False, gold: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, Iterator[Chunk]]:
        """The number of chunks (about), and the chunks.

        text: Whether the source is raw text with a document in each line.
        gold: Whether data without annotation are refused.
        """
        ...

    def reading_of(self, source: str) -> str:
        """Which tokens and sentences of a source count, as a sentence for people."""
        ...

    def read_texts(self, texts: Sequence[str]) -> Iterator[Chunk]:
        """Texts in chunks; taggers that cannot cut texts into tokens refuse them."""
        ...

    def predictor(self, workers: Workers) -> Predictor:
        """The model as the tagger applies it."""
        ...

    def apply(self, chunk: Chunk, workers: Workers) -> ScoredSequences:
        """The chunk's sequences under the model."""
        ...

    def label(self, chunk: Chunk, scored: ScoredSequences) -> list[str]:
        """The predicted label of each position. scored: what `apply` returned."""
        ...
