"""Splits that never change: a record's place depends on a hash of its key alone.

No random number generator is used, whose stream might differ in another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from spacy_treecrf.corpora.record import Record, Splits


def hash_share(key: str, salt: str) -> float:
    """A number from 0 to 1 that looks random, always the same for a key and a salt."""
    digest = hashlib.blake2b(f"{salt}\n{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def by_hash(records: Iterable[Record], dev: float = 0.1, test: float = 0.1) -> Splits:
    """These shares of the keys; a key stays where it is when others come and go."""
    splits: Splits = {"train": [], "dev": [], "test": []}
    for record in records:
        share = hash_share(record.key, "split")
        part = "test" if share < test else "dev" if share < test + dev else "train"
        splits[part].append(record)
    return splits


def by_size(records: Sequence[Record], sizes: dict[str, int | None], seed: int) -> Splits:
    """As many records for each part as it asks for, None: all that are left; the rest is unused.

    All records of a key come together: a key that would be too many for a part is passed over.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.key, []).append(record)
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
                f"treecrf: the {part} part of the split needs {size} records, and only "
                f"{len(splits[part])} of the {len(records)} are left for it; use the whole corpus"
            )
        keys = passed
    return splits


def hold_out(splits: Splits, share: float) -> Splits:
    """The splits, where "dev" is empty with this share of the keys of "train" as "dev"."""
    if not 0 <= share < 1:
        raise ValueError(f"treecrf: dev_share is {share}; use a number from 0 to below 1")
    if splits["dev"] or not share:
        return splits
    train: list[Record] = []
    dev: list[Record] = []
    for record in splits["train"]:
        (dev if hash_share(record.key, "dev") < share else train).append(record)
    return {**splits, "train": train, "dev": dev}
