"""Inspection of learned models: sizes, features, transitions, paths of trees."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF, NUMERIC
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.memm.future_features import FutureMEMM
from spacy_treecrf.models.model import SequenceModel

START = "<start>"


@dataclass(frozen=True)
class FeatureUse:
    """How often a feature (or a whole column) is tested in the trees, and what that gained."""

    name: str
    gain: float  # the sum over its splits
    splits: int


@dataclass(frozen=True)
class Transition:
    previous: str  # <start> at the beginning of a sequence
    label: str
    weight: float  # added to the score of the pair


@dataclass(frozen=True)
class Weight:
    """A linear weight of a feature for a label."""

    feature: str
    label: str
    weight: float


@dataclass(frozen=True)
class TreePath:
    """A way from the root of a tree to a leaf, whose tests together add `value` to a score."""

    label: str
    round: int  # counted from 1
    tests: list[str]
    value: float


@dataclass(frozen=True)
class Summary:
    """The facts that a model of any kind has."""

    kind: str
    labels: list[str]
    rounds: int
    features: int
    columns: int
    numeric_columns: int
    settings: dict[str, Any]
    changed_settings: dict[str, Any]  # settings that differ from the defaults
    detectors: list[str]  # sentences, for a MEMM with future features

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Inspection(Summary):
    """The facts that a boosted CRF has, and what it has learned."""

    trees: int
    leaves: int
    linear_weights: int
    top_columns: list[FeatureUse]
    top_features: list[FeatureUse]
    top_weights: list[Weight]
    likely_transitions: list[Transition]
    unlikely_transitions: list[Transition]
    forbidden_transitions: int
    paths: list[TreePath]


def inspection_of(model: SequenceModel, top: int = 10) -> Summary:
    """The inspection of a boosted CRF, or the summary of another model.

    top: The length of the lists.
    """
    return inspect_crf(model, top) if isinstance(model, CRF) else summary(model, top)


def summary(model: SequenceModel, top: int = 10) -> Summary:
    settings, default = asdict(model.settings), asdict(type(model.settings)())
    detectors = model.describe_detectors()[:top] if isinstance(model, FutureMEMM) else []
    return Summary(
        kind=type(model).__name__,
        labels=list(model.labels),
        rounds=model.rounds,
        features=len(model.columns.feature_names),
        columns=len(model.columns.column_names),
        numeric_columns=len(model.columns.numeric_names),
        settings=settings,
        changed_settings={n: value for n, value in settings.items() if value != default[n]},
        detectors=detectors,
    )


def inspect_crf(crf: CRF, top: int = 10) -> Inspection:
    """The inspection of a boosted CRF.

    top: The length of the lists.
    """
    forest = crf.potentials.forest
    linear = crf.potentials.linear
    transitions, forbidden = _transitions(crf)
    return Inspection(
        **vars(summary(crf)),
        trees=forest.n_trees,
        leaves=int((forest.kind == LEAF).sum()),
        linear_weights=int(np.count_nonzero(linear.categorical) + np.count_nonzero(linear.numeric)),
        top_columns=_column_use(crf)[:top],
        top_features=_feature_use(crf)[:top],
        top_weights=_weights(crf, top),
        likely_transitions=[own for own in transitions[:top] if own.weight > 0],
        unlikely_transitions=[own for own in transitions[::-1][:top] if own.weight < 0],
        forbidden_transitions=forbidden,
        paths=_paths(crf, top),
    )


def _feature_use(crf: CRF) -> list[FeatureUse]:
    """The use of indicators and numeric columns, and of previous labels by their distance."""
    names = _test_names(crf)
    return _summed(crf.potentials.forest, [name for name, _ in names])


def _column_use(crf: CRF) -> list[FeatureUse]:
    names = _test_names(crf)
    return _summed(crf.potentials.forest, [column for _, column in names])


def _test_names(crf: CRF) -> list[tuple[str, str]]:
    """The feature and the column of every inner node, in the order of nodes."""
    forest, columns = crf.potentials.forest, crf.columns
    found = []
    inner = forest.kind != LEAF
    column_of = columns.column_of.tolist()
    for kind, feature in zip(
        forest.kind[inner].tolist(), forest.feature[inner].tolist(), strict=True
    ):
        if kind == CATEGORICAL:
            found.append((columns.feature_names[feature], columns.column_names[column_of[feature]]))
        elif kind == NUMERIC:
            found.append((columns.numeric_names[feature], columns.numeric_names[feature]))
        else:
            found.append((f"label[-{feature + 1}]", f"label[-{feature + 1}]"))
    return found


def _summed(forest: Forest, names: list[str]) -> list[FeatureUse]:
    gains: dict[str, float] = {}
    splits: dict[str, int] = {}
    of_nodes = forest.gain[forest.kind != LEAF].astype(float).tolist()
    for name, gain in zip(names, of_nodes, strict=True):
        gains[name] = gains.get(name, 0.0) + gain
        splits[name] = splits.get(name, 0) + 1
    order = sorted(gains, key=lambda name: (-gains[name], name))
    return [FeatureUse(name, gains[name], splits[name]) for name in order]


def _weights(crf: CRF, top: int) -> list[Weight]:
    linear = crf.potentials.linear
    both = np.concatenate([linear.categorical, linear.numeric])
    order = np.argsort(-np.abs(both), axis=None, kind="stable")[:top]
    names = [*crf.columns.feature_names, *crf.columns.numeric_names]
    found = []
    for index in order.tolist():
        feature, label = divmod(index, len(crf.labels))
        if both[feature, label]:
            found.append(Weight(names[feature], crf.labels[label], float(both[feature, label])))
    return found


def _transitions(crf: CRF) -> tuple[list[Transition], int]:
    """All possible transitions, by falling weight; and how many are not possible."""
    start, trans, _ = crf.masks
    allowed = np.isfinite(np.concatenate([trans, start[None, :]]))
    edges = crf.potentials.edges
    names = [*crf.labels, START]
    found = [
        Transition(names[u], crf.labels[v], float(edges[u, v]))
        for u, v in zip(*(index.tolist() for index in np.nonzero(allowed)), strict=True)
    ]
    found.sort(key=lambda own: -own.weight)
    return found, int((~allowed).sum())


def _paths(crf: CRF, top: int) -> list[TreePath]:
    """The paths to the leaves of largest values, at most one for each tree."""
    forest = crf.potentials.forest
    leaf_values = np.where(forest.kind == LEAF, np.abs(forest.value), -1.0)
    found: list[TreePath] = []
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_first))
    used: set[int] = set()
    parents = _parents(forest)
    for node in np.argsort(-leaf_values, kind="stable").tolist():
        tree = int(tree_of[node])
        if len(found) == top or forest.kind[node] != LEAF:
            break
        if tree in used or parents[node] < 0:  # a tree of one leaf says nothing
            continue
        used.add(tree)
        found.append(
            TreePath(
                crf.labels[int(forest.tree_class[tree])],
                int(forest.tree_round[tree]) + 1,
                _tests(crf, node, parents),
                float(forest.value[node]),
            )
        )
    return found


def _parents(forest: Forest) -> npt.NDArray[np.int64]:
    """The parent of each node, as an index of nodes; -1 for roots."""
    inner = np.flatnonzero(forest.kind != LEAF)
    first = np.repeat(forest.tree_first[:-1], np.diff(forest.tree_first))[inner]
    parents = np.full(len(forest.kind), -1, np.int64)
    parents[first + forest.left[inner]] = inner
    parents[first + forest.right[inner]] = inner
    return parents


def _tests(crf: CRF, node: int, parents: npt.NDArray[np.int64]) -> list[str]:
    """The tests from the root to a node; the left child is where a test does not hold."""
    forest = crf.potentials.forest
    tests: list[str] = []
    while (parent := int(parents[node])) >= 0:
        tree = int(np.searchsorted(forest.tree_first, parent, side="right")) - 1
        holds = int(forest.tree_first[tree] + forest.right[parent]) == node
        tests.append(_describe(crf, parent, holds))
        node = parent
    return tests[::-1]


def _describe(crf: CRF, node: int, holds: bool) -> str:
    forest, columns = crf.potentials.forest, crf.columns
    feature, threshold = int(forest.feature[node]), int(forest.threshold[node])
    if forest.kind[node] == CATEGORICAL:
        return ("" if holds else "not ") + columns.feature_names[feature]
    if forest.kind[node] == NUMERIC:
        name, edges = columns.numeric_names[feature], columns.bin_edges[feature]
        if threshold == 0 or not len(edges):  # bin 0 is missing
            return f"{name} is known" if holds else f"{name} is missing"
        edge = edges[min(threshold, len(edges)) - 1]
        return f"{name} > {edge:g}" if holds else f"{name} <= {edge:g} or missing"
    label = [*crf.labels, START][threshold]
    return f"label[-{feature + 1}] {'is' if holds else 'is not'} {label}"
