"""Limits and choices that settings and kernels share.

This module imports nothing, so that settings can be read without numba and numpy: spaCy asks for
them whenever it makes a pipeline, and the command line for its help.
"""

from __future__ import annotations

MAX_ORDER = 4  # previous labels that a label may depend on
MAX_LEAVES = 2**15  # of a tree
TO_THE_END = 2**31 - 1  # as a bag of future positions: all that follow
CONSTRAINTS = ("none", "observed", "bio", "biluo")  # on transitions between labels
MAX_NBEST = 100_000  # label sequences that an n-best list may have
MAX_NBEST_LABELS = 2**25  # labels that the n-best list of a sequence or doc may have in all
# Calls of a pipe or a model before it takes the quick way for few tokens, whose kernels take
# seconds to compile: the first predictions after an installation should not wait for them.
QUICK_AFTER = 8


def check_nbest(n: object) -> int:
    """The n of an n-best list as an int; refused if it is none, or out of range."""
    if isinstance(n, bool) or not hasattr(n, "__index__") or not 1 <= n.__index__() <= MAX_NBEST:
        raise ValueError(f"treecrf: nbest got n={n!r}; use a whole number from 1 to {MAX_NBEST}")
    return int(n.__index__())


def check_nbest_labels(n: int, length: int) -> None:
    """Refuse an n-best list of n labellings of so many positions that it would not fit."""
    if n > 1 and n * length > MAX_NBEST_LABELS:
        raise ValueError(
            f"treecrf: nbest got n={n} for {length} positions; use n of at most "
            f"{max(1, MAX_NBEST_LABELS // length)} there, or shorter sequences"
        )
