"""Memory that is used again and again while trees grow.

A worker of Dask gives memory back at once, and what is asked of the system anew is slow. A table of
all features that one tree after the other uses also stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.trees.node_features import TouchedFeatures, nothing_touched


class FeatureTables:
    """Tables of the sums of all features, one for each thread that needs one now."""

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self._free: list[TouchedFeatures] = []

    @contextmanager
    def one(self) -> Iterator[TouchedFeatures]:
        """A table of zeros, which has to be left so. After an error it is not used again."""
        table = self._free.pop() if self._free else nothing_touched(self.n_features)
        yield table
        self._free.append(table)


class SumsRoom:
    """Room for the sums of one tree's nodes, until the next time it is asked for the first."""

    def __init__(self, n_features: int) -> None:
        self._most = n_features + 1  # of a node
        self._features = np.empty(0, np.int32)
        self._sums = np.empty((0, 3))
        self._used = 0

    def again(self) -> None:
        """Let what was given be used again."""
        self._used = 0

    def one(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Room for the features and sums of a node; say by `took` how much of it was used."""
        if self._used + self._most > len(self._features):
            size = 2 * len(self._features) + self._most
            self._features, self._sums = np.empty(size, np.int32), np.empty((size, 3))
            self._used = 0
        return self._features[self._used :], self._sums[self._used :]

    def took(self, n: int) -> None:
        self._used += n


class ByteRoom:
    """Room for one message."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def of(self, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes, which may hold anything."""
        if size > len(self._bytes):
            self._bytes = np.empty(size + size // 4, np.uint8)
        return self._bytes[:size]
