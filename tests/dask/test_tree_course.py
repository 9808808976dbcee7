"""Trees that grow on the rows of several workers equal those grown on all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.dask.feature_owner import FeatureOwner
from spacy_treecrf.dask.growing_rows import GrowingRows, expand_all
from spacy_treecrf.dask.packed_sums import pack_sums, unpack_sums
from spacy_treecrf.dask.rooms import FeatureTables
from spacy_treecrf.dask.tree_course import TreeCourse, learn_all, room_of
from spacy_treecrf.dask.tree_messages import owner_bounds, slice_for_owner
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import (
    MagnitudeSums,
    collect,
    entries_of,
    measure,
    trimming,
)
from spacy_treecrf.engine.trees.grower import grow_tree
from spacy_treecrf.engine.trees.shared_growth import rule_of_tree
from spacy_treecrf.engine.trees.tree_input import TreeLimits
from tests.engine.trees.test_grower import random_problem

SEED = np.uint64(7)


def rows_of(data, some):
    """The columns of some rows."""
    taken = data.feature_ids[some]
    return data._replace(
        feature_ids=taken,
        columns=np.ascontiguousarray(taken.T),
        numeric=data.numeric[some],
        lags=data.lags[some],
    )


def grow_in_parts(data, pair_g, pair_h, limits, parts, n_owners, trim, subsample, careful=False):
    """Grow one tree on rows that lie in several parts; returns it and the number of exchanges."""
    n_labels = data.n_labels
    pieces = []
    for some in parts:
        own_h = pair_h[some] if len(pair_h) else pair_h
        args = (np.ascontiguousarray(pair_g[some]), np.ascontiguousarray(own_h), data.lags[some])
        pieces.append((args, measure(*args, n_labels, subsample, SEED, some)))
    sums = MagnitudeSums(
        *(np.sum(a, axis=0) for a in zip(*(p[1].sums for p in pieces), strict=True))
    )
    trimmed = trimming(sums, trim)
    rows = []
    tables, n_nodes = FeatureTables(data.n_features), 2 * room_of(limits) - 1
    for some, (args, found) in zip(parts, pieces, strict=True):
        entries = entries_of(*args, n_labels, found, trimmed)
        rows.append([GrowingRows(rows_of(data, some), entries, n_nodes, tables)])
    rule = rule_of_tree(trimmed.scales, limits, SEED)
    totals = np.sum([each[0].start.totals for each in rows], axis=0)
    n_pairs = sum(each[0].start.n_pairs for each in rows)
    course = TreeCourse(0, totals, n_pairs, limits, rule, careful)
    bounds = owner_bounds(counts_of(data), n_owners)
    owners = [FeatureOwner(data, o, bounds, [rule], room_of(limits)) for o in range(n_owners)]
    exchanges = 1
    with Workers(1) as workers:
        roots = [[each[0].root()] for each in rows]
        if course.searches_root:
            answers = [
                owner.start(sliced(roots, o, bounds), [totals], workers)
                for o, owner in enumerate(owners)
            ]
            learn_all([course], answers)
        while expansions := course.next_expansions():
            exchanges += 1
            made = [expand_all(each, expansions, workers) for each in rows]
            answers = [
                owner.expand(expansions, sliced(made, o, bounds), workers)
                for o, owner in enumerate(owners)
            ]
            learn_all([course], answers)
    return course.grown, exchanges


def sliced(parts, owner, bounds):
    """What an owner gets: of the first part as it is, of others as it travels."""
    own, *others = [[slice_for_owner(node, owner, bounds) for node in part] for part in parts]
    first, last = bounds[owner : owner + 2].tolist()
    return [own, *(unpack_sums(pack_sums(nodes, first, last - first)) for nodes in others)]


def counts_of(data):
    ids = data.feature_ids[data.feature_ids >= 0]
    return np.bincount(ids, minlength=data.n_features)[: data.n_features]


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    n_labels=st.integers(1, 3),
    n_numeric=st.integers(0, 3),
    newton=st.booleans(),
    leaves=st.integers(1, 12),
    depth=st.sampled_from([0, 2]),
    min_rows=st.integers(1, 4),
    subsample=st.sampled_from([0.6, 1.0]),
    columns=st.sampled_from([(1.0, 1.0), (0.6, 1.0), (1.0, 0.6)]),
    n_parts=st.integers(1, 4),
    n_owners=st.integers(1, 4),
    careful=st.booleans(),
)
def test_trees_in_parts_equal_trees_on_all_rows(
    seed,
    order,
    n_labels,
    n_numeric,
    newton,
    leaves,
    depth,
    min_rows,
    subsample,
    columns,
    n_parts,
    n_owners,
    careful,
):
    data, pair_g, pair_h = random_problem(seed, 60, n_labels, order, n_numeric, newton)
    limits = TreeLimits(leaves, depth, min_rows, 0.5, 1e-9, *columns)
    entries = collect(pair_g, pair_h, data.lags, n_labels, 0.1, subsample, SEED)
    expected = grow_tree(data, entries, limits, SEED)
    of_row = np.random.default_rng(seed).integers(0, n_parts, len(data.lags))
    parts = [np.flatnonzero(of_row == part) for part in range(n_parts)]
    grown, _ = grow_in_parts(data, pair_g, pair_h, limits, parts, n_owners, 0.1, subsample, careful)
    assert grown is not None
    for name, found in grown._asdict().items():
        np.testing.assert_array_equal(found, getattr(expected, name), err_msg=name)


def test_a_tree_of_64_leaves_takes_about_ten_exchanges():
    data, pair_g, pair_h = random_problem(5, 20000, 2, 0, 2, True)
    limits = TreeLimits(64, 0, 3, 1.0, 1e-9, 1.0, 1.0)
    entries = collect(pair_g, pair_h, data.lags, 2, 0.1, 1.0, SEED)
    expected = grow_tree(data, entries, limits, SEED)
    parts = [np.arange(0, 20000, 2), np.arange(1, 20000, 2)]
    grown, exchanges = grow_in_parts(data, pair_g, pair_h, limits, parts, 2, 0.1, 1.0)
    assert grown is not None
    assert len(grown.kind) == 127
    np.testing.assert_array_equal(grown.feature, expected.feature)
    np.testing.assert_array_equal(grown.value, expected.value)
    assert exchanges <= 14
