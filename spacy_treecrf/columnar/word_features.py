"""Clusters, vectors and gazetteers for the words of a column file, as the pipe has them.

Their sources are those of `features`, which import spaCy: so they are imported where a model has
such features, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_treecrf.columnar.word_vectors import read_vectors, vectors_of, vectors_state
from spacy_treecrf.storage.state_reader import StateReader

if TYPE_CHECKING:
    from spacy.vocab import Vocab

    from spacy_treecrf.features.batch import Batch

CLUSTERS, VECTORS, GAZETTEER = "clusters", "vectors", "gazetteer."
PATH_LENGTHS = [4, 6, 10, 0]  # of Brown clusters, as in configs/ner.cfg; 0: the whole path
VECTOR_BINS = 255
BATCH = 256  # sequences that are read together

Items = list[dict[str, Any]]


class WordFeatures:
    """What a model knows of words beside their letters.

    clusters: Whether it has Brown clusters. vectors: Whether it has the vectors of the vocab.
    gazetteers: Phrases by the name of their list, or the path of a text file.
    """

    def __init__(
        self, vocab: Vocab, clusters: bool, vectors: bool, gazetteers: dict[str, Any]
    ) -> None:
        from spacy_treecrf.features.token_features import create_token_features

        self.vocab = vocab
        self.clusters = clusters
        self.vectors = vectors
        self.gazetteers = list(gazetteers)
        self._extractor = create_token_features(
            attrs={},
            prefixes=[],
            suffixes=[],
            clusters=PATH_LENGTHS if clusters else [],
            vectors=VECTOR_BINS if vectors else 0,
            vector_window=[0],
            gazetteers=gazetteers,
        )

    def load(self) -> None:
        """Read the tables and files that the features are made of."""
        self._extractor.check(self.vocab)
        batch = self._batch([["a"]])
        for source in self._extractor.sources:
            source.prepare(batch)

    def add_to(
        self, features: Iterable[Items], sequences: Sequence[Sequence[str]], name: str
    ) -> Iterator[Items]:
        """The feature dicts of sequences of words, with what these features add.

        name: What the names of added features begin with.
        """
        items = iter(features)
        for first in range(0, len(sequences), BATCH):
            words = sequences[first : first + BATCH]
            block = list(islice(items, len(words)))
            self._add(block, words, name)
            yield from block

    def _add(self, block: list[Items], sequences: Sequence[Sequence[str]], name: str) -> None:
        from spacy_treecrf.features.fitting import read_all

        batch = self._batch(sequences)
        for source in self._extractor.sources:
            rows, reading = read_all(batch, source)
            found: dict[str, list[Any]] = {column: list(v) for column, v in reading.texts.items()}
            for column, numbers in reading.numbers.items():
                found[column] = [None if n != n else n for n in numbers.tolist()]
            for column, values in found.items():
                own = [values[row] for row in rows.tolist()]
                for offset in source.window_of(column) or ():
                    key = f"{name}.{column}[{offset}]"
                    for items, (first, last) in zip(
                        block, pairwise(batch.offsets.tolist()), strict=True
                    ):
                        _put(items, key, own[first:last], offset)

    def _batch(self, sequences: Sequence[Sequence[str]]) -> Batch:
        from spacy.tokens import Doc

        from spacy_treecrf.features.batch import ORTH, Batch

        docs = [Doc(self.vocab, words=list(words)) for words in sequences]
        offsets = np.cumsum([0, *map(len, docs)], dtype=np.int64)
        return Batch(docs, offsets, [ORTH])

    def to_state(self) -> dict[str, Any]:
        return {
            "clusters": self.clusters,
            "vectors": self.vectors,
            "gazetteers": self.gazetteers,
            "sources": self._extractor.to_state(),
            **vectors_state(self.vocab.vectors if self.vectors else None),
        }

    @classmethod
    def from_state(cls, reader: StateReader) -> WordFeatures:
        from spacy.vocab import Vocab

        vectors = reader.boolean("vectors")
        gazetteers: dict[str, Any] = {
            name: [] for name in reader.strings("gazetteers", unique=True)
        }
        vocab = Vocab()
        stored = read_vectors(reader, vocab)
        if vectors and stored is None:
            reader.fail("vector_data", "vectors, because the model has them", "none")
        if vectors:
            vocab.vectors = stored
        found = cls(vocab, reader.boolean("clusters"), vectors, gazetteers)
        found._extractor.from_state(reader.table("sources"))
        return found


def make_word_features(texts: Sequence[str]) -> WordFeatures | None:
    """The features that texts such as "clusters=en" ask for, loaded; None if there is no text."""
    if not texts:
        return None
    from spacy.attrs import LANG  # type: ignore[import-not-found]
    from spacy.vocab import Vocab

    given: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        is_list = name.startswith(GAZETTEER) and len(name) > len(GAZETTEER)
        if not value or name in given or not (is_list or name in (CLUSTERS, VECTORS)):
            raise ValueError(
                f"treecrf: --features has {text!r}; use, each once, clusters=LANGUAGE (e.g. "
                "clusters=en), vectors=PIPELINE (a folder or package that has word vectors), or "
                "gazetteer.NAME=FILE (a text file with a phrase in each line)"
            )
        given[name] = value
    language, source = given.pop(CLUSTERS, ""), given.pop(VECTORS, "")
    vocab = Vocab(lex_attr_getters={LANG: lambda _: language})
    if source:
        vocab.vectors = vectors_of(vocab, source)
    lists = {name.removeprefix(GAZETTEER): path for name, path in given.items()}
    found = WordFeatures(vocab, bool(language), bool(source), lists)
    found.load()
    return found


def _put(items: Items, key: str, values: Sequence[Any], offset: int) -> None:
    """Give each item the value at an offset, where there is one."""
    for t, item in enumerate(items):
        if 0 <= t + offset < len(values) and values[t + offset] is not None:
            item[key] = values[t + offset]
