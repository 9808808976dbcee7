"""Sums of nodes arrive as they were sent, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.dask.packed_sums import add_packed, pack_sums, unpack_sums
from spacy_treecrf.engine.trees.histogram import N_BINS
from spacy_treecrf.engine.trees.node_features import nothing_touched
from spacy_treecrf.engine.trees.shared_growth import NodeSums

# Whole numbers on both sides of what fits into 40 bits, and the largest that sums may be.
EDGES = [
    0,
    1,
    -1,
    2**31,
    2**32,
    -(2**32),
    2**39 - 1,
    2**39,
    -(2**39) + 1,
    -(2**39),
    2**52,
    -(2**52),
]
numbers = st.sampled_from(EDGES) | st.integers(-(2**52), 2**52)
counts = st.sampled_from([1, 2, 254, 255, 256, 257, 2**40]) | st.integers(1, 300)


def node_of(features: list[int], rows: list[tuple[int, int, int]], numeric: int, contexts: int):
    rng = np.random.default_rng(len(features))
    return NodeSums(
        np.array(features, np.int32),
        np.array(rows, np.float64).reshape(-1, 3),
        rng.integers(-9, 9, (numeric, N_BINS, 4)).astype(float),
        rng.integers(-9, 9, (contexts, 4)).astype(float),
    )


def sums_of(packed, n_features: int):
    """What an owner of so many features adds up."""
    touched = nothing_touched(n_features)
    n_touched = add_packed(touched, packed, 0)
    return touched.sums, touched.listed[:n_touched]


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    first=st.sampled_from([0, 3, 70_000]),
    n_owned=st.sampled_from([5, 65_536, 65_537]),
    numeric=st.integers(0, 2),
    contexts=st.integers(0, 3),
    n_nodes=st.integers(0, 3),
    shift=st.integers(0, 7),
)
def test_what_is_unpacked_is_what_was_packed(
    data, first, n_owned, numeric, contexts, n_nodes, shift
):
    nodes = []
    for _ in range(n_nodes):
        own = sorted(data.draw(st.sets(st.integers(0, n_owned - 1), max_size=5)))
        rows = [data.draw(st.tuples(numbers, numbers, counts)) for _ in own]
        nodes.append(node_of([first + f for f in own], rows, numeric, contexts))
    message = pack_sums(nodes, first, n_owned)
    # as it may come by mail: anywhere in memory
    moved = np.zeros(len(message) + shift, np.uint8)[shift:]
    moved[:] = message
    found = unpack_sums(moved)
    assert len(found) == n_nodes
    for node, packed in zip(nodes, found, strict=True):
        sums, listed = sums_of(packed, n_owned)
        np.testing.assert_array_equal(listed, node.features - first)
        np.testing.assert_array_equal(sums[listed, :3], node.sums)
        np.testing.assert_array_equal(packed.bins, node.bins)
        np.testing.assert_array_equal(packed.contexts, node.contexts)


def test_features_of_few_rows_travel_in_half_of_the_bytes():
    features = list(range(0, 60_000, 3))
    node = node_of(features, [(f - 30_000, f, 1 + f % 200) for f in features], 0, 0)
    message = pack_sums([node], 0, 60_000)
    assert message.nbytes <= 0.5 * (node.features.nbytes + node.sums.nbytes)


@pytest.mark.parametrize("n_owned", [10, 100_000])
def test_a_message_that_cannot_be_written_to_is_read(n_owned):
    node = node_of([2, 7], [(5, 6, 1), (2**50, 3, 2)], 1, 2)
    message = pack_sums([node], 0, n_owned)
    message.flags.writeable = False
    (packed,) = unpack_sums(message)
    sums, listed = sums_of(packed, n_owned)
    np.testing.assert_array_equal(sums[listed, :3], node.sums)
