"""Folds of annotated units, which are sequences or docs, for calibration by cross-fitting.

To cross-fit is to let each part of the training data be judged by a model of the other parts. What
is wrong with these models is wrong with the model of all parts, which then needs no held-out data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from numbers import Integral

# Numbers of units to learn from, and of those to judge.
Fold = tuple[list[int], list[int]]
Names = AbstractSet[Hashable]


def check_folds(folds: object, n: int, units: str) -> None:
    """Refuse a number of folds into which n units cannot be cut. units: What these are called."""
    if n < 2:
        found = "is 1" if n else "are none"
        raise ValueError(
            f"treecrf: folds need two or more {units}, and there {found}; pass more of them"
        )
    if not (isinstance(folds, Integral) and 2 <= int(folds) <= n):
        raise ValueError(
            f"treecrf: folds is {folds!r}, and there are {n} {units}; use an integer from 2 to {n}"
        )


def cut_into_folds(n: int, folds: int, names: Sequence[Names] | None = None) -> list[Fold]:
    """Folds of units that follow each other; each is judged by what is learned from the others.

    names: Those of each unit. What has one in common with the judged fold is not learned from.
    """
    folds = int(folds)  # small integers of numpy cannot hold the products
    bounds = [n * k // folds for k in range(folds + 1)]
    found = []
    for first, last in pairwise(bounds):
        held = range(first, last)
        known = [i for i in range(n) if i not in held]
        if names is not None:
            of_held = set[Hashable]().union(*(names[i] for i in held))
            known = [i for i in known if not names[i] & of_held]
        found.append((known, [*held]))
    return found


def names_of(units: Sequence[Iterable[tuple[Hashable, bool]]]) -> list[set[Hashable]]:
    """The names of each unit: words in its spans that are more often in spans than not.

    units: The words of each, and whether a span holds them.
    """
    inside: Counter[Hashable] = Counter()
    anywhere: Counter[Hashable] = Counter()
    of_units = []
    for pairs in units:
        own = set()
        for word, in_span in pairs:
            anywhere[word] += 1
            if in_span:
                inside[word] += 1
                own.add(word)
        of_units.append(own)
    return [{word for word in own if 2 * inside[word] > anywhere[word]} for own in of_units]
