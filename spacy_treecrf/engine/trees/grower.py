"""Best-first growth of one regression tree (Hao 2009, table 3.1) on gradients and hessians.

A node is a product (rows) x (contexts of previous labels): a split tests either an input feature
or a previous label, so input features are scored on sums over contexts and labels on sums over
rows. The result is the tree that the table with one example per (row, context) would give.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
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
from spacy_treecrf.engine.trees.node_features import TouchedFeatures, Units, nothing_touched
from spacy_treecrf.engine.trees.node_rows import (
    NodeRows,
    divide_pairs,
    divide_rows,
    rows_of_root,
)
from spacy_treecrf.engine.trees.open_leaves import (
    FeatureLists,
    OpenLeaves,
    Siblings,
    features_of,
    replace_leaf,
    room_for_leaves,
    room_for_lists,
    sum_up_bins,
    sum_up_contexts,
    sum_up_features,
)
from spacy_treecrf.engine.trees.splitting import (
    CONTEXT,
    NodeTest,
    Split,
    SplitRule,
    best_categorical,
    best_context,
    best_numeric,
    copy_members,
    divide_members,
    no_split,
)
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits


@step
def _sum_up(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    leaves: OpenLeaves,
    lists: FeatureLists,
    touched: TouchedFeatures,
    new: Siblings,
    rule: SplitRule,
) -> FeatureLists:
    """Make all histograms of two new leaves; return the lists of features, perhaps moved."""
    units = Units(rule.inverse_g, rule.inverse_h, rule.penalty)
    lists = sum_up_features(data, node_rows, leaves, lists, touched, new, rule.min_rows, units)
    if data.numeric.shape[1]:
        sum_up_bins(data, node_rows, leaves, new)
    if data.context_labels.shape[1]:
        sum_up_contexts(data, entries, node_rows, leaves, new)
    return lists


@step
def best_split(
    data: TreeInput,
    leaves: OpenLeaves,
    lists: FeatureLists,
    node: int,
    sums: npt.NDArray[np.float64],
    rule: SplitRule,
) -> Split:
    """Return the best split of an open leaf: of a feature, a numeric column or a previous label."""
    place = leaves.place[node]
    seed = mix(rule.tree_seed, np.uint64(node))
    features = features_of(leaves, lists, node)
    best: Split = no_split(rule.min_gain)
    best = best_categorical(sums, features, data.column_of, rule, seed, best)
    if data.numeric.shape[1]:
        best = best_numeric(sums, leaves.bins[place], data.n_columns, rule, seed, best)
    if data.context_labels.shape[1]:
        best = best_context(
            sums,
            leaves.contexts[place],
            leaves.member[place],
            data.context_labels,
            data.n_labels,
            rule,
            best,
        )
    return best


@step
def _divide(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    leaves: OpenLeaves,
    test: NodeTest,
    family: Family,
    free_place: int,
) -> tuple[NodeRows, Siblings]:
    """Divide what a leaf has between its children; return all rows, perhaps moved.

    free_place: among the open leaves, for the smaller child.
    """
    parent, left, right = family.parent, family.left, family.right
    small, big = right, left
    if test.kind == CONTEXT:
        member, to_right = leaves.member[leaves.place[parent]], leaves.member[free_place]
        divide_members(data.context_labels, test, member, member, to_right)
        node_rows = divide_pairs(data, entries, node_rows, to_right, family)
    else:
        divide_rows(data, node_rows, test, family)
        if len(leaves.member):
            copy_members(leaves.member[leaves.place[parent]], leaves.member[free_place])
        n_left = node_rows.last[left] - node_rows.first[left]
        if n_left < node_rows.last[right] - node_rows.first[right]:
            small, big = left, right
    new = Siblings(small, big)
    replace_leaf(leaves, parent, new, free_place)
    return node_rows, new


@kernel
def grow_tree(data: TreeInput, entries: Entries, limits: TreeLimits, seed: np.uint64) -> Tree:
    """Grow a tree on the entries, whose rows and sums are used up.

    Rows that trimming left out have no entry: they follow the left side of every split.
    """
    rule = split_rule(entries.scales, limits, seed)
    growing = start_tree(entries.totals, limits)
    node_rows = rows_of_root(entries, len(growing.depth))
    leaves = room_for_leaves(data, limits.leaves)
    lists = room_for_lists(data.n_features)
    touched = nothing_touched(data.n_features)
    new = Siblings(0, -1)
    n_leaves = 1
    while n_leaves < limits.leaves:
        lists = _sum_up(data, entries, node_rows, leaves, lists, touched, new, rule)
        for node in (new.small, new.big):
            if node >= 0 and may_split(growing, node, limits):
                split = best_split(data, leaves, lists, node, growing.sums[node], rule)
                keep_split(growing, node, split)
        parent = leaf_to_split(growing, n_leaves)
        if parent < 0:
            break
        family = add_split(growing, parent, n_leaves)
        divide_sums(growing, family, growing.found.right[parent])
        n_leaves += 1
        if n_leaves < limits.leaves:
            test = node_test(growing.nodes, parent)
            node_rows, new = _divide(data, entries, node_rows, leaves, test, family, n_leaves - 1)
    tree: Tree = finished_tree(growing, n_leaves, rule)
    return tree
