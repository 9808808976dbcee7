"""Rows of a few new words: Python reads their texts, and one kernel does the rest.

It writes what `LexemeSource.numbered` and `SourceTable.add` write, which are quicker for many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from spacy.strings import get_string_id
from spacy.vocab import Vocab

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.clusters import Clusters
from spacy_treecrf.features.layout import SourceTable
from spacy_treecrf.features.lexemes import LexemeSource
from spacy_treecrf.features.source import KnownValues, Source
from spacy_treecrf.features.vectors import KeyedVectors

_NO_KEYS = np.empty(0, np.uint64)


class QuickWords:
    """Writes rows of a table of a source of words; as long as vocab, columns and state stay."""

    def __init__(self, source: LexemeSource, table: SourceTable, vectors: KeyedVectors) -> None:
        from spacy_treecrf.features.kernels.new_words import (
            WordArrays,
            key_index,
            listed_words,
            write_new_words,
        )

        self._source, self._table, self._write = source, table, write_new_words
        known = table.known
        order = source.column_order(known)
        cluster_words, cluster_of, cluster_values = _cluster_values(source.clusters, known)
        clusters, vector_keys = key_index(cluster_words), key_index(vectors.keys)
        texts, binned = table.text_columns, table.binned_columns
        arrays = WordArrays(
            clusters.keys,
            clusters.first,
            cluster_of,
            cluster_values,
            vector_keys.keys,
            vector_keys.first,
            vectors.rows,
            vectors.vectors,
            source.dimensions(known),
            order,
            *texts,
            *binned,
        )
        self._listed, self._kept = listed_words(arrays, clusters.shift, vector_keys.shift)

    def write(self, batch: Batch, positions: npt.NDArray[np.int64], first: int) -> None:
        """Write the rows from `first` on, for which there is room."""
        keys = batch.array(ORTH)[positions].tolist()
        strings = batch.vocab.strings
        texts = [strings[key] for key in keys]
        lowers = [text.lower() for text in texts]
        values = self._source.numbers_of_texts(batch.vocab, keys, texts, lowers, self._table.known)
        keys += [get_string_id(lower) for lower in lowers]
        words, numbers = np.array(keys, np.uint64), np.array(values, np.int64)
        table = self._table
        self._write(self._listed, words, numbers, first, table.feature_ids, table.bins)


def quick_words(source: Source, table: SourceTable, vocab: Vocab) -> QuickWords | None:
    """What writes rows of new words, or None where it takes other steps."""
    if type(source) is not LexemeSource or not table.texts:
        return None
    if source.vectors is not None and source.vectors.kind != "numeric":
        return None
    if source.clusters is not None and source.clusters.words is None:
        return None  # the ordinary way says so
    vectors = KeyedVectors(_NO_KEYS, np.empty(0, np.int32), np.empty((0, 0), np.float32))
    if table.numbers:
        found = None if source.vectors is None else source.vectors.keyed(vocab)
        if found is None:
            return None
        vectors = found
    return QuickWords(source, table, vectors)


def _cluster_values(
    clusters: Clusters | None, known: KnownValues
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Words that have a cluster, the number of each word's cluster, and the values of clusters.

    The shape of the values is (n_clusters, n_columns): the numbers that a model gives them.
    """
    columns = [] if clusters is None else [c for c in known.texts if c in clusters.columns]
    if clusters is None or clusters.words is None or not columns:
        return _NO_KEYS, np.empty(0, np.int32), np.empty((0, len(columns)), np.int32)
    paths, of_word = np.unique(clusters.paths, return_inverse=True)
    values = [
        [known.texts[column].get(clusters.text(column, path), 0) for column in columns]
        for path in paths.tolist()
    ]
    table = np.array(values, np.int32).reshape(-1, len(columns))
    return clusters.words, of_word.astype(np.int32), table
