"""The score of a label at a row as a sum: what each feature adds by weights and by trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import Incomplete
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.missing_values.incomplete_scoring import WalkedTrees, walked_trees
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.shapley import (
    NOBODY,
    PlayedTrees,
    Points,
    TreeValues,
    add_interactions,
    add_shapley_values,
    knows_rows,
    played_trees,
    points_for,
)
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, NUMERIC
from spacy_treecrf.explain.explanation import LINEAR, TREES, Contribution, Interaction
from spacy_treecrf.explain.players import Players, Row
from spacy_treecrf.explain.score_parts import ScoreParts

Doubles = npt.NDArray[np.float64]

NO_COUNTS = (
    "trees of this model do not know how many training rows reached their nodes (it is compact, or "
    "was trained by version 0.1): what they add is one sum; train it again, or use it as it was "
    "before it was compacted"
)
ALL_TREES = "all trees"


@dataclass(frozen=True)
class ScoreSum:
    """A score (or a difference of scores) as a sum: base + contributions."""

    base: float
    contributions: list[Contribution]
    interactions: list[Interaction]
    knows_rows: bool  # whether all trees do


@dataclass(frozen=True)
class ClassTrees:
    """The trees of one class, and the players in them."""

    forest: Forest
    trees: PlayedTrees  # with players by their place in `players`
    players: npt.NDArray[np.int32]  # shape: (n_players,)
    points: Points
    walked: WalkedTrees | None  # where missing values are left to the trees

    @cached
    def known(self) -> npt.NDArray[np.bool_]:
        return knows_rows(self.trees)


class ScoreExplainer:
    """Explains sums of scores of a model's labels at single rows."""

    def __init__(self, parts: ScoreParts, players: Players) -> None:
        self.parts = parts
        self.players = players
        self._trees: dict[int, ClassTrees] = {}

    def explain(
        self,
        data: Sequences,
        row: Row,
        at: int,
        label_weights: Doubles,
        pushes: npt.NDArray[np.float32],
        interactions: bool,
    ) -> ScoreSum:
        """The sum of the labels' scores, each times its weight.

        data: What the row is number `at` of. label_weights: (n_labels,). pushes: (n_detectors,) of
        the row. interactions: Whether to find those, too.
        """
        weights = label_weights @ self.parts.classes
        found = self._linear(row, weights) + self._pushes(label_weights, pushes)
        base = float(label_weights @ self.parts.bias)
        values: dict[int, float] = {}
        pairs: dict[tuple[int, int], float] = {}
        rest = 0.0
        all_known = True
        for class_ in np.flatnonzero(weights).tolist():
            own = self._trees_of(class_)
            if not own.forest.n_trees:
                continue
            weight = float(weights[class_])
            right_share, divided = self._right_shares(own, data, row, at)
            factors = np.full(own.forest.n_trees, weight)
            out = np.zeros(len(own.players))
            said = TreeValues(np.empty(len(factors)), np.empty(len(factors)))
            add_shapley_values(own.trees, right_share, factors, own.points, out, said)
            for player, value in zip(own.players.tolist(), out.tolist(), strict=True):
                values[player] = values.get(player, 0.0) + value
            base += weight * float(said.mean[own.known].sum())
            rest += weight * float(said.full[~own.known].sum())
            if divided:  # averages of leaves are rounded tree by tree
                base += weight * float((to_grid(said.full) - said.full).sum())
            all_known = all_known and bool(own.known.all())
            if interactions:
                self._add_pairs(own, right_share, factors, pairs)
        found += [
            Contribution(*self.players.name(player, row), TREES, value)
            for player, value in values.items()
            if value
        ]
        if not all_known:
            found.append(Contribution(ALL_TREES, ALL_TREES, TREES, rest))
        return ScoreSum(base, found, self._interactions(pairs, row), all_known)

    def _linear(self, row: Row, weights: Doubles) -> list[Contribution]:
        """What weights of features, bins and previous labels add."""
        parts, players = self.parts, self.players
        features = row.features[row.features < len(parts.categorical)]
        named = list(zip(features.tolist(), parts.categorical[features] @ weights, strict=True))
        found = [(players.feature_name(f), value) for f, value in named]
        for column in range(len(parts.bin_scores)):
            value = parts.bin_scores[column, row.bins[column]] @ weights
            found.append((players.numeric_name(column, row), value))
        for lag, label in enumerate(row.labels):
            value = parts.history[lag, label] @ weights
            found.append((players.label_name(lag, row), value))
        return [Contribution(*name, LINEAR, float(value)) for name, value in found if value]

    def _pushes(
        self, label_weights: Doubles, pushes: npt.NDArray[np.float32]
    ) -> list[Contribution]:
        """What detectors add to the labels that they speak for."""
        found = []
        for i, detector in enumerate(self.parts.detectors):
            value = float(label_weights[detector.label] * pushes[i])
            if value:
                name = self.parts.detector_names[i]
                found.append(Contribution(name, f"detector {i + 1}", LINEAR, value))
        return found

    def _trees_of(self, class_: int) -> ClassTrees:
        if class_ not in self._trees:
            whole, incomplete = self.parts.forest, self.parts.incomplete
            forest = whole.select(whole.tree_class == class_)
            of_nodes = self.players.of_nodes(forest)
            players, place = np.unique(of_nodes, return_inverse=True)
            if len(players) and players[0] == NOBODY:
                players, place = players[1:], place - 1
            trees = played_trees(forest, place.astype(np.int32).reshape(-1))
            n_numeric = len(self.parts.columns.numeric_names)
            walked = walked_trees(forest, incomplete, n_numeric) if incomplete else None
            points = points_for(trees)
            self._trees[class_] = ClassTrees(forest, trees, players, points, walked)
        return self._trees[class_]

    def _right_shares(
        self, own: ClassTrees, data: Sequences, row: Row, at: int
    ) -> tuple[Doubles, bool]:
        """How much of the row goes right at each test, and whether a missing value matters."""
        forest = own.forest
        share = np.zeros(len(forest.kind))
        tests = forest.kind == CATEGORICAL
        share[tests] = np.isin(forest.feature[tests], row.features)
        tests = forest.kind == NUMERIC
        share[tests] = row.bins[forest.feature[tests]] > forest.threshold[tests]
        tests = forest.kind == CONTEXT
        if tests.any():
            labels = np.array(row.labels)
            share[tests] = labels[forest.feature[tests]] == forest.threshold[tests]
        if own.walked is None or self.parts.incomplete is None:
            return share, False
        missing = _missing_columns(data, at, self.parts.incomplete)
        if missing is None:
            return share, False
        asking = (own.walked.column >= 0) & missing[own.walked.column]
        if self.parts.incomplete.averages:
            share[asking] = own.walked.right_share[asking]
        else:
            for node in np.flatnonzero(asking).tolist():
                share[node] = _by_surrogates(own.walked, node, row, missing)
        return share, bool(asking.any())

    def _add_pairs(
        self,
        own: ClassTrees,
        right_share: Doubles,
        factors: Doubles,
        pairs: dict[tuple[int, int], float],
    ) -> None:
        out = np.zeros((len(own.players), len(own.players)))
        add_interactions(own.trees, right_share, factors, own.points, out)
        for a, b in np.argwhere(np.triu(out, 1)).tolist():
            pair = int(own.players[a]), int(own.players[b])
            pairs[pair] = pairs.get(pair, 0.0) + float(out[a, b])

    def _interactions(self, pairs: dict[tuple[int, int], float], row: Row) -> list[Interaction]:
        found = []
        for (a, b), value in pairs.items():
            (one, one_column), (other, other_column) = (self.players.name(p, row) for p in (a, b))
            found.append(Interaction((one, other), (one_column, other_column), value))
        return found


def _missing_columns(
    data: Sequences, at: int, incomplete: Incomplete
) -> npt.NDArray[np.bool_] | None:
    """Which columns a row lacks, (n_columns + n_numeric,); None if it lacks none."""
    single = Sequences.unlabelled(
        np.array([0, 1]), data.feature_ids[at : at + 1], data.numeric[at : at + 1]
    )
    missing = missing_cells(single, incomplete.columns)
    return None if missing is None else missing[0]


def _by_surrogates(
    trees: WalkedTrees, node: int, row: Row, missing: npt.NDArray[np.bool_]
) -> float:
    """1 if a row goes right by the first surrogate that it can answer, or by the majority."""
    tests = trees.surrogates
    for s in range(int(tests.first[node]), int(tests.first[node + 1])):
        if missing[tests.column[s]]:
            continue
        if tests.kind[s] == CATEGORICAL:
            holds = bool(np.isin(tests.feature[s], row.features))
        else:
            holds = bool(row.bins[tests.feature[s]] > tests.threshold[s])
        return float(bool(tests.flip[s]) != holds)
    return float(trees.right_share[node] > 0.5)
