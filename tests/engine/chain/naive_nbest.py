"""The n best label sequences by sorting: each context keeps its n best paths at each position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Chain, potential, step_potentials

Path = tuple[int, ...]


def naive_nbest(
    scores: npt.NDArray[np.float32], chain: Chain, n: int
) -> tuple[list[Path], list[float]]:
    """Paths and their scores, best first; of equals those from lower contexts, then labels."""
    steps = step_potentials(chain)
    n_labels, order, length = chain.n_labels, chain.order, len(scores)
    stride = max(1, n_labels**order // n_labels)
    lists: dict[int, list[tuple[float, Path]]] = {0: [(0.0, ())]}
    for t in range(length):
        after: dict[int, list[tuple[float, Path]]] = {}
        for c in sorted(lists):
            for y in range(n_labels):
                step = potential(scores, 0, length, t, c, y, steps)
                following = n_labels * (c % stride) + min(1, order) * y
                after.setdefault(following, []).extend(
                    (value + step, (*path, y)) for value, path in lists[c] if value + step > -np.inf
                )
        lists = {c: _best(found, n) for c, found in after.items()}
    best = _best([path for c in sorted(lists) for path in lists[c]], n)
    return [path for _, path in best], [value for value, _ in best]


def _best(found: list[tuple[float, Path]], n: int) -> list[tuple[float, Path]]:
    return sorted(found, key=lambda item: -item[0])[:n]
