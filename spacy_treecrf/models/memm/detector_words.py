"""A learned detector in words: the strongest paths through its trees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.future.detectors import Detector
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF
from spacy_treecrf.models.memm.settings import FutureSettings

LEAST_PROBABILITY = 0.5  # paths below it are not named, unless there is no other


@dataclass(frozen=True)
class _Path:
    """The tests that lead to a leaf, and the score that all trees give to a row passing them."""

    present: frozenset[int]  # features
    absent: frozenset[int]
    bins: tuple[tuple[int, int, int], ...]  # numeric column, above this bin, up to that one
    score: float  # G of Hao 2009, section 5.3


def describe_detector(
    detector: Detector, columns: Columns, label: str, settings: FutureSettings, paths: int
) -> str:
    """A sentence such as "a letter y (p = 0.98) within the next 4 speaks for '1'"."""
    found = _strongest(detector)
    likely = [path for path in found if _sigmoid(path.score) >= LEAST_PROBABILITY] or found[:1]
    patterns = [
        f"{_pattern(path, columns)} (p = {_sigmoid(path.score):.2f})" for path in likely[:paths]
    ]
    more = len(likely) - len(patterns)
    if more:
        patterns.append(f"{more} further pattern{'s' if more > 1 else ''}")
    some = ", ".join(patterns[:-1]) + " or " + patterns[-1] if len(patterns) > 1 else patterns[0]
    if settings.right_to_left:
        where = "anywhere before" if settings.bag is None else f"within the {settings.bag} before"
    else:
        where = "anywhere after" if settings.bag is None else f"within the next {settings.bag}"
    return f"{some} {where} speaks for {label!r}"


def _strongest(detector: Detector) -> list[_Path]:
    """The paths of all trees, those of the highest scores first.

    The score is that of a row which has the features of a path and no others. Conditions of trees
    overlap: among paths with the same features, the one with most tests is kept.
    """
    forest = detector.forest
    by_features: dict[tuple[frozenset[int], tuple[tuple[int, int, int], ...]], _Path] = {}
    for tree in range(forest.n_trees):
        for present, absent, bins in _tests(forest, tree):
            score = detector.start + _score(forest, present, {c: b for c, b, _ in bins})
            path = _Path(present, absent, bins, score)
            known = by_features.get((present, bins))
            if known is None or len(absent) > len(known.absent):
                by_features[present, bins] = path
    return sorted(
        by_features.values(),
        key=lambda path: (-path.score, len(path.present) + len(path.absent), sorted(path.present)),
    )


def _tests(
    forest: Forest, tree: int
) -> Iterator[tuple[frozenset[int], frozenset[int], tuple[tuple[int, int, int], ...]]]:
    """The tests on the way to every leaf: features present, features absent, ranges of bins."""
    first = int(forest.tree_first[tree])
    open_: list[tuple[int, frozenset[int], frozenset[int], dict[int, tuple[int, int]]]] = [
        (first, frozenset(), frozenset(), {})
    ]
    while open_:
        node, present, absent, ranges = open_.pop()
        if forest.kind[node] == LEAF:
            bins = tuple((c, low, high) for c, (low, high) in sorted(ranges.items()))
            yield present, absent, bins
            continue
        test, cut = int(forest.feature[node]), int(forest.threshold[node])
        left, right = first + int(forest.left[node]), first + int(forest.right[node])
        if forest.kind[node] == CATEGORICAL:
            open_.append((left, present, absent | {test}, ranges))
            open_.append((right, present | {test}, absent, ranges))
        else:
            low, high = ranges.get(test, (-1, 255))
            open_.append((left, present, absent, {**ranges, test: (low, min(high, cut))}))
            open_.append((right, present, absent, {**ranges, test: (max(low, cut), high)}))


def _score(forest: Forest, present: frozenset[int], above: dict[int, int]) -> float:
    """The sum over all trees for a row with these features, in the bin after each that is given."""
    total = 0.0
    for tree in range(forest.n_trees):
        first = node = int(forest.tree_first[tree])
        while forest.kind[node] != LEAF:
            test = int(forest.feature[node])
            if forest.kind[node] == CATEGORICAL:
                holds = test in present
            else:
                holds = above.get(test, -1) + 1 > forest.threshold[node]
            node = first + int((forest.right if holds else forest.left)[node])
        total += float(forest.value[node])
    return total


def _pattern(path: _Path, columns: Columns) -> str:
    """A path in words: "a letter y", "x1 and x2 without x3", "none of x1, x2", "size above 3.5"."""
    words = [_named(columns.feature_names[f]) for f in sorted(path.present)]
    for column, low, high in path.bins:
        words.append(_range(columns, column, low, high))
    # A column that has one value is known not to have the others.
    decided = {int(columns.column_of[f]) for f in path.present}
    without = [
        columns.feature_names[f].replace("=", " ")
        for f in sorted(path.absent)
        if int(columns.column_of[f]) not in decided
    ]
    some = " and ".join(words)
    if not without:
        return some or "anything"
    if not some:
        return f"no {without[0]}" if len(without) == 1 else f"none of {', '.join(without)}"
    return f"{some} without {', '.join(without)}"


def _named(feature: str) -> str:
    """The feature "letter=y" as "a letter y"; a feature without a value by its name."""
    key, equals, value = feature.partition("=")
    if not equals:
        return feature
    return f"{'an' if key[:1].lower() in 'aeiou' else 'a'} {key} {value}"


def _range(columns: Columns, column: int, low: int, high: int) -> str:
    name = columns.numeric_names[column]
    edges = columns.bin_edges[column]
    # bin b holds values above edges[b - 2] up to edges[b - 1]; bin 0 is "missing"
    parts = []
    if low >= 1 and low - 1 < len(edges):
        parts.append(f"above {edges[low - 1]:g}")
    if 1 <= high <= len(edges):
        parts.append(f"up to {edges[high - 1]:g}")
    if high == 0:
        parts.append("missing")
    return f"{name} {' and '.join(parts) or 'given'}"


def _sigmoid(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, score))))
