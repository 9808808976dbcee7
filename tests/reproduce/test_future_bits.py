"""The problems XOR, OR and EXTRA of Hao 2009, section 5.4.1."""

from __future__ import annotations

import pytest

from scripts.reproduce.future_bits import (
    PROBLEMS,
    FutureBits,
    bit_features,
    future_bits_splits,
)


def local_and_bag(words: list[str], bag: int) -> list[tuple[int, bool]]:
    """The used bits that are set, and the bag label, at each position, as the paper puts it."""
    found = []
    for t in range(len(words)):
        own = sum(bit == "1" for bit in words[t][:6])
        positive = False
        for j in range(1, bag + 1):
            if t + j < len(words) and sum(bit == "1" for bit in words[t + j][:6]) <= 1:
                positive = True
        found.append((own, positive))
    return found


@pytest.mark.parametrize("bag", [1, 6])
@pytest.mark.parametrize("problem", sorted(PROBLEMS))
def test_labels_are_what_the_paper_says(problem: str, bag: int) -> None:
    for sequence in FutureBits(problem, length=12, bag=bag, seed=3).sample(30):
        for label, (own, positive) in zip(
            sequence.labels["label"], local_and_bag(sequence.words, bag), strict=True
        ):
            local = own >= 4
            expected = {
                "xor": local ^ positive,
                "or": local or positive,
                "extra": own + int(positive) >= 4,
            }
            assert label == str(int(expected[problem]))


def test_half_of_the_bags_are_positive() -> None:
    sequences = FutureBits("or", seed=1).sample(400)
    full = [bag for r in sequences for _, bag in local_and_bag(r.words, 6)[:24]]
    assert sum(full) / len(full) == pytest.approx(0.5, abs=0.03)


def test_parts_have_the_published_sizes_and_differ_and_come_again() -> None:
    splits = future_bits_splits("xor", seed=0)
    assert {part: len(sequences) for part, sequences in splits.items()} == {
        "train": 400,
        "dev": 200,
        "test": 100,
    }
    assert {len(sequence.words) for sequences in splits.values() for sequence in sequences} == {30}
    assert splits["train"][0].words != splits["test"][0].words
    assert splits == future_bits_splits("xor", seed=0)
    assert splits != future_bits_splits("xor", seed=1)


def test_features_are_the_bits_that_are_set() -> None:
    sequence = FutureBits("or", length=5).sample(1)[0]
    for word, features in zip(sequence.words, bit_features(sequence), strict=True):
        assert set(features) == {f"x{i + 1}" for i in range(8) if word[i] == "1"}


@pytest.mark.parametrize("wrong", [{"problem": "and"}, {"length": 0}, {"bag": 0}])
def test_impossible_problems_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: {next(iter(wrong))} is "):
        FutureBits(**{"problem": "xor", **wrong})
