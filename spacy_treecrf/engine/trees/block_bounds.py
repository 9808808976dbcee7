"""Upper bounds on the gains of whole blocks of features, so that a search can pass over them.

With G, H of a node and g, h (hessian + penalty) of a feature that splits off, the gain of the split
plus that of the unsplit node is g^2/h + (G - g)^2/(H - h). A block keeps the largest g^2/h, the
lowest and highest g and the largest h of its features, which bound both terms for any node. When
sums shrink because rows leave, these may be too wide, but never too narrow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel

BLOCK_BITS = 7
BLOCK = 1 << BLOCK_BITS  # features
# Lists with fewer features are searched without bounds: most of them are searched once.
MIN_FEATURES = 16 * BLOCK
LEAST = np.float32(1e-30)  # instead of a hessian of 0 without a penalty


@kernel
def number_of_blocks(n_features: int) -> int:
    """Return how many blocks hold so many features."""
    return (n_features + BLOCK - 1) // BLOCK


@kernel
def forget(bounds: npt.NDArray[np.float32]) -> None:
    """Make the bounds those of blocks of which nothing is known. bounds: (n_blocks, 4)"""
    for block in range(len(bounds)):
        bounds[block, 0] = np.inf


@kernel(error_model="numpy")
def widen(bounds: npt.NDArray[np.float32], at: int, g: np.float32, h: np.float32) -> None:
    """Widen a block's bounds for the new sums of one feature, whose h has not grown.

    at: the feature's place in the list.
    """
    own = bounds[at >> BLOCK_BITS]
    own[0] = max(own[0], g * g / (h + LEAST))
    own[1] = min(own[1], g)
    own[2] = max(own[2], g)


@kernel(error_model="numpy", fastmath={"nnan", "nsz"})
def tighten(
    bounds: npt.NDArray[np.float32], quick: npt.NDArray[np.float32], first: int, last: int
) -> None:
    """Set the exact bounds of the block first, ..., last - 1. quick: (2, n) see node_features."""
    ratio = low_g = high_g = high_h = np.float32(0.0)
    for i in range(first, last):
        g = quick[0, i]
        h = quick[1, i]
        ratio = max(ratio, g * g / (h + LEAST))
        low_g = min(low_g, g)
        high_g = max(high_g, g)
        high_h = max(high_h, h)
    own = bounds[first >> BLOCK_BITS]
    own[0], own[1], own[2], own[3] = ratio, low_g, high_g, high_h


@kernel(error_model="numpy")
def may_reach(
    own: npt.NDArray[np.float32], node_g: np.float32, node_h: np.float32, bar: np.float32
) -> bool:
    """Return whether a feature of the block may reach the bar.

    own: (4,) the block's bounds. node_h: with the penalties of both sides.
    """
    if own[0] == np.inf:
        return True
    left_g = max(node_g - own[1], own[2] - node_g)
    left_h = node_h - own[3]
    # where next to nothing is left of the hessian, single precision says nothing
    if left_h < np.float32(0.1) * node_h:
        return True
    return bool(own[0] + left_g * left_g / left_h >= bar)
