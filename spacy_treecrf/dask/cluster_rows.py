"""The rows of all parts on the workers of a cluster: how they get there, and who has which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from distributed import Future

from spacy_treecrf.dask.cluster_tallies import ClusterTallies
from spacy_treecrf.dask.crew import Crew, WorkersLost
from spacy_treecrf.dask.parts import Part
from spacy_treecrf.dask.vocabulary import PartSummary, Vocabulary
from spacy_treecrf.dask.worker_state import Cut, Piece, Span
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.constraints import Bools
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import LearnedColumns, learn_columns
from spacy_treecrf.engine.encoding.missing_methods import INDICATOR
from spacy_treecrf.estimators.checking import distinct_labels


@dataclass(frozen=True)
class Encoding:
    """What is learned from all parts before the first round."""

    columns: Columns
    classes: list[Any]  # labels, as strings or integers

    @property
    def label_ids(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.classes)}


class PlacedRows(Protocol):
    """Rows that workers have, as boosting sees them. held_out: parts, also on workers"""

    crew: Crew
    held_out: Sequence[Any]

    def has_joined(self) -> bool:
        """Whether there are new workers that could take over rows."""
        ...

    def settle(self, encoding: Encoding) -> None:
        """Let the workers that are there have all rows."""


class ClusterRows:
    """The parts of a training, and the spans of whole chunks that workers have of them."""

    def __init__(self, crew: Crew, parts: Sequence[Part], held_out: Sequence[Part]) -> None:
        self.crew = crew
        self.held_out: Sequence[Any] = held_out
        self.has: dict[str, list[int]] = {}  # numbers of the spans that each worker has
        self.spans: dict[int, Span] = {}
        self.n_rows = self.n_sequences = 0
        self._known: set[str] = set()
        n_shares = -(-max(1, len(crew.present())) // len(parts))
        self.parts = [share for part in parts for share in part.shares(n_shares)]

    def learn(self, settings: Settings) -> Encoding:
        """Read all parts, learn their columns and labels, and leave the rows on workers."""
        while True:
            try:
                return self._learn(settings)
            except WorkersLost:
                continue

    def encode(self, encoding: Encoding) -> None:
        """Read all parts by columns that are known, and leave the rows on workers."""
        while True:
            try:
                homes = self._start()
                shared = self.crew.share(encoding.columns), encoding.label_ids
                sizes = self._read_parts(homes, "encode", *shared)
                self._place(homes, sizes, encoding.columns)
                return self._read_held_out(encoding)
            except WorkersLost:
                continue

    def _learn(self, settings: Settings) -> Encoding:
        crew, indicator = self.crew, settings.missing == INDICATOR
        homes = self._start()
        summaries: list[PartSummary] = self._read_parts(homes, "scan", indicator)
        classes = _classes([summary.labels for summary in summaries])
        vocabulary = Vocabulary(indicator)
        members = list(dict.fromkeys(homes))  # in the order of their parts
        merging = [crew.submit(member, "merge_seen", indicator) for member in members]
        ids = [vocabulary.merge(seen) for seen in crew.collect(merging)]
        told = zip(members, ids, strict=True)
        crew.collect([crew.submit(member, "take_vocabulary", own) for member, own in told])
        learned = learn_columns(
            vocabulary.ids,
            vocabulary.n_seen,
            ClusterTallies(crew, sum(summary.n_rows for summary in summaries)),
            min_count=settings.min_count,
            max_bins=settings.max_bins,
            missing=settings.missing,
        )
        encoding = Encoding(learned.columns, classes)
        label_ids = encoding.label_ids
        of_parts = {
            number: [label_ids[label] for label in summary.labels]
            for number, summary in enumerate(summaries)
        }
        self._learn_columns(homes, learned, of_parts)
        sizes = [(summary.n_rows, summary.n_sequences) for summary in summaries]
        widest = self._place(homes, sizes, learned.columns)
        encoding = replace(encoding, columns=replace(learned.columns, n_shared_slots=widest))
        self._read_held_out(encoding)
        return encoding

    def observed(self, n_labels: int) -> tuple[Bools, Bools, Bools]:
        """Which labels start, follow each other and end in all rows."""
        found = self.crew.each("observed", n_labels)
        start, trans, end = (np.logical_or.reduce(masks) for masks in zip(*found, strict=True))
        return start, trans, end

    def has_joined(self) -> bool:
        """Whether there are new workers that could take over rows."""
        new = set(self.crew.present()) - self._known
        return bool(new) and len(self.spans) > len(self.crew.members)

    def settle(self, encoding: Encoding) -> None:
        """Let the workers that are there have all rows: what was lost is read again."""
        while True:
            try:
                return self._settle(encoding)
            except WorkersLost:
                continue

    def _start(self) -> list[str]:
        """The workers that are there, without rows; returns one for each part."""
        crew = self.crew
        crew.settle()
        self._known = set(crew.members)
        crew.each("reset")
        n_parts, members = len(self.parts), crew.members
        homes = [members[i * len(members) // n_parts] for i in range(n_parts)]
        crew.members = sorted(set(homes))
        return homes

    def _read_parts(self, homes: Sequence[str], method: str, *args: Any) -> list[Any]:
        tasks = [
            self.crew.submit_part(home, method, number, part, *args)
            for number, (home, part) in enumerate(zip(homes, self.parts, strict=True))
        ]
        return self.crew.collect_parts(tasks, [part.name for part in self.parts])

    def _learn_columns(
        self, homes: Sequence[str], learned: LearnedColumns, label_ids: dict[int, list[int]]
    ) -> None:
        shared = self.crew.share(learned)
        tasks = []
        for member in self.crew.members:
            own = {number: label_ids[number] for number, at in enumerate(homes) if at == member}
            tasks.append(self.crew.submit(member, "learn", shared, own))
        self.crew.collect(tasks)

    def _place(
        self, homes: Sequence[str], sizes: Sequence[tuple[int, int]], columns: Columns
    ) -> int:
        """Cut all rows into spans and place them; returns the most shared features of a row.

        sizes: rows and sequences of each part.
        """
        crew = self.crew
        chain: list[Future] = []
        for number, home in enumerate(homes):
            chain.append(crew.submit(home, "cut", number, chain[-1] if chain else None))
        cuts: list[Cut] = crew.collect(chain)
        spans = _spans(sizes, cuts)
        self.spans = {span.number: span for span in spans}
        self.n_rows, self.n_sequences = (sum(column) for column in zip(*sizes, strict=True))
        self.has = {}
        for span in spans:
            self.has.setdefault(homes[span.number], []).append(span.number)
        shared, tasks = crew.share(columns), []
        for member, numbers in self.has.items():
            own = [self.spans[number] for number in numbers]
            parts = {piece.part for span in own for piece in span.pieces}
            away = [part for part in sorted(parts) if homes[part] != member]
            heads = {
                part: crew.submit(homes[part], "head", part, cuts[part].n_head) for part in away
            }
            tasks.append((member, own, heads))
        crew.collect([head for _, _, heads in tasks for head in heads.values()])
        crew.members = sorted(self.has)
        widest: list[int] = crew.collect(
            [crew.submit(member, "assemble", shared, own, heads) for member, own, heads in tasks]
        )
        return max(widest)

    def _read_held_out(self, encoding: Encoding) -> None:
        if not self.held_out:
            return
        members = self.crew.members
        shared = self.crew.share(encoding.columns)
        tasks = [
            self.crew.submit_part(
                members[number % len(members)],
                "encode_held_out",
                number,
                part,
                shared,
                encoding.label_ids,
            )
            for number, part in enumerate(self.held_out)
        ]
        known = self.crew.collect_parts(tasks, [part.name for part in self.held_out])
        if not sum(known):
            raise ValueError(
                "treecrf: the held-out parts hold no label that occurs in the training data; "
                "annotate them with its labels"
            )

    def _settle(self, encoding: Encoding) -> None:
        crew = self.crew
        found = crew.settle()
        self._known = set(crew.members)
        has = {member: list(spans) for member, (spans, _) in found.items()}
        n_rows = {number: span.n_rows for number, span in self.spans.items()}
        wanted = share_out({member: list(own) for member, own in has.items()}, n_rows)
        self.has = {member: sorted(own) for member, own in wanted.items() if own}
        crew.members = sorted(self.has)
        shared, ids = crew.share(encoding.columns), encoding.label_ids
        tasks = []
        for member, own in self.has.items():
            new = [self.spans[number] for number in own if number not in has[member]]
            for number in sorted({piece.part for span in new for piece in span.pieces}):
                part = self.parts[number]
                tasks.append(crew.submit_part(member, "encode", number, part, shared, ids))
        crew.collect(tasks)
        changed = [member for member, own in self.has.items() if own != sorted(has[member])]
        spans = {member: [self.spans[n] for n in self.has[member]] for member in changed}
        crew.collect(
            [crew.submit(member, "assemble", shared, spans[member], {}) for member in changed]
        )
        present = {number for member in crew.members for number in found[member][1]}
        self._read_lost_held_out(present, shared, ids)

    def _read_lost_held_out(self, present: set[int], shared: Future, ids: dict[Any, int]) -> None:
        members = self.crew.members
        lost = [number for number in range(len(self.held_out)) if number not in present]
        self.crew.collect(
            [
                self.crew.submit_part(
                    members[number % len(members)],
                    "encode_held_out",
                    number,
                    self.held_out[number],
                    shared,
                    ids,
                )
                for number in lost
            ]
        )


def _classes(by_part: list[list[Any]]) -> list[Any]:
    """The labels of all parts, sorted."""
    kinds = {isinstance(label, str): label for labels in by_part for label in labels}
    if len(kinds) > 1:
        raise ValueError(
            f"treecrf: some parts have labels that are strings, as {kinds[True]!r}, others have "
            f"integers, as {kinds[False]!r}; use one type"
        )
    return list(distinct_labels(by_part))


def _spans(sizes: Sequence[tuple[int, int]], cuts: Sequence[Cut]) -> list[Span]:
    """The whole chunks that begin in each part, where some do."""
    spans, first_row = [], 0
    for number, ((n_rows, n_sequences), cut) in enumerate(zip(sizes, cuts, strict=True)):
        if cut.n_head < n_sequences:
            pieces = [Piece(number, cut.n_head, n_sequences)]
            n_own = n_rows - cut.head_rows
            following, goes_on = number + 1, cut.left > 0
            while goes_on and following < len(cuts):
                head = cuts[following]
                if head.n_head:
                    pieces.append(Piece(following, 0, head.n_head))
                    n_own += head.head_rows
                # A part that is all head may leave the chunk open for the next one.
                goes_on = head.n_head == sizes[following][1] and head.left > 0
                following += 1
            count = sum(piece.last - piece.first for piece in pieces)
            start = first_row + cut.head_rows
            spans.append(Span(number, start, n_own, count, tuple(pieces)))
        first_row += n_rows
    return spans


def share_out(has: dict[str, list[int]], n_rows: dict[int, int]) -> dict[str, list[int]]:
    """Which spans each worker is to have, given which it has: lost ones go to those with least.

    Workers that have none take some over from those with most. A span that two have, because
    workers were lost while it moved, stays with the first of them.
    """
    seen: set[int] = set()
    for member in sorted(has):
        has[member] = [number for number in has[member] if number not in seen]
        seen.update(has[member])
    load = {member: sum(n_rows[number] for number in own) for member, own in has.items()}

    def give(number: int, member: str) -> None:
        has[member].append(number)
        load[member] += n_rows[number]

    held = {number for own in has.values() for number in own}
    for number in sorted(set(n_rows) - held):
        give(number, min(sorted(load), key=load.__getitem__))
    fair = sum(n_rows.values()) / len(has)
    for member in sorted(member for member, own in has.items() if not own):
        while load[member] < 0.75 * fair:
            most = max(sorted(load), key=load.__getitem__)
            if len(has[most]) < 2 or load[most] <= fair:
                break
            number = has[most].pop()
            load[most] -= n_rows[number]
            give(number, member)
    return has
