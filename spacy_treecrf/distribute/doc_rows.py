"""The docs of all parts on the workers of a cluster, and their rows once they are encoded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.cluster_rows import Encoding
from spacy_treecrf.dask.crew import Crew, WorkersLost
from spacy_treecrf.dask.worker_state import Span
from spacy_treecrf.distribute.doc_state import DocSummary, EncodedPart
from spacy_treecrf.distribute.plan import DocPart, Site
from spacy_treecrf.engine.chain.constraints import Bools
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import CHUNK_ROWS, cut_sequences
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.fitting import ColumnLimits, columns_of
from spacy_treecrf.features.tallying import (
    NumberTally,
    PartTally,
    merged,
    merged_numbers,
    sample_step,
)

Int64s = npt.NDArray[np.int64]
Result = TypeVar("Result")


class DocRows:
    """The docs of a training. Each step is done again from the files if workers are lost.

    seed: That of the config, by which spaCy would shuffle the docs.
    """

    held_out: Sequence[Any] = ()  # docs to evaluate are read by the driver

    def __init__(self, crew: Crew, site: Site, parts: Sequence[DocPart], seed: int | None) -> None:
        self.crew, self.site = crew, site
        n_shares = -(-max(1, len(crew.present())) // len(parts))
        self.parts = [share for part in parts for share in part.shares(n_shares)]
        self.n_rows = self.n_sequences = 0
        self.label_names: list[str] = []
        self.word = ""  # some word of the docs
        self.lengths: list[Int64s] = []  # tokens of each doc, by part
        self._strings: set[str] = set()
        self._homes: list[str] = []
        self._known: set[str] = set()
        self._features: dict[str, Any] | None = None
        self._annotated: int | None = None  # sequences after other pipes have annotated
        self._seed = seed

    # Steps before the first round.

    def read(self) -> None:
        """Read all parts."""
        self._surely(lambda: None)

    @property
    def n_tokens(self) -> int:
        return sum(int(part.sum()) for part in self.lengths)

    @property
    def in_files(self) -> list[Int64s]:
        """The first token of each doc, by part, where docs come as in the files."""
        return self._starts(np.arange(sum(map(len, self.lengths))))

    @property
    def in_training(self) -> list[Int64s]:
        """The same where docs come as the first step of spaCy's training has them."""
        return self._starts(self._training_order())

    def learn_features(self, features: Extractor, sequence: str, starts: list[Int64s]) -> None:
        """Let the driver's features learn from all docs, and those of workers be the same."""

        def learn() -> dict[str, Any]:
            found = self._each_part("lessons", lambda _: (sequence,))
            lessons = [lesson for part in found for lesson in part]
            order = np.argsort(np.concatenate(starts), kind="stable")
            features.learn_lessons([lessons[i] for i in order.tolist()])
            state = features.to_state()
            self.crew.each("take_features", state)
            return state

        self._features = self._surely(learn)

    def fit_columns(
        self,
        features: Extractor,
        limits: ColumnLimits,
        sequence: str,
        starts: list[Int64s],
        references: bool,
    ) -> tuple[Columns, int]:
        """The columns of all docs, and their number of sequences.

        references: whether those of the annotated docs.
        """

        def fit() -> tuple[Columns, int]:
            found: list[tuple[PartTally, int]] = self._each_part(
                "tally_docs", lambda number: (starts[number], sequence, references)
            )
            parts = [tally for tally, _ in found]
            tally = merged(parts)
            numbers = [
                {name: self._numbers(parts, starts, which, name) for name in source.numbers}
                for which, source in enumerate(tally.sources)
            ]
            self.crew.each("end_tallies")
            columns = columns_of(tally, numbers, features.sources, features.bins_of, limits)
            return columns, sum(n_sequences for _, n_sequences in found)

        return self._surely(fit)

    def observed(self, labels: Sequence[str], sequence: str) -> tuple[Bools, Bools, Bools]:
        """Which labels start, follow each other and end in all docs."""
        found = self._surely(
            lambda: self._each_part("observed_in_docs", lambda _: (labels, sequence))
        )
        start, trans, end = (np.logical_or.reduce(masks) for masks in zip(*found, strict=True))
        return start, trans, end

    def annotate(self) -> int:
        """Let other pipes annotate all docs; returns the number of sequences."""
        self._surely(self._annotate)
        assert self._annotated is not None
        return self._annotated

    def new_strings(self) -> list[str]:
        """All strings that the workers' pipelines have met, the first time that it is asked."""
        found, self._strings = self._strings, set()
        return sorted(found)

    def encode(self, encoding: Encoding) -> None:
        """Encode all docs, and give each worker rows that follow each other in training."""
        self._surely(lambda: self._encode(encoding))

    # What boosting asks for.

    def has_joined(self) -> bool:
        """Whether there are new workers that could take over rows."""
        new = set(self.crew.present()) - self._known
        return bool(new) and self.n_rows > CHUNK_ROWS * len(self.crew.members)

    def settle(self, encoding: Encoding) -> None:
        """Let the workers that are there have all rows: all parts are read again."""
        self._homes = []
        self.encode(encoding)

    def _surely(self, work: Callable[[], Result]) -> Result:
        while True:
            try:
                if not self._homes:
                    self._restore()
                return work()
            except WorkersLost:
                self._homes = []

    def _restore(self) -> None:
        """Read all parts, and bring them to where they were."""
        crew = self.crew
        crew.settle()
        self._known = set(crew.members)
        crew.each("reset")
        n_parts, members = len(self.parts), crew.members
        homes = [members[i * len(members) // n_parts] for i in range(n_parts)]
        crew.members = sorted(set(homes))
        self._homes = homes
        found: list[DocSummary] = self._each_part("read_docs", lambda n: (self.parts[n], self.site))
        self.lengths = [summary.lengths for summary in found]
        self.label_names = sorted({name for summary in found for name in summary.labels})
        self.word = next((summary.word for summary in found if summary.word), "")
        if self._features is not None:
            crew.each("take_features", self._features)
        if self._annotated is not None:
            self._annotate()

    def _annotate(self) -> None:
        self._annotated = sum(self._each_part("annotate", lambda _: ()))

    def _each_part(self, method: str, args_of: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        crew = self.crew
        return crew.collect(
            [
                crew.submit(home, method, number, *args_of(number))
                for number, home in enumerate(self._homes)
            ]
        )

    def _training_order(self) -> Int64s:
        """The docs as spaCy shuffles them, those of equal length by their place."""
        lengths = np.concatenate(self.lengths)
        order = list(range(len(lengths)))
        random.Random(self._seed).shuffle(order)
        shuffled = np.array(order, np.int64)
        return shuffled[np.argsort(lengths[shuffled], kind="stable")]

    def _starts(self, order: Int64s) -> list[Int64s]:
        lengths = np.concatenate(self.lengths)
        starts = np.empty(len(lengths), np.int64)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        return self._by_part(starts)

    def _by_part(self, of_docs: Int64s) -> list[Int64s]:
        return np.split(of_docs, np.cumsum([len(part) for part in self.lengths])[:-1])

    def _numbers(
        self, parts: Sequence[PartTally], starts: list[Int64s], source: int, name: str
    ) -> NumberTally:
        """The numbers of a column of all parts."""
        # The docs of a part were counted in the order of their starts.
        known = [
            tally.sources[source].known.get(name, np.zeros(len(own), np.int64))
            if tally.n_tokens
            else np.zeros(len(own), np.int64)
            for tally, own in zip(parts, starts, strict=True)
        ]
        together = np.concatenate(known)
        order = np.argsort(np.concatenate([np.sort(own) for own in starts]), kind="stable")
        before = np.empty(len(together), np.int64)
        before[order] = np.cumsum(together[order]) - together[order]
        step, of_parts = sample_step(int(together.sum())), self._by_part(before)
        found = self._each_part("tally_numbers", lambda n: (source, name, of_parts[n], step))
        return merged_numbers([each for each in found if each is not None])

    def _encode(self, encoding: Encoding) -> None:
        crew = self.crew
        shared, labels = crew.share(encoding.columns), encoding.classes
        encoded: list[EncodedPart] = self._each_part("encode_docs", lambda _: (shared, labels))
        self._strings = {string for some in crew.each("strings") for string in some}
        order, part_of, number_of, lengths = self._sequences(encoded)
        offsets = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)
        self.n_rows, self.n_sequences = int(offsets[-1]), len(order)
        if not self.n_rows:
            return
        chunks = cut_sequences(offsets, CHUNK_ROWS)
        takers = crew.members[: len(chunks)]
        tasks = []
        for i, taker in enumerate(takers):
            first = chunks[len(chunks) * i // len(takers)][0]
            last = chunks[len(chunks) * (i + 1) // len(takers) - 1][1]
            rows = int(offsets[first]), int(offsets[last] - offsets[first])
            span = Span(i, *rows, last - first, ())
            own = order[first:last]
            found, places = self._ask_for(own, part_of, number_of)
            tasks.append(crew.submit(taker, "take_rows", span, np.argsort(places), found))
        crew.collect(tasks)
        crew.each("end_reading")
        crew.members = sorted(takers)

    def _sequences(self, encoded: Sequence[EncodedPart]) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """All sequences: their order in training, and of each its part, its number, its length."""
        per_doc = np.concatenate([part.n_sequences for part in encoded])
        lengths = np.concatenate([part.lengths for part in encoded])
        sizes = [len(part.lengths) for part in encoded]
        part_of = np.repeat(np.arange(len(encoded)), sizes)
        number_of = np.concatenate([np.arange(size) for size in sizes])
        docs = np.repeat(np.arange(len(per_doc)), per_doc)
        place = np.empty(len(per_doc), np.int64)
        place[self._training_order()] = np.arange(len(per_doc))
        return np.argsort(place[docs], kind="stable"), part_of, number_of, lengths

    def _ask_for(
        self, wanted: Int64s, part_of: Int64s, number_of: Int64s
    ) -> tuple[list[Any], Int64s]:
        """Tasks that give the wanted sequences, and the place of each one that they give."""
        tasks, places = [], [np.empty(0, np.int64)]
        for member in self.crew.members:
            picks: dict[int, Int64s] = {}
            for part in [part for part, home in enumerate(self._homes) if home == member]:
                own = np.flatnonzero(part_of[wanted] == part)
                if len(own):
                    picks[part] = number_of[wanted[own]]
                    places.append(own)
            if picks:
                tasks.append(self.crew.submit(member, "some_rows", picks))
        return tasks, np.concatenate(places)
