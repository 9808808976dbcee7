"""Splits that never change: the part of a sequence depends on a hash of its key alone.

No random number generator is used, whose stream might differ in another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits


def hash_share(key: str, salt: str) -> float:
    """A number from 0 to 1 that looks random, always the same for a key and a salt."""
    digest = hashlib.blake2b(f"{salt}\n{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def by_hash(sequences: Iterable[LabelledSequence], dev: float = 0.1, test: float = 0.1) -> Splits:
    """A split with these shares of the keys; a key stays in its part when others come and go."""
    splits: Splits = {"train": [], "dev": [], "test": []}
    for sequence in sequences:
        share = hash_share(sequence.key, "split")
        part = "test" if share < test else "dev" if share < test + dev else "train"
        splits[part].append(sequence)
    return splits


def by_size(
    sequences: Sequence[LabelledSequence], sizes: dict[str, int | None], seed: int
) -> Splits:
    """A split with as many sequences in each part as `sizes` says; None: all that are left.

    All sequences of a key come together: a key that would be too many for a part is passed over.
    """
    groups: dict[str, list[LabelledSequence]] = {}
    for sequence in sequences:
        groups.setdefault(sequence.key, []).append(sequence)
    keys = sorted(groups, key=lambda key: (hash_share(key, f"seed {seed}"), key))
    splits: Splits = {"train": [], "dev": [], "test": []}
    for part, size in sizes.items():
        passed = []
        for key in keys:
            if size is None or len(splits[part]) + len(groups[key]) <= size:
                splits[part] += groups[key]
            else:
                passed.append(key)
        if size is not None and len(splits[part]) < size:
            raise ValueError(
                f"treecrf: the {part} part of the split needs {size} sequences, and only "
                f"{len(splits[part])} of the {len(sequences)} are left for it; use the whole corpus"
            )
        keys = passed
    return splits


def with_dev_part(splits: Splits, share: float) -> Splits:
    """The splits; an empty "dev" gets this share of the keys of "train"."""
    if not 0 <= share < 1:
        raise ValueError(f"treecrf: dev_share is {share}; use a number from 0 to below 1")
    if splits["dev"] or not share:
        return splits
    train: list[LabelledSequence] = []
    dev: list[LabelledSequence] = []
    for sequence in splits["train"]:
        (dev if hash_share(sequence.key, "dev") < share else train).append(sequence)
    return {**splits, "train": train, "dev": dev}
