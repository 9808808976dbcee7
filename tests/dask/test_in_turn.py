"""Works that take turns: all workers see the same values, and none waits while it could work."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from distributed import Client, Scheduler, SpecCluster, Worker

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF
from spacy_treecrf.dask.growing_together import groups_of, in_turn
from tests.dask.cluster_data import cut, make_data, stored


class Letters:
    """The mail of several workers that run one after the other, each until it has to wait."""

    def __init__(self, n_workers: int) -> None:
        self.boxes: list[list[deque[Any]]] = [
            [deque() for _ in range(n_workers)] for _ in range(n_workers)
        ]


class Desk:
    """One worker's exchange; notes what it does."""

    def __init__(self, letters: Letters, me: int, notes: list[str]) -> None:
        self.letters, self.me, self.notes = letters, me, notes

    def send(self, outgoing: Sequence[Any]) -> int:
        for peer, value in enumerate(outgoing):
            self.letters.boxes[peer][self.me].append(value)
        self.notes.append("send")
        return len(self.notes)

    def take(self, sent: int) -> list[Any]:
        self.notes.append("take")
        return [box.popleft() for box in self.letters.boxes[self.me]]


def summing(name: str, values: Sequence[int], notes: list[str], n_workers: int = 1):
    """Gives all workers its value of each step; returns the sums of what came."""
    sums = []
    for value in values:
        notes.append(name)
        sums.append(sum((yield [value] * n_workers)))
    return name, sums


def test_works_of_different_lengths_return_what_they_would_alone() -> None:
    letters = Letters(2)
    # What the other worker sends, in the order in which it sends: a, b, a, b, then b alone.
    for value in (10, 20, 11, 21, 22):
        letters.boxes[0][1].append(value)
    notes: list[str] = []
    works = [summing("a", [1, 2], notes, 2), summing("b", [3, 4, 5], notes, 2)]
    found = in_turn(works, Desk(letters, 0, notes))
    assert found == [("a", [11, 13]), ("b", [23, 25, 27])]


def test_all_works_have_mail_under_way_before_one_waits() -> None:
    letters, notes = Letters(1), []
    in_turn([summing("a", [1], notes), summing("b", [1], notes)], Desk(letters, 0, notes))
    assert notes == ["a", "send", "b", "send", "take", "take"]


def test_a_failure_of_one_work_ends_all() -> None:
    def failing():
        yield [0]
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        in_turn([failing(), summing("b", [1], [])], Desk(Letters(1), 0, []))


@pytest.mark.parametrize(
    ("n_trees", "n_workers", "threads", "expected"),
    [
        (22, 1, 1, 1),  # nobody to wait for
        (22, 2, 1, 2),
        (5, 3, 2, 2),
        (5, 3, 4, 1),  # a group has work for all threads
        (1, 2, 1, 1),
        (2, 2, 8, 1),
    ],
)
def test_groups_have_work_for_all_threads(n_trees, n_workers, threads, expected) -> None:
    assert groups_of(n_trees, n_workers, threads) == expected


@pytest.mark.slow
def test_workers_of_different_numbers_of_threads_learn_the_same() -> None:
    data = make_data(700)  # of five labels: two groups for one thread, one for four
    settings = {"rounds": 3, "linear_rounds": 1, "leaves": 6, "family": "separate"}
    workers = {
        number: {"cls": Worker, "options": {"nthreads": threads}}
        for number, threads in enumerate((1, 4))
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as client:
        found = DaskBoostedCRF(client, **settings).fit(cut(data, 350))
    assert stored(found.to_local()) == stored(BoostedCRF(**settings).fit(*data))
