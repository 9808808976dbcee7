"""Random subsets that depend on nothing but a seed and a name: the same on any thread or worker."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.kernel import kernel


@kernel
def mix(seed: np.uint64, item: np.uint64) -> np.uint64:
    """A well-mixed 64-bit hash of the pair (the finalizer of splitmix64)."""
    z = seed + (item + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def chosen(seed: np.uint64, item: int, share: float) -> bool:
    """Whether `item` falls into a random subset that holds the given share of all items."""
    if share >= 1.0:
        return True
    return bool(np.float64(mix(seed, np.uint64(item)) >> np.uint64(11)) < share * 2.0**53)
