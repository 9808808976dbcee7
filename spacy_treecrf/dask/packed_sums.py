"""The sums of nodes as they travel: one array of bytes, half as long as the sums themselves.

Sums are whole numbers. Most features of a node are in few of its rows: then 40 bits hold their
gradient and hessian, and 8 bits their count. A count of 0 says that a feature's sums are among the
wide ones, which are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.rooms import ByteRoom
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.trees.histogram import N_BINS
from spacy_treecrf.engine.trees.node_features import TouchedFeatures
from spacy_treecrf.engine.trees.shared_growth import NodeSums

_HIGH_BITS = 32
_LIMIT = float(1 << 39)  # narrow sums are below it
_MOST_ROWS = 255.0
_SHORT_FEATURES = 1 << 16  # so many features are numbered by 16 bits
_ALIGNMENT = 8

Message = npt.NDArray[np.uint8]


class _Sizes(NamedTuple):
    """What is at the head of a message."""

    n_nodes: int
    n_owned: int  # features that the owner has
    n_features: int  # of all nodes together
    n_wide: int
    n_numeric: int
    n_contexts: int


class PackedNode(NamedTuple):
    """The sums of one node; features are numbered from their owner's first."""

    features: npt.NDArray[np.uint16] | npt.NDArray[np.int32]  # shape: (n,), rising
    counts: npt.NDArray[np.uint8]  # shape: (n,), 0: see `wide`
    low_g: npt.NDArray[np.uint32]  # shape: (n,), the lower bits of the gradient
    low_h: npt.NDArray[np.uint32]
    high_g: npt.NDArray[np.int8]  # shape: (n,), the upper ones, with the sign
    high_h: npt.NDArray[np.int8]
    wide: npt.NDArray[np.float64]  # shape: (n_wide, 3), of features that do not fit, in order
    bins: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 4)
    contexts: npt.NDArray[np.float64]  # shape: (n_contexts, 4)


@step
def _is_wide(sums: npt.NDArray[np.float64]) -> bool:
    """Return whether the sums of a feature do not fit into fewer bits. sums: (3,)"""
    return bool(abs(sums[0]) >= _LIMIT or abs(sums[1]) >= _LIMIT or sums[2] > _MOST_ROWS)


@kernel
def _count_wide(sums: npt.NDArray[np.float64]) -> int:
    n_wide = 0
    for i in range(len(sums)):
        n_wide += _is_wide(sums[i])
    return n_wide


@kernel
def _pack(
    features: npt.NDArray[np.int32], sums: npt.NDArray[np.float64], first: int, packed: PackedNode
) -> None:
    """Write the sums of a node. features: (n,), the owner's first one is `first`. sums: (n, 3)"""
    at = 0
    for i in range(len(features)):
        packed.features[i] = features[i] - first
        if _is_wide(sums[i]):
            packed.counts[i] = 0
            for j in range(3):
                packed.wide[at, j] = sums[i, j]
            at += 1
            continue
        g, h = np.int64(sums[i, 0]), np.int64(sums[i, 1])
        packed.counts[i] = np.uint8(sums[i, 2])
        packed.low_g[i] = np.uint32(g)
        packed.low_h[i] = np.uint32(h)
        packed.high_g[i] = np.int8(g >> _HIGH_BITS)
        packed.high_h[i] = np.int8(h >> _HIGH_BITS)


@kernel
def add_packed(touched: TouchedFeatures, packed: PackedNode, n_touched: int) -> int:
    """Add a worker's sums of features to those touched; return how many are listed now."""
    sums, listed = touched.sums, touched.listed
    at = 0
    for i in range(len(packed.features)):
        f = packed.features[i]
        listed[n_touched] = f
        n_touched += sums[f, 2] == 0.0
        if packed.counts[i] == 0:
            for j in range(3):
                sums[f, j] += packed.wide[at, j]
            at += 1
            continue
        sums[f, 0] += float(np.int64(packed.high_g[i]) << _HIGH_BITS | np.int64(packed.low_g[i]))
        sums[f, 1] += float(np.int64(packed.high_h[i]) << _HIGH_BITS | np.int64(packed.low_h[i]))
        sums[f, 2] += float(packed.counts[i])
    return n_touched


def pack_sums(
    nodes: Sequence[NodeSums], first: int, n_owned: int, room: ByteRoom | None = None
) -> Message:
    """The sums of several nodes. Their owner has the features first, ..., first + n_owned - 1.

    room: For the message, which is there until the next one.
    """
    if not nodes:
        return np.empty(0, np.uint8)
    n_wide = [_count_wide(node.sums) for node in nodes]
    n_features = [len(node.features) for node in nodes]
    sizes = _Sizes(
        len(nodes),
        n_owned,
        sum(n_features),
        sum(n_wide),
        len(nodes[0].bins),
        len(nodes[0].contexts),
    )
    message = (room or ByteRoom()).of(_places(sizes)[-1])
    parts = _cut(message, sizes)
    parts[0][:] = sizes
    parts[1][:] = n_features, n_wide
    for node, packed in zip(nodes, _nodes(parts), strict=True):
        _pack(node.features, node.sums, first, packed)
        packed.bins[:] = node.bins
        packed.contexts[:] = node.contexts
    return message


def unpack_sums(message: Message, room: ByteRoom | None = None) -> list[PackedNode]:
    """The nodes of a message. room: for a copy, if its place in memory does not suit"""
    if not len(message):
        return []
    if message.ctypes.data % _ALIGNMENT or not message.flags.writeable:
        copy = (room or ByteRoom()).of(len(message))
        copy[:] = message
        message = copy
    sizes = _Sizes(*message[: len(_Sizes._fields) * 8].view(np.int64).tolist())
    return _nodes(_cut(message, sizes))


def _shapes(sizes: _Sizes) -> list[tuple[Any, tuple[int, ...]]]:
    """The arrays of a message: its sizes, those of nodes, and the fields of `PackedNode`."""
    n, n_nodes = sizes.n_features, sizes.n_nodes
    feature = np.uint16 if sizes.n_owned <= _SHORT_FEATURES else np.int32
    return [
        (np.int64, (len(sizes),)),
        (np.int64, (2, n_nodes)),
        (feature, (n,)),
        (np.uint8, (n,)),
        *[(np.uint32, (n,))] * 2,
        *[(np.int8, (n,))] * 2,
        (np.float64, (sizes.n_wide, 3)),
        (np.float64, (n_nodes, sizes.n_numeric, N_BINS, 4)),
        (np.float64, (n_nodes, sizes.n_contexts, 4)),
    ]


def _length(dtype: Any, shape: tuple[int, ...]) -> int:
    """Bytes of an array."""
    return int(np.dtype(dtype).itemsize * math.prod(shape))


def _places(sizes: _Sizes) -> list[int]:
    """Where each array of a message begins, and where the last one ends."""
    lengths = (_length(*each) for each in _shapes(sizes))
    return [0, *accumulate(-(-length // _ALIGNMENT) * _ALIGNMENT for length in lengths)]


def _cut(message: Message, sizes: _Sizes) -> list[npt.NDArray[Any]]:
    """The arrays of a message."""
    return [
        message[start : start + _length(dtype, shape)].view(dtype).reshape(shape)
        for start, (dtype, shape) in zip(_places(sizes), _shapes(sizes), strict=False)
    ]


def _nodes(parts: list[npt.NDArray[Any]]) -> list[PackedNode]:
    """The nodes of a message, given its arrays."""
    _, (n_features, n_wide), *of_features, wide, bins, contexts = parts
    found = []
    last, last_wide = 0, 0
    for i, (n, n_own) in enumerate(zip(n_features.tolist(), n_wide.tolist(), strict=True)):
        first, last = last, last + n
        first_wide, last_wide = last_wide, last_wide + n_own
        own = [array[first:last] for array in of_features]
        found.append(PackedNode._make([*own, wide[first_wide:last_wide], bins[i], contexts[i]]))
    return found
