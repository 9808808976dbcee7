"""What learning columns asks of the rows of all workers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.crew import Crew
from spacy_treecrf.engine.encoding.binning import (
    ColumnBins,
    CountedValues,
    column_bins,
    merge_counts,
)
from spacy_treecrf.engine.encoding.tallying import Numbers


def bins_of(parts: list[list[CountedValues]], max_bins: int) -> list[ColumnBins]:
    """The bins of columns whose values several workers have counted."""
    together = zip(*parts, strict=True)
    return [column_bins(merge_counts(counted), max_bins) for counted in together]


class ClusterTallies:
    """The tallies of events that are on workers (see `Tallies`)."""

    def __init__(self, crew: Crew, n_rows: int) -> None:
        self._crew = crew
        self._n_rows = n_rows

    @property
    def n_rows(self) -> int:
        return self._n_rows

    def numbers(self) -> Numbers:
        given, proper = zip(*self._crew.each("numbers"), strict=True)
        return Numbers(np.unique(np.concatenate(given)), np.unique(np.concatenate(proper)))

    def tally(
        self, first_seen: npt.NDArray[np.int64], home: npt.NDArray[np.int64], n_keys: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        shared = self._crew.share(first_seen), self._crew.share(home)
        counts, displaced = zip(*self._crew.each("tally", *shared, n_keys), strict=True)
        return np.sum(counts, axis=0), np.unique(np.concatenate(displaced))

    def events_of(self, n_seen: int) -> npt.NDArray[np.int64]:
        total: npt.NDArray[np.int64] = np.sum(self._crew.each("events_of", n_seen), axis=0)
        return total

    def bins(self, numeric: npt.NDArray[np.int32], max_bins: int, n_seen: int) -> list[ColumnBins]:
        """The bins of each numeric column, made on a worker: there may be many values."""
        if not len(numeric):
            return []
        crew = self._crew
        counted = [crew.submit(member, "count_numbers", numeric, n_seen) for member in crew.members]
        task = crew.client.submit(bins_of, counted, max_bins, pure=False)
        found: list[ColumnBins] = crew.collect([task])[0]
        return found
