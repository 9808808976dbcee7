"""Contributions of trees, against the enumeration of all sets of columns on learned trees."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.engine.sequences import MISSING, MISSING_BIN, Sequences
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF, NUMERIC
from spacy_treecrf.models.crf import CRF
from tests.explain.kinds import X, fitted

KINDS = [
    "crf separate",
    "crf joint order 2",
    "crf conjugate joint",
    "crf average",
    "crf instance_weighting",
    "crf joint surrogate",
]
LONG = max(X, key=len)
# A row that lacks a word, the number, and the flag of others.
GAPS: list[Any] = [dict(item) for item in LONG]
GAPS[2] |= {"word": None, "size": None, "before": "w1"}


class Game:
    """What the trees of one label say of a row, for each set of columns that is known."""

    def __init__(self, model: CRF, x: list[Any], t: int, previous: list[int], label: int) -> None:
        self.columns = model.columns
        data = Sequences.unlabelled(*model.columns.encode([x]))
        self.cells = data.feature_ids[t].tolist()
        self.bins = data.numeric[t].tolist()
        self.previous = previous
        self.averages = model.settings.missing == "instance_weighting"
        forest = model.potentials.forest
        self.forest = forest.select(forest.tree_class == label)
        inner = np.flatnonzero(self.forest.kind != LEAF).tolist()
        self.players = sorted({self.player(node) for node in inner})

    def player(self, node: int) -> str:
        columns, feature = self.columns, int(self.forest.feature[node])
        if self.forest.kind[node] == NUMERIC:
            return columns.numeric_names[feature]
        if self.forest.kind[node] != CATEGORICAL:
            return f"label[-{feature + 1}]"
        name = columns.column_names[int(columns.column_of[feature])]
        # values of a text exclude each other, features of a list do not
        single = name in columns.slot_keys
        own = single and columns.slot_range[feature, 0] == columns.slot_keys.index(name)
        return name if own else columns.feature_names[feature]

    def lacks(self, kind: int, feature: int) -> bool:
        branches = self.forest.missing_branches
        if branches is None:
            return False
        if kind == NUMERIC:
            return bool(self.bins[feature] == MISSING_BIN)
        slot = int(self.columns.slot_range[feature, 0])
        return slot < len(self.columns.slot_keys) and self.cells[slot] == MISSING

    def share(self, node: int) -> float:
        """How much of the row goes right."""
        forest = self.forest
        kind, feature = int(forest.kind[node]), int(forest.feature[node])
        if kind not in (CATEGORICAL, NUMERIC):
            return float(self.previous[feature] == forest.threshold[node])
        if not self.lacks(kind, feature):
            return float(self.holds(kind, feature, int(forest.threshold[node])))
        branches = forest.missing_branches
        assert branches is not None
        if self.averages:
            return float(branches.right_share[node])
        for s in range(branches.first[node], branches.first[node + 1]):
            test = int(branches.kind[s]), int(branches.feature[s])
            if not self.lacks(*test):
                holds = self.holds(*test, int(branches.threshold[s]))
                return float(holds != bool(branches.flip[s]))
        return float(branches.right_share[node] > 0.5)

    def holds(self, kind: int, feature: int, threshold: int) -> bool:
        return feature in self.cells if kind == CATEGORICAL else self.bins[feature] > threshold

    def __call__(self, known: set[str]) -> float:
        roots = self.forest.tree_first[:-1].tolist()
        return sum(self.expectation(root, root, known) for root in roots)

    def expectation(self, first: int, node: int, known: set[str]) -> float:
        forest = self.forest
        if forest.kind[node] == LEAF:
            return float(forest.value[node])
        left, right = first + int(forest.left[node]), first + int(forest.right[node])
        share = float(forest.rows[right]) / float(forest.rows[node])
        if self.player(node) in known:
            share = self.share(node)
        total = 0.0
        for child, part in ((left, 1.0 - share), (right, share)):
            if part:
                total += part * self.expectation(first, child, known)
        return total

    def shapley_values(self) -> dict[str, float]:
        n = len(self.players)
        subsets = [frozenset(s) for k in range(n + 1) for s in combinations(self.players, k)]
        values = {known: self(set(known)) for known in subsets}
        found = dict.fromkeys(self.players, 0.0)
        for known, value in values.items():
            for player in self.players:
                if player not in known:
                    k = len(known)
                    weight = math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n)
                    found[player] += weight * (values[known | {player}] - value)
        return found


@pytest.mark.parametrize("x", [LONG, GAPS], ids=["complete", "gaps"])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_shared_out_as_by_enumeration_of_all_sets_of_columns(kind, x):
    estimator = fitted(kind)
    model = estimator.model_
    assert isinstance(model, CRF)
    t, label = 2, 1
    predicted = [estimator.classes_.index(one) for one in estimator.predict_single(x)]
    previous = [predicted[t - 1 - lag] if t > lag else 3 for lag in range(4)]
    game = Game(model, x, t, previous, label)
    expected = game.shapley_values()
    one = estimator.explain(x, t, estimator.classes_[label], effects=0)
    found = {}
    for part in one.contributions:
        if part.source == "trees":
            name = part.feature.removeprefix("not ")
            found[name if name in expected else part.column] = part.value
    assert set(found) <= set(expected)
    for player, value in expected.items():
        assert found.get(player, 0.0) == pytest.approx(value, abs=1e-6), player
    assert one.base == pytest.approx(game(set()), abs=1e-3)  # averages of leaves are rounded
