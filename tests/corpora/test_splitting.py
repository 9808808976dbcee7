"""Splits: of the right sizes, with each key on one side, and always the same."""

from __future__ import annotations

from itertools import combinations

import pytest

from spacy_treecrf.corpora import LabelledSequence, Splits
from spacy_treecrf.corpora.splitting import by_hash, by_size, hash_share, with_dev_part


def sequences(n: int, repeats: int = 1) -> list[LabelledSequence]:
    return [LabelledSequence([f"w{i}"], {}, key=f"w{i}") for i in range(n) for _ in range(repeats)]


def keys(splits: Splits) -> dict[str, set[str]]:
    return {part: {sequence.key for sequence in found} for part, found in splits.items()}


def assert_disjoint(splits: Splits) -> None:
    for one, other in combinations(keys(splits).values(), 2):
        assert not one & other


def test_hash_never_changes() -> None:
    """Published figures depend on these numbers."""
    assert hash_share("photograph", "split") == pytest.approx(0.3482124653901286, abs=1e-12)
    assert hash_share("photograph", "sample") != hash_share("photograph", "split")


def test_split_by_hash_has_about_the_shares_and_stays_when_sequences_come() -> None:
    small, large = by_hash(sequences(2000, 2)), by_hash(sequences(4000, 2))
    assert_disjoint(large)
    for part in ("train", "dev", "test"):
        assert keys(small)[part] <= keys(large)[part]
    assert sum(map(len, large.values())) == 8000
    assert 700 < len(large["test"]) < 900
    assert 700 < len(large["dev"]) < 900


def test_split_by_size_is_exact_and_disjoint_and_follows_the_seed() -> None:
    every = sequences(100, 3) + sequences(120)[100:]
    splits = by_size(every, {"train": 100, "test": 50, "dev": None}, seed=0)
    assert {part: len(found) for part, found in splits.items()} == {
        "train": 100,
        "test": 50,
        "dev": len(every) - 150,
    }
    assert_disjoint(splits)
    assert keys(splits) == keys(by_size(every[::-1], {"train": 100, "test": 50, "dev": None}, 0))
    assert keys(splits) != keys(by_size(every, {"train": 100, "test": 50, "dev": None}, seed=1))


def test_split_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^treecrf: the test part of the split needs 5 sequences"):
        by_size(sequences(10), {"train": 8, "test": 5}, seed=0)


def test_dev_is_held_out_of_train_where_there_is_none() -> None:
    splits: Splits = {"train": sequences(500, 2), "dev": [], "test": []}
    held = with_dev_part(splits, 0.2)
    assert_disjoint(held)
    assert len(held["train"]) + len(held["dev"]) == 1000
    assert 140 < len(held["dev"]) < 260
    assert with_dev_part(splits, 0.0) is splits
    assert with_dev_part(held, 0.5) is held


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
def test_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: dev_share is"):
        with_dev_part({"train": [], "dev": [], "test": []}, share)
