"""What a worker keeps of a training, and what it does when the driver asks.

The methods of `WorkerState` are called by tasks (see `call`), one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.growing_together import Exchange, GrowingTogether, Grown
from spacy_treecrf.dask.parts import Part, naming
from spacy_treecrf.dask.shard import Job, Shard, ShardTotals
from spacy_treecrf.dask.tree_course import room_of
from spacy_treecrf.dask.tree_messages import owner_bounds
from spacy_treecrf.dask.vocabulary import (
    PartRows,
    PartSummary,
    Seen,
    Vocabulary,
    join_rows,
    read_rows,
)
from spacy_treecrf.engine.boosting.linear import Direction, FeatureSums, newton_step
from spacy_treecrf.engine.boosting.potentials import Potentials, Update
from spacy_treecrf.engine.boosting.residuals import Bound, ResidualSums
from spacy_treecrf.engine.boosting.rounds import HeldOutCounts
from spacy_treecrf.engine.chain.constraints import observed_transitions
from spacy_treecrf.engine.encoding.binning import CountedValues, merge_counts
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import LearnedColumns
from spacy_treecrf.engine.encoding.tallying import (
    Numbers,
    events_of,
    numbers_in,
    numbers_of_columns,
    tally,
)
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import (
    CHUNK_ROWS,
    UNKNOWN_LABEL,
    Sequences,
    join_sequences,
)
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import MagnitudeSums, Trimming
from spacy_treecrf.engine.trees.tree_rounds import round_seed, tree_limits

Bools = npt.NDArray[np.bool_]
Step = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


class Piece(NamedTuple):
    """Some sequences of a part."""

    part: int
    first: int
    last: int


class Span(NamedTuple):
    """Whole chunks of all rows: those that begin in a part, and where the last of them ends."""

    number: int  # of the part
    first_row: int  # among all rows
    n_rows: int
    n_sequences: int
    pieces: tuple[Piece, ...]


class Cut(NamedTuple):
    """Where chunks are cut in a part."""

    n_head: int  # sequences that belong to a chunk which began in an earlier part
    head_rows: int
    left: int  # rows of the chunk that goes on in the next part


class SparseSums(NamedTuple):
    """`FeatureSums` without the features that no row has."""

    features: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]  # shape: (n, 2)
    bins: npt.NDArray[np.float64]


class StateLost(RuntimeError):
    """A worker does not have what it should: it was restarted, or the task is of another time."""


class WorkerState:
    """One training on one worker."""

    def __init__(self, threads: int) -> None:
        self.lock = threading.Lock()
        self.epoch = 0
        self.workers = Workers(threads)
        self.parts: dict[int, PartRows] = {}
        self.seen: dict[int, Seen] = {}  # of each part
        self.own_ids: dict[int, npt.NDArray[np.int32]] = {}  # of a part: ids among all of them
        self.spans: list[Span] = []
        self.data: Sequences | None = None
        self.held_out: dict[int, Sequences] = {}
        self.outbox: dict[int, list[Any]] = {}
        self._shard: Shard | None = None

    @property
    def shard(self) -> Shard:
        if self._shard is None:
            raise StateLost("no rows")
        return self._shard

    def close(self) -> None:
        self.workers.close()

    def reset(self) -> None:
        """Drop all rows."""
        self.parts, self.spans, self.data, self.held_out = {}, [], None, {}
        self.seen, self.own_ids = {}, {}
        self._shard = None

    # Reading and encoding.

    def scan(self, number: int, part: Part, value: Any, indicator: bool) -> PartSummary:
        """Read a part by ids of its own."""
        storage = self._storage_of(part)
        read = read_rows(part.read(value), part.name, indicator, storage)
        self.parts[number], self.seen[number], summary = read
        return summary

    def merge_seen(self, indicator: bool) -> Seen:
        """Everything that the parts have seen, as if one reader had read them in their order."""
        vocabulary = Vocabulary(indicator)
        self.own_ids = {number: vocabulary.merge(self.seen[number]) for number in sorted(self.seen)}
        self.seen = {}
        return vocabulary.seen

    def _storage_of(self, part: Part) -> RowStorage:
        """Where the rows of a part go; those of all parts of a training go to the same place."""
        if part.spill != self.workers.storage.folder:
            with naming(part.name):
                self.workers.storage = RowStorage(part.spill).check()
        return self.workers.storage

    def encode(
        self, number: int, part: Part, value: Any, columns: Columns, label_ids: dict[Any, int]
    ) -> tuple[int, int]:
        """Read a part, or read it again, by the ids of columns that are known.

        Returns the number of its rows and sequences.
        """
        storage = self._storage_of(part)
        self.parts[number] = rows = _encoded(part, value, columns, label_ids, storage)
        return len(rows.labels), rows.n_sequences

    def encode_held_out(
        self, number: int, part: Part, value: Any, columns: Columns, label_ids: dict[Any, int]
    ) -> int:
        """Read a held-out part; returns how many of its rows have a label that is known."""
        storage = self._storage_of(part)
        rows = _encoded(part, value, columns, label_ids, storage)
        if rows.n_sequences:
            self.held_out[number] = _placed(rows, columns, part.name, storage)[0]
        return int((rows.labels != UNKNOWN_LABEL).sum())

    def take_vocabulary(self, ids: npt.NDArray[np.int32]) -> None:
        """Give what parts have seen the ids of the vocabulary of all workers."""
        for number, own in self.own_ids.items():
            self.parts[number].events.rename(ids[own])
        self.own_ids = {}

    def numbers(self) -> Numbers:
        found = [numbers_in(rows.events) for rows in self.parts.values()]
        nothing = np.empty(0, np.int32)
        return Numbers(
            np.unique(np.concatenate([nothing, *(each.given for each in found)])),
            np.unique(np.concatenate([nothing, *(each.proper for each in found)])),
        )

    def tally(
        self, first_seen: npt.NDArray[np.int64], home: npt.NDArray[np.int64], n_keys: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        counts, displaced = np.zeros(len(home), np.int64), [np.empty(0, np.int64)]
        for rows in self.parts.values():
            if rows.n_sequences:
                of_part, lost = tally(rows.events, first_seen, home, n_keys)
                counts += of_part
                displaced.append(lost)
        return counts, np.unique(np.concatenate(displaced))

    def events_of(self, n_seen: int) -> npt.NDArray[np.int64]:
        found = [events_of(rows.events, n_seen) for rows in self.parts.values()]
        total: npt.NDArray[np.int64] = np.sum([np.zeros(n_seen, np.int64), *found], axis=0)
        return total

    def count_numbers(self, numeric: npt.NDArray[np.int32], n_seen: int) -> list[CountedValues]:
        found = [numbers_of_columns(rows.events, numeric, n_seen) for rows in self.parts.values()]
        return [merge_counts([each[d] for each in found]) for d in range(len(numeric))]

    def learn(self, learned: LearnedColumns, label_ids: dict[int, list[int]]) -> None:
        """Encode the parts by the columns. label_ids: ids of each part's labels."""
        for number, rows in self.parts.items():
            learned.rename(rows.events)
            ids = np.array([*label_ids[number], UNKNOWN_LABEL], np.int32)
            rows.labels = ids[rows.labels]

    def cut(self, number: int, before: Cut | None) -> Cut:
        """Find where chunks end in a part. before: of the part before it"""
        left = before.left if before else 0
        lengths = np.diff(self.parts[number].events.offsets).tolist()
        n_head, head_rows, in_head = 0, 0, left > 0
        for i, length in enumerate(lengths, 1):
            left += length
            if in_head:
                n_head, head_rows = i, head_rows + length
            if left >= CHUNK_ROWS:
                left, in_head = 0, False
        return Cut(n_head, head_rows, left)

    def head(self, number: int, n_head: int) -> PartRows:
        """The sequences of a part that end a chunk which began before."""
        return self.parts[number].some(0, n_head)

    def assemble(self, columns: Columns, spans: Sequence[Span], heads: dict[int, PartRows]) -> int:
        """Make these spans the rows of this worker; returns the most shared features of a row.

        heads: of parts that this worker has not read.
        """
        found, widest = [], 0
        at = {span.number: i for i, span in enumerate(self.spans)}
        starts = np.cumsum([0, *(span.n_sequences for span in self.spans)]).tolist()
        for span in spans:
            if span.number in at:
                assert self.data is not None
                i = at[span.number]
                found.append(self.data.part(starts[i], starts[i + 1]))
                continue
            pieces = []
            for piece in span.pieces:
                rows = self.parts.get(piece.part) or heads[piece.part]
                pieces.append(rows.some(piece.first, piece.last))
            storage = self.workers.storage
            placed, needed = _placed(join_rows(pieces), columns, "X", storage)
            found.append(placed)
            widest = max(widest, needed)
        self._shard = None
        self.data = join_sequences(found, self.workers.storage)
        self.spans = list(spans)
        self.parts = {}
        return widest

    def observed(self, n_labels: int) -> tuple[Bools, Bools, Bools]:
        """Which labels start, follow each other and end."""
        assert self.data is not None
        return observed_transitions(self.data.labels, self.data.offsets, n_labels)

    # Rounds.

    def begin(self, job: Job, potentials: Potentials) -> ShardTotals:
        """Score all rows by what was learned so far."""
        if self.data is None:
            raise StateLost("no rows")
        self._shard, self.outbox = None, {}
        numbers = [span.first_row + np.arange(span.n_rows) for span in self.spans]
        held_out = [self.held_out[number] for number in sorted(self.held_out)]
        self._shard = Shard(
            job,
            self.data,
            np.concatenate(numbers),
            join_sequences(held_out, self.workers.storage) if held_out else None,
            potentials,
            self.workers,
        )
        return self._shard.totals

    def residuals(self, edges: npt.NDArray[np.float32], bound: Bound | None) -> ResidualSums:
        return self.shard.residuals(edges, bound)

    def count_held_out(self, edges: npt.NDArray[np.float32]) -> HeldOutCounts | None:
        return self.shard.count_held_out(edges)

    def move(self, back: bool, step: Update) -> None:
        self.shard.move(back, step)

    def forget_linear(self) -> None:
        self.shard.forget_linear()

    def measure_linear(self) -> list[MagnitudeSums]:
        return self.shard.measure_linear()

    def sum_up_linear(self, n_owners: int, trimmed: Sequence[Trimming]) -> None:
        """Leave the sums of features for their owners: label k belongs to owner k % n_owners."""
        for owner in range(n_owners):
            labels = range(owner, len(trimmed), n_owners)
            sums = self.shard.sum_up_linear(labels, trimmed)
            self.outbox[owner] = [_sparse(each) for each in sums]

    def own_linear(
        self,
        owner: int,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        parts: list[Any],
        after: Any = None,
    ) -> list[Step]:
        """The Newton step of each of the owner's labels."""
        shard, columns = self.shard, self.shard.job.columns
        parts = [self.outbox.pop(owner), *parts]
        steps = []
        for i, label in enumerate(labels):
            total = _dense([part[i] for part in parts], len(columns.counts))
            weights = shard.linear
            step: Step = newton_step(
                total,
                trimmed[label].scales,
                columns.bin_values,
                weights.categorical[:, label].copy(),
                weights.numeric[:, label].copy(),
                shard.job.settings.ridge,
            )
            steps.append(step)
        return steps

    def bound_linear(self, direction: Direction) -> npt.NDArray[np.float64]:
        return self.shard.bound_linear(direction)

    def measure_trees(self, round_: int) -> list[MagnitudeSums]:
        return self.shard.measure_trees(round_)

    def grow(
        self,
        exchange: Exchange[Any],
        round_: int,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        n_owners: int,
        n_groups: int,
        careful: bool,
    ) -> Grown:
        """Grow the trees of some labels together with all other workers."""
        shard = self.shard
        limits = tree_limits(shard.job.settings)
        shard.start_trees(round_, labels, trimmed, 2 * room_of(limits) - 1)
        data = shard.grower.input
        bounds = owner_bounds(shard.job.columns.counts[: data.n_features], n_owners)
        try:
            growth = GrowingTogether(shard.trees, data, bounds, exchange, self.workers, careful)
            seed = round_seed(shard.job.settings.seed, round_)
            return growth.grow(labels, trimmed, limits, seed, n_groups)
        finally:
            shard.trees = []

    def outgoing(self, owner: int, after: Any = None) -> list[Any]:
        """What this worker has left for an owner. after: the task that left it."""
        return self.outbox.pop(owner)


def _encoded(
    part: Part, value: Any, columns: Columns, label_ids: dict[Any, int], storage: RowStorage
) -> PartRows:
    """A part by the ids of columns; labels that are not known count as not annotated."""
    X, y = part.read(value)
    with naming(part.name):
        events = columns.read(X, storage=storage)
    flat = [label_ids.get(label, UNKNOWN_LABEL) for labels in y for label in labels]
    return PartRows(events, np.array(flat, np.int32))


def _placed(
    rows: PartRows, columns: Columns, name: str, storage: RowStorage
) -> tuple[Sequences, int]:
    """The rows as sequences, and the most shared features of a row."""
    encoded, widest = columns.place(rows.events, 0, name, storage=storage)
    weights = np.ones(len(rows.labels), np.float32)
    return Sequences(*encoded, rows.labels, weights), widest


def _sparse(found: FeatureSums) -> SparseSums:
    features = np.flatnonzero(found.categorical.any(axis=1))
    return SparseSums(features, found.categorical[features], found.bins)


def _dense(parts: Sequence[SparseSums], n_features: int) -> FeatureSums:
    total = FeatureSums(np.zeros((n_features, 2)), np.zeros_like(parts[0].bins))
    for part in parts:
        total.categorical[part.features] += part.sums
        total.bins[:] += part.bins
    return total
