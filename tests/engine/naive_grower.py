"""The obvious best-first grower: every node rescans a table with one example per (row, context)."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC


def candidate_tests(data):
    """All tests in the order in which ties are broken."""
    for feature in range(data.n_features):
        yield CATEGORICAL, feature, 0
    for column in range(data.numeric.shape[1]):
        for threshold in range(254, -1, -1):
            yield NUMERIC, column, threshold
    for lag in range(data.context_labels.shape[1]):
        for label in range(data.n_labels + 1):
            yield CONTEXT, lag, label


def expand(data, entries):
    """One example per pair: row, context, and its fixed-point gradient and hessian."""
    examples = []
    for row in entries.rows:
        first = data.context_first[data.lags[row]]
        for context in range(first, data.context_first[data.lags[row] + 1]):
            g = int(np.rint(float(entries.pair_g[row, context - first]) * entries.scales[0]))
            h = int(entries.scales[1])
            if entries.pair_h.size:
                h = int(np.rint(float(entries.pair_h[row, context - first]) * entries.scales[1]))
            examples.append((int(row), context, g, h))
    return examples


def holds(data, test, example):
    kind, feature, threshold = test
    row, context = example[:2]
    if kind == CATEGORICAL:
        return feature in data.feature_ids[row]
    if kind == NUMERIC:
        return data.numeric[row, feature] > threshold
    return data.context_labels[context, feature] == threshold


def gain_of(node, right, entries, penalty):
    g, h = node[0] * (1.0 / entries.scales[0]), node[1] * (1.0 / entries.scales[1])
    right_g, right_h = right[0] * (1.0 / entries.scales[0]), right[1] * (1.0 / entries.scales[1])
    left_g, left_h = g - right_g, h - right_h + penalty
    right_h = right_h + penalty
    unsplit = g * g / (h + penalty)
    return (right_g * right_g * left_h + left_g * left_g * right_h) / (left_h * right_h) - unsplit


def totals_of(examples):
    return (sum(e[2] for e in examples), sum(e[3] for e in examples), len(examples))


def grow_naively(data, entries, limits):
    """Nodes as dicts (kind, feature, threshold, left, right, value), in the grower's numbering."""
    totals = tuple(map(int, entries.totals[:3]))
    nodes = [{"examples": expand(data, entries), "sums": totals, "depth": 0}]
    n_leaves = 1

    def find_split(node):
        node.update(kind=LEAF, best=None, best_gain=limits.min_gain)
        if limits.depth and node["depth"] >= limits.depth:
            return
        for test in candidate_tests(data):
            right = totals_of([e for e in node["examples"] if holds(data, test, e)])
            if right[2] < max(limits.min_rows, 1) or node["sums"][2] - right[2] < limits.min_rows:
                continue
            gain = gain_of(node["sums"], right, entries, limits.penalty)
            if gain > node["best_gain"]:
                node.update(best=test, best_gain=gain, right_sums=right)

    find_split(nodes[0])
    while n_leaves < limits.leaves:
        open_leaves = [n for n in nodes if n["kind"] == LEAF and n["best"]]
        if not open_leaves:
            break
        parent = max(open_leaves, key=lambda n: n["best_gain"])
        parent["kind"], parent["feature"], parent["threshold"] = parent["best"]
        right_sums = parent["right_sums"]
        left_sums = tuple(a - b for a, b in zip(parent["sums"], right_sums, strict=True))
        for name, side, sums in (("left", False, left_sums), ("right", True, right_sums)):
            examples = [e for e in parent["examples"] if holds(data, parent["best"], e) == side]
            parent[name] = len(nodes)
            nodes.append({"examples": examples, "sums": sums, "depth": parent["depth"] + 1})
            find_split(nodes[-1])
        n_leaves += 1
    for node in nodes:
        g, h = node["sums"][0] / entries.scales[0], node["sums"][1] / entries.scales[1]
        node["value"] = g / (h + limits.penalty)
    return nodes
