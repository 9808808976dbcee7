"""The rows of a few new words by one call: their clusters, vectors, ids and bins.

Each of these is a look-up in memory that the processor has not at hand; here they wait for each
other's memory no longer than for one. Arrays are listed by their addresses, as in `small_batches`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import prefetch, prefetch_cell
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.listed_arrays import (
    float32_table,
    float64s,
    int32_table,
    int32s,
    int64s,
    listed_arrays,
    uint64s,
)
from spacy_treecrf.features.kernels.bins import BinnedColumns, write_bin

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

KEYS_IN_BUCKET = 8  # about
NUMBERS_AT_ONCE = 16  # of 32 bits, that the processor brings into its cache together


class KeyIndex(NamedTuple):
    """Rising keys, spread evenly as hashes are, and where those with the same first bits begin."""

    keys: Keys
    first: npt.NDArray[np.int32]  # shape: (n_buckets + 1,)
    shift: int  # bits of a key that do not tell its bucket


def key_index(keys: Keys) -> KeyIndex:
    """The index of rising keys."""
    bits = max(1, (len(keys) // KEYS_IN_BUCKET).bit_length())
    shift = 64 - bits
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)
    first = np.append(keys.searchsorted(starts), len(keys)).astype(np.int32)
    return KeyIndex(np.ascontiguousarray(keys), first, shift)


class WordArrays(NamedTuple):
    """What is known of words, and where it is to be written; empty arrays where there is none.

    The columns of a source in the order in which their values come: those that are given, then
    clusters.
    """

    cluster_keys: Keys
    cluster_first: npt.NDArray[np.int32]
    cluster_of: npt.NDArray[np.int32]  # of each of cluster_keys
    cluster_values: npt.NDArray[np.int32]  # shape: (n_clusters, n_columns)
    vector_keys: Keys
    vector_first: npt.NDArray[np.int32]
    vector_of: npt.NDArray[np.int32]  # of each of vector_keys
    vectors: npt.NDArray[np.float32]  # shape: (n_vectors, width)
    dimensions: Ints  # of each column of numbers
    columns: Ints  # where each column is in the next three; those of TextColumns
    ids: npt.NDArray[np.int32]
    id_first: Ints
    cells: Ints
    cell_first: Ints
    edges: npt.NDArray[np.float64]  # this and the next are those of BinnedColumns
    edge_first: Ints
    bin_cells: Ints
    bin_cell_first: Ints


(
    CLUSTER_KEYS,
    CLUSTER_FIRST,
    CLUSTER_OF,
    CLUSTER_VALUES,
    VECTOR_KEYS,
    VECTOR_FIRST,
    VECTOR_OF,
    VECTORS,
    DIMENSIONS,
    COLUMNS,
    IDS,
    ID_FIRST,
    CELLS,
    CELL_FIRST,
    EDGES,
    EDGE_FIRST,
    BIN_CELLS,
    BIN_CELL_FIRST,
    SHIFTS,  # of both indexes, behind the arrays
) = range(19)


def listed_words(
    arrays: WordArrays, cluster_shift: int, vector_shift: int
) -> tuple[Ints, list[npt.NDArray[Any]]]:
    """Address and lengths of each array, and the arrays, which must live as long as these.

    The last row, SHIFTS, has no array.
    """
    rows, kept = listed_arrays(arrays)
    return np.array([*rows, [cluster_shift, vector_shift, 0, 0]], np.int64), kept


@step
def _ask_for(first: npt.NDArray[np.int32], shift: int, words: Keys) -> None:
    """Bring the places of the keys' buckets into the cache."""
    for i in range(len(words)):
        prefetch_cell(first, np.int64(words[i] >> np.uint64(shift)))


@step
def _ask_for_keys(keys: Keys, first: npt.NDArray[np.int32], shift: int, words: Keys) -> None:
    """Bring the beginning of the keys' buckets into the cache."""
    for i in range(len(words)):
        prefetch_cell(keys, np.int64(first[np.int64(words[i] >> np.uint64(shift))]))


@step
def place_of(keys: Keys, first: npt.NDArray[np.int32], shift: int, word: np.uint64) -> int:
    """Return the place of a key, or -1."""
    bucket = np.int64(word >> np.uint64(shift))
    low = np.int64(first[bucket])
    high = np.int64(first[bucket + 1])
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < word:
            low = middle + 1
        else:
            high = middle
    if low < first[bucket + 1] and keys[low] == word:
        return int(low)
    return -1


@step
def _own_or_lower(
    keys: Keys, first: npt.NDArray[np.int32], shift: int, words: Keys, word: int
) -> int:
    """Return the place of a word, or of its lower-case form, or -1. words: Both of all words."""
    found = place_of(keys, first, shift, words[word])
    if found < 0:
        found = place_of(keys, first, shift, words[len(words) // 2 + word])
    return int(found)


@step
def _vector_rows(listed: Ints, words: Keys, vectors: npt.NDArray[np.float32], rows: Ints) -> None:
    """Write the row of each word's vector, -1 for none, and bring the vectors into the cache."""
    keys, first = uint64s(listed, VECTOR_KEYS), int32s(listed, VECTOR_FIRST)
    vector_of, shift = int32s(listed, VECTOR_OF), listed[SHIFTS, 1]
    for word in range(len(rows)):
        rows[word] = -1
        place = _own_or_lower(keys, first, shift, words, word)
        if place >= 0:
            rows[word] = vector_of[place]
            for dimension in range(0, vectors.shape[1], NUMBERS_AT_ONCE):
                prefetch(vectors, rows[word], np.int64(dimension))


@step
def _find_clusters(listed: Ints, words: Keys, clusters: Ints) -> None:
    """Write the number of each word's cluster, -1 for none."""
    keys, first = uint64s(listed, CLUSTER_KEYS), int32s(listed, CLUSTER_FIRST)
    cluster_of, shift = int32s(listed, CLUSTER_OF), listed[SHIFTS, 0]
    for word in range(len(clusters)):
        place = _own_or_lower(keys, first, shift, words, word)
        clusters[word] = cluster_of[place] if place >= 0 else -1


@step
def _write_ids(
    listed: Ints, clusters: Ints, values: Ints, first_row: int, feature_ids: npt.NDArray[np.int32]
) -> None:
    """Write the ids of words. values: Those of the columns that are given."""
    columns, id_first, ids = int64s(listed, COLUMNS), int64s(listed, ID_FIRST), int32s(listed, IDS)
    cells, cell_first = int64s(listed, CELLS), int64s(listed, CELL_FIRST)
    cluster_values = int32_table(listed, CLUSTER_VALUES)
    n_words, n_given = len(clusters), len(columns) - cluster_values.shape[1]
    for i in range(len(columns)):
        column = columns[i]
        start = cell_first[column]
        n_cells = cell_first[column + 1] - start
        for word in range(n_words):
            value = np.int64(0)
            if i < n_given:
                value = values[i * n_words + word]
            elif clusters[word] >= 0:
                value = np.int64(cluster_values[clusters[word], i - n_given])
            at = id_first[column] + value * n_cells
            for c in range(n_cells):
                feature_ids[first_row + word, cells[start + c]] = ids[at + c]


@step
def _write_vectors(
    listed: Ints,
    vectors: npt.NDArray[np.float32],
    rows: Ints,
    first_row: int,
    bins: npt.NDArray[np.uint8],
) -> None:
    """Write the bins of words. rows: Those of their vectors."""
    dimensions = int64s(listed, DIMENSIONS)
    columns = BinnedColumns(
        float64s(listed, EDGES),
        int64s(listed, EDGE_FIRST),
        int64s(listed, BIN_CELLS),
        int64s(listed, BIN_CELL_FIRST),
    )
    for column in range(len(dimensions)):
        for word in range(len(rows)):
            number = np.nan
            if rows[word] >= 0:
                number = np.float64(vectors[rows[word], dimensions[column]])
            own = number if np.isfinite(number) else np.nan
            write_bin(own, column, columns, bins[first_row + word])


@kernel
def write_new_words(
    listed: Ints,
    words: Keys,
    values: Ints,
    first_row: int,
    feature_ids: npt.NDArray[np.int32],
    bins: npt.NDArray[np.uint8],
) -> None:
    """Write the rows of words from `first_row` on.

    words: (2 * n_words,), the keys of words, then those of their lower-case forms. values: Of each
    column that is given, the number of each word's value, (n_given * n_words,).
    """
    n_words = len(words) // 2
    has_clusters, has_vectors = listed[CLUSTER_VALUES, 2] > 0, listed[DIMENSIONS, 1] > 0
    cluster_first, vector_first = int32s(listed, CLUSTER_FIRST), int32s(listed, VECTOR_FIRST)
    if has_vectors:
        _ask_for(vector_first, listed[SHIFTS, 1], words)
    if has_clusters:
        _ask_for(cluster_first, listed[SHIFTS, 0], words)
    if has_vectors:
        _ask_for_keys(uint64s(listed, VECTOR_KEYS), vector_first, listed[SHIFTS, 1], words)
    if has_clusters:
        _ask_for_keys(uint64s(listed, CLUSTER_KEYS), cluster_first, listed[SHIFTS, 0], words)

    vectors = float32_table(listed, VECTORS)
    rows = np.empty(n_words, np.int64)
    clusters = np.full(n_words, -1, np.int64)
    if has_vectors:
        _vector_rows(listed, words, vectors, rows)
    if has_clusters:
        _find_clusters(listed, words, clusters)
    _write_ids(listed, clusters, values, first_row, feature_ids)
    if has_vectors:
        _write_vectors(listed, vectors, rows, first_row, bins)
