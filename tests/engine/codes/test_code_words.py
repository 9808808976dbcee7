"""Code matrices are valid and come again; decodings find the nearest code word."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.codes.code_words import (
    KINDS,
    auto_bits,
    is_valid,
    label_scores,
    least_bits,
    make_code,
    n_different_bits,
    row_separation,
)


def naive_faults(code) -> list[str]:
    """What is wrong with a code, pair by pair."""
    faults = [f"bit {j} is constant" for j, c in enumerate(code.T) if len(set(c)) == 1]
    for (i, a), (j, b) in itertools.combinations(enumerate(code.T), 2):
        if np.array_equal(a, b) or np.array_equal(a, 1 - b):
            faults.append(f"bits {i} and {j}")
    for (i, a), (j, b) in itertools.combinations(enumerate(code), 2):
        if np.array_equal(a, b):
            faults.append(f"rows {i} and {j}")
    return faults


@settings(max_examples=60, deadline=None)
@given(n_labels=st.integers(3, 20), seed=st.integers(0, 99), data=st.data())
def test_random_codes_are_valid_with_any_number_of_bits(n_labels, seed, data) -> None:
    most = min(n_different_bits(n_labels), 25)
    bits = data.draw(st.integers(least_bits(n_labels), most))
    code = make_code("random", n_labels, bits, seed)
    assert code.shape == (n_labels, bits)
    assert set(np.unique(code)) <= {0, 1}
    assert naive_faults(code) == []
    assert np.array_equal(code, make_code("random", n_labels, bits, seed))


@pytest.mark.parametrize("n_labels", [3, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_valid_by_default(kind, n_labels) -> None:
    code = make_code(kind, n_labels)
    assert naive_faults(code) == []
    sizes = {"one_per_class": n_labels, "exhaustive": 2 ** (n_labels - 1) - 1}
    assert code.shape[1] == sizes.get(kind, auto_bits(n_labels))


def test_hundreds_of_labels_with_the_fewest_bits() -> None:
    code = make_code("random", 256, 8)
    assert sorted({tuple(row) for row in code.tolist()}) == list(
        itertools.product((0, 1), repeat=8)
    )
    assert naive_faults(make_code("random", 300, 9)) == []


def test_distant_codes_are_further_apart() -> None:
    plain = [row_separation(make_code("random", 40, 20, seed)) for seed in range(5)]
    distant = [row_separation(make_code("distant", 40, 20, seed)) for seed in range(5)]
    assert all(d >= p for d, p in zip(distant, plain, strict=True))
    assert sum(distant) >= sum(plain) + 5


def test_separation_is_the_smallest_distance() -> None:
    code = make_code("random", 12, 9)
    distances = [int(np.sum(a != b)) for a, b in itertools.combinations(code, 2)]
    assert row_separation(code) == min(distances)


@pytest.mark.parametrize(
    ("bad", "at"), [("constant", 1), ("equal", 1), ("complement", 1), ("rows", 0)]
)
def test_invalid_codes_are_seen(bad, at) -> None:
    code = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], np.uint8)
    assert is_valid(code)
    if bad == "constant":
        code[:, at] = 1
    elif bad == "rows":
        code[at] = code[3]
    else:
        code[:, at] = code[:, 0] ^ (bad == "complement")
    assert not is_valid(code)


@pytest.mark.parametrize(
    ("kind", "n_labels", "bits", "says"),
    [
        ("random", 20, 4, "use 5 bits or more"),
        ("random", 3, 4, "only 3 different bits"),
        ("random", 2, None, "3 labels or more"),
        ("random", 1, None, "3 labels or more"),
        ("exhaustive", 30, None, "up to 8 labels"),
        ("one_per_class", 5, 6, "has 5 bits"),
        ("hadamard", 5, None, "one of random"),
    ],
)
def test_impossible_codes_are_refused(kind, n_labels, bits, says) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: .*{says}"):
        make_code(kind, n_labels, bits)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_scores_are_those_of_the_definitions(seed) -> None:
    rng = np.random.default_rng(seed)
    code = make_code("random", 6, 7, seed % 7)
    p = rng.uniform(0.01, 0.99, (5, 7)).astype(np.float32)
    for t, y in itertools.product(range(5), range(6)):
        l1 = sum(abs(float(p[t, j]) - code[y, j]) for j in range(7))
        hamming = sum(int(p[t, j] > 0.5) != code[y, j] for j in range(7))
        likelihood = sum(
            np.log(float(p[t, j]) if code[y, j] else 1 - float(p[t, j])) for j in range(7)
        )
        for name, value in (("l1", -l1), ("hamming", -hamming), ("likelihood", likelihood)):
            assert label_scores(p, code, name)[t, y] == pytest.approx(value, abs=1e-4), name


def test_sure_bits_give_finite_scores() -> None:
    code = make_code("exhaustive", 3)
    scores = label_scores(np.array([[0.0, 1.0, 1.0]], np.float32), code, "likelihood")
    assert np.isfinite(scores).all()
