"""The obvious grower and surrogate search on rows with missing values: every node rescans them."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC
from tests.engine.naive_grower import candidate_tests, gain_of

STEP = 2**16
MAX_SURROGATES = 5


def column_of(data, test):
    kind, feature, _ = test
    return int(data.column_of[feature]) if kind == CATEGORICAL else data.n_columns + feature


def answer_of(data, missing, test, row):
    """False, True, or None where the value is missing."""
    kind, feature, threshold = test
    if missing[row, column_of(data, test)]:
        return None
    if kind == CATEGORICAL:
        return feature in data.feature_ids[row]
    return bool(data.numeric[row, feature] > threshold)


def input_tests(data):
    return [test for test in candidate_tests(data) if test[0] != CONTEXT]


def surrogates_of(data, missing, rows, amounts, test):
    """Tests with their flips, best first: one for each column, five at most."""
    sides = [answer_of(data, missing, test, row) for row in rows]
    best: dict[int, tuple[float, tuple, bool]] = {}
    for other in input_tests(data):
        column = column_of(data, other)
        if column == column_of(data, test) or other == (NUMERIC, other[1], 0):
            continue
        agree = {False: 0.0, True: 0.0}
        known = {False: 0.0, True: 0.0}
        holding = 0.0
        for row, amount, side in zip(rows, amounts, sides, strict=True):
            answer = answer_of(data, missing, other, row)
            if side is None or answer is None:
                continue
            known[side] += amount
            agree[answer != side] += amount
            holding += amount * answer
        if holding == 0.0:
            continue
        for flip in (False, True):
            worth = agree[flip] - max(known.values())
            if worth > 1e-6 and (column not in best or worth > best[column][0] + 1e-9):
                best[column] = (worth, other, flip)
    ranked = sorted(best.items(), key=lambda item: (-round(item[1][0], 6), item[0]))
    return [(test, flip) for _, (_, test, flip) in ranked[:MAX_SURROGATES]]


def stand_in_of(data, missing, surrogates, row):
    for test, flip in surrogates:
        answer = answer_of(data, missing, test, row)
        if answer is not None:
            return answer != flip
    return None


def count_part(n, share):
    return round(n * share * STEP) / STEP


def contexts_of(data, row):
    first = int(data.context_first[data.lags[row]])
    return range(first, int(data.context_first[data.lags[row] + 1]))


def pair_of(data, entries, row, context, weight):
    c = context - int(data.context_first[data.lags[row]])
    g = np.rint(np.float64(entries.pair_g[row, c]) * weight * entries.scales[0])
    h = np.rint(weight * entries.scales[1])
    if entries.pair_h.size:
        h = np.rint(np.float64(entries.pair_h[row, c]) * weight * entries.scales[1])
    return np.array([g, h])


def split_examples(data, entries, missing, node, test, surrogate):
    """Examples (row, sums, weight) of the left and of the right child."""
    left, right = [], []
    rows = [row for row, _, _ in node["examples"]]
    if test[0] == CONTEXT:
        goes = {c for c in node["contexts"] if data.context_labels[c, test[1]] == test[2]}
        for row, sums, weight in node["examples"]:
            mine = [c for c in contexts_of(data, row) if c in node["contexts"]]
            there = [c for c in mine if c in goes]
            part = np.zeros(3)
            for c in there:
                part[:2] += pair_of(data, entries, row, c, weight)
            part[2] = count_part(sums[2], len(there) / len(mine))
            add_parts(left, right, row, sums, part, weight, weight)
        return left, right
    sides = [answer_of(data, missing, test, row) for row in rows]
    amounts = [sums[2] for _, sums, _ in node["examples"]]
    known = [
        sum(a for a, s in zip(amounts, sides, strict=True) if s is side) for side in (False, True)
    ]
    share = float(np.float32(known[1] / sum(known)))
    if surrogate:
        found = surrogates_of(data, missing, rows, amounts, test)
        for i, row in enumerate(rows):
            if sides[i] is None:
                sides[i] = stand_in_of(data, missing, found, row)
            if sides[i] is None:
                sides[i] = share > 0.5
    for (row, sums, weight), side in zip(node["examples"], sides, strict=True):
        if side is None:
            part = np.array([*np.rint(sums[:2] * share), count_part(sums[2], share)])
            add_parts(left, right, row, sums, part, weight * (1.0 - share), weight * share)
        else:
            (right if side else left).append((row, sums, weight))
    return left, right


def add_parts(left, right, row, sums, part, left_weight, right_weight):
    if part[2] <= 0.0:
        part = np.zeros(3)
    elif part[2] >= sums[2]:
        part = sums
    if part[2] < sums[2]:
        left.append((row, sums - part, left_weight))
    if part[2] > 0.0:
        right.append((row, part, right_weight))


def grow_incomplete_naively(data, entries, limits, missing, surrogate):
    """Nodes as dicts (kind, feature, threshold, left, right, value), in the grower's numbering."""
    everything = [
        (int(row), sums[:3].copy(), 1.0)
        for row, sums in zip(entries.rows, entries.sums, strict=True)
    ]
    contexts = set(range(len(data.context_labels)))
    nodes = [{"examples": everything, "sums": entries.totals[:3], "depth": 0, "contexts": contexts}]
    n_leaves = 1

    def right_sums(node, test):
        """Of the rows that hold a test, and of those that know its answer."""
        right = np.zeros(3)
        known = np.array(node["sums"], float)
        for row, sums, weight in node["examples"]:
            if test[0] == CONTEXT:
                mine = [c for c in contexts_of(data, row) if c in node["contexts"]]
                for c in mine:
                    if data.context_labels[c, test[1]] == test[2]:
                        right[:2] += pair_of(data, entries, row, c, weight)
                        right[2] += count_part(sums[2], 1 / len(mine))
                continue
            answer = answer_of(data, missing, test, row)
            if answer is None:
                known -= sums
            elif answer:
                right += sums
        return right, known

    def find_split(node):
        node.update(kind=LEAF, best=None, best_gain=limits.min_gain)
        if limits.depth and node["depth"] >= limits.depth:
            return
        for test in candidate_tests(data):
            right, known = right_sums(node, test)
            if right[2] < max(limits.min_rows, 1e-9) or known[2] - right[2] < limits.min_rows:
                continue
            gain = gain_of(known, right, entries, limits.penalty)
            if gain > node["best_gain"]:
                node.update(best=test, best_gain=gain)

    find_split(nodes[0])
    while n_leaves < limits.leaves:
        open_leaves = [n for n in nodes if n["kind"] == LEAF and n["best"]]
        if not open_leaves:
            break
        parent = max(open_leaves, key=lambda n: n["best_gain"])
        test = parent["best"]
        parent["kind"], parent["feature"], parent["threshold"] = test
        left, right = split_examples(data, entries, missing, parent, test, surrogate)
        total = sum((sums for _, sums, _ in right), np.zeros(3))
        goes = parent["contexts"]
        if test[0] == CONTEXT:
            goes = {c for c in goes if data.context_labels[c, test[1]] == test[2]}
        rest = parent["contexts"] - goes if test[0] == CONTEXT else parent["contexts"]
        for name, examples, sums, some in (
            ("left", left, parent["sums"] - total, rest),
            ("right", right, total, goes),
        ):
            parent[name] = len(nodes)
            nodes.append(
                {"examples": examples, "sums": sums, "depth": parent["depth"] + 1, "contexts": some}
            )
            find_split(nodes[-1])
        n_leaves += 1
    for node in nodes:
        g, h = node["sums"][0] / entries.scales[0], node["sums"][1] / entries.scales[1]
        node["value"] = g / (h + limits.penalty)
    return nodes
