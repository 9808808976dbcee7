"""Growth of a tree on rows with missing values: the same tree as `grow_tree` where none is missing.

A test is judged by the rows that know its answer. The others go to both children with a part of
their gradient, hessian and count (instance weighting), or to the one that surrogates name. Slower
than `grow_tree`: rows are copied from node to node, and their contexts summed up anew.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.missing_values.incomplete_histograms import (
    COUNT_STEP,
    NodeSums,
    RowParts,
    pair_sums,
    sum_up,
    sum_up_children,
    sum_up_contexts,
)
from spacy_treecrf.engine.missing_values.routing import contexts_in, send
from spacy_treecrf.engine.missing_values.surrogates import RIGHT, UNKNOWN
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.trees.growing_tree import (
    Family,
    Tree,
    add_split,
    divide_sums,
    finished_tree,
    keep_split,
    leaf_to_split,
    may_split,
    node_test,
    split_rule,
    start_tree,
)
from spacy_treecrf.engine.trees.node_features import (
    clear_sums,
    nothing_touched,
)
from spacy_treecrf.engine.trees.splitting import (
    CATEGORICAL,
    CONTEXT,
    NUMERIC,
    NodeTest,
    Split,
    SplitRule,
    best_context,
    best_numeric,
    copy_members,
    divide_members,
    may_test,
    no_split,
    split_gain,
)
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits


@step
def _best_known_categorical(
    known: npt.NDArray[np.float64],
    node: NodeSums,
    column_of: npt.NDArray[np.int32],
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """Return what `best_categorical` does, each feature judged by the rows that know its column.

    known: (n_columns + n_numeric, 4), of the rows that know a column.
    """
    for i in range(len(node.features)):
        feature = node.features[i]
        column = column_of[feature]
        right_g, right_h, right_n = node.by_feature[i, :3]
        if right_n < rule.min_rows or known[column, 2] - right_n < rule.min_rows:
            continue
        g = known[column, 0] * rule.inverse_g
        h = known[column, 1] * rule.inverse_h
        unsplit = g * g / (h + rule.penalty)
        gain = split_gain(
            g, h, right_g * rule.inverse_g, right_h * rule.inverse_h, rule.penalty, unsplit
        )
        if gain > best.gain and may_test(rule, seed, column):
            best = Split(gain, CATEGORICAL, np.int64(feature), 0, right_g, right_h, right_n)
    return best


@step
def _keep_whole(sums: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> None:
    """Keep rows whole whose part on one side would be too small to be counted. right: (4,)"""
    nothing, everything = right[2] <= 0.0, right[2] >= sums[2]
    for j in range(4):
        if nothing:
            right[j] = 0.0
        elif everything:
            right[j] = sums[j]


@step
def _split_by_context(
    data: TreeInput,
    entries: Entries,
    member: npt.NDArray[np.bool_],
    to_right: npt.NDArray[np.bool_],
    parts: RowParts,
    right: npt.NDArray[np.float64],
) -> None:
    """Set the sums of the pairs that go right, for each row. right: (n, 4), 0 before."""
    rows, sums = parts.rows, parts.sums
    n_contexts = contexts_in(data, member)
    for i in range(len(rows)):
        row = rows[i]
        first = data.context_first[data.lags[row]]
        n = 0
        for c in range(data.context_first[data.lags[row] + 1] - first):
            if to_right[first + c]:
                g, h = pair_sums(entries, row, c, parts.weight[i])
                right[i, 0] += g
                right[i, 1] += h
                n += 1
        share = n / n_contexts[data.lags[row]]
        right[i, 2] = np.rint(sums[i, 2] * share / COUNT_STEP) * COUNT_STEP
        _keep_whole(sums[i], right[i])


@step
def _split_by_input(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    test: NodeTest,
    surrogate: bool,
    parts: RowParts,
    right: npt.NDArray[np.float64],
    to_right: npt.NDArray[np.float64],
) -> None:
    """Set the sums of what goes right of each row, and its share of the row.

    right: (n, 4), 0 before. to_right: (n,)
    """
    rows, sums = parts.rows, parts.sums
    side = np.zeros(len(rows), np.int8)
    amount = np.empty(len(rows))
    for i in range(len(rows)):
        amount[i] = sums[i, 2]
    share, _ = send(data, missing, test, rows, amount, surrogate, side)
    for i in range(len(rows)):
        if side[i] == UNKNOWN:
            right[i, 0] = np.rint(sums[i, 0] * share)
            right[i, 1] = np.rint(sums[i, 1] * share)
            right[i, 2] = np.rint(sums[i, 2] * share / COUNT_STEP) * COUNT_STEP
            _keep_whole(sums[i], right[i])
            to_right[i] = share
        elif side[i] == RIGHT:
            for j in range(4):
                right[i, j] = sums[i, j]
            to_right[i] = 1.0
        else:
            to_right[i] = 0.0


@step
def _best_split(
    data: TreeInput,
    entries: Entries,
    node: int,
    totals: npt.NDArray[np.float64],
    sums: NodeSums,
    parts: RowParts,
    member: npt.NDArray[np.bool_],
    rule: SplitRule,
) -> Split:
    """Return the best split of a node, every test judged by the rows that know its answer.

    totals: (4,) of the node. member: (n_contexts,) its contexts.
    """
    seed = mix(rule.tree_seed, np.uint64(node))
    known = np.empty_like(sums.unknown)
    for column in range(len(known)):
        for j in range(4):
            known[column, j] = totals[j] - sums.unknown[column, j]
    start = no_split(rule.min_gain)
    best: Split = _best_known_categorical(known, sums, data.column_of, rule, seed, start)
    for d in range(data.numeric.shape[1]):
        column = data.n_columns + d
        found = best_numeric(known[column], sums.by_bin[d : d + 1], column, rule, seed, best)
        if found.gain > best.gain:
            best = Split(found.gain, NUMERIC, d, found.threshold, found.g, found.h, found.n)
    if data.context_labels.shape[1]:
        by_context = sum_up_contexts(data, entries, member, parts)
        best = best_context(
            totals, by_context, member, data.context_labels, data.n_labels, rule, best
        )
    return best


@step
def _part_of(
    parts: RowParts, sums: npt.NDArray[np.float64], share: npt.NDArray[np.float64]
) -> RowParts:
    """Return the rows of which something goes to a child.

    sums: (n, 4) what goes there of each row. share: (n,) the same, of the row's weight.
    """
    child = RowParts(
        np.empty_like(parts.rows), np.empty_like(parts.sums), np.empty_like(parts.weight)
    )
    n = 0
    for i in range(len(sums)):
        if sums[i, 2] > 0.0:
            child.rows[n] = parts.rows[i]
            child.weight[n] = parts.weight[i] * share[i]
            for j in range(4):
                child.sums[n, j] = sums[i, j]
            n += 1
    return RowParts(child.rows[:n].copy(), child.sums[:n].copy(), child.weight[:n].copy())


@step
def _divide(
    data: TreeInput,
    entries: Entries,
    missing: npt.NDArray[np.bool_],
    surrogate: bool,
    test: NodeTest,
    family: Family,
    member: npt.NDArray[np.bool_],
    parts: RowParts,
) -> tuple[RowParts, RowParts]:
    """Return what goes left and what goes right, and set the children's contexts.

    member: (n_nodes, n_contexts). parts: of the parent.
    """
    here, left, right = member[family.parent], member[family.left], member[family.right]
    left_sums, right_sums = np.empty_like(parts.sums), np.zeros_like(parts.sums)
    to_left, to_right = np.ones(len(parts.rows)), np.ones(len(parts.rows))
    if test.kind == CONTEXT:
        divide_members(data.context_labels, test, here, left, right)
        _split_by_context(data, entries, here, right, parts, right_sums)
    else:
        copy_members(here, left)
        copy_members(here, right)
        _split_by_input(data, missing, test, surrogate, parts, right_sums, to_right)
        for i in range(len(to_left)):
            to_left[i] = 1.0 - to_right[i]
    for i in range(len(left_sums)):
        for j in range(4):
            left_sums[i, j] = parts.sums[i, j] - right_sums[i, j]
    return _part_of(parts, left_sums, to_left), _part_of(parts, right_sums, to_right)


@step
def _total(parts: RowParts) -> npt.NDArray[np.float64]:
    """Return the sums over all rows of a node. shape: (4,)"""
    total = np.zeros(4)
    for i in range(len(parts.sums)):
        for j in range(4):
            total[j] += parts.sums[i, j]
    return total


@kernel
def grow_incomplete_tree(
    data: TreeInput,
    entries: Entries,
    limits: TreeLimits,
    seed: np.uint64,
    missing: npt.NDArray[np.bool_],
    surrogate: bool,
) -> Tree:
    """Grow a tree on the entries; missing: (n_rows, n_columns + n_numeric).

    Rows that trimming left out have no entry: they follow the left side of every split.
    """
    rule = split_rule(entries.scales, limits, seed)
    growing = start_tree(entries.totals, limits)
    n_nodes = len(growing.depth)
    member = np.ones((n_nodes, data.context_labels.shape[0]), np.bool_)
    nothing = RowParts(entries.rows[:0], entries.sums[:0], np.zeros(0))
    parts_of = [nothing for _ in range(n_nodes)]
    parts_of[0] = RowParts(entries.rows, entries.sums, np.ones(len(entries.rows)))
    touched = nothing_touched(data.n_features)
    root = sum_up(data, missing, parts_of[0], touched)
    clear_sums(touched, root.features)
    sums_of = [root for _ in range(n_nodes)]
    n_leaves = 1
    n_seen = 0  # nodes for which a split has been looked for
    while n_leaves < limits.leaves:
        for node in range(n_seen, 2 * n_leaves - 1):
            if may_split(growing, node, limits):
                totals, sums, parts = growing.sums[node], sums_of[node], parts_of[node]
                split = _best_split(data, entries, node, totals, sums, parts, member[node], rule)
                keep_split(growing, node, split)
        n_seen = 2 * n_leaves - 1
        parent = leaf_to_split(growing, n_leaves)
        if parent < 0:
            break
        family = add_split(growing, parent, n_leaves)
        test = node_test(growing.nodes, parent)
        parts = parts_of[parent]
        left, right = _divide(data, entries, missing, surrogate, test, family, member, parts)
        divide_sums(growing, family, _total(right))
        n_leaves += 1
        if n_leaves < limits.leaves:
            parts_of[family.left], parts_of[family.right] = left, right
            sums_of[family.left], sums_of[family.right] = sum_up_children(
                data, missing, left, right, sums_of[parent], touched, limits.min_rows
            )
            parts_of[parent] = nothing
            sums_of[parent] = root
    tree: Tree = finished_tree(growing, n_leaves, rule)
    return tree
