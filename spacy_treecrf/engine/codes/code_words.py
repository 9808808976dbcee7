"""Code words: every label as a row of bits, and the distance of bit probabilities to each of them.

A code matrix is K x n (Dietterich and Bakiri 1995): bit j, a column of it, turns the labels into
two classes. A valid code has no constant bit, which would teach nothing, no bit that equals or
complements another, which would teach nothing new, and no two labels of the same code word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]  # shape: (n_labels, n_bits)
Floats = npt.NDArray[np.float32]

KINDS = ("random", "distant", "one_per_class", "exhaustive")
DECODINGS = ("l1", "hamming", "likelihood")
MIN_LABELS = 3
MAX_BITS = 4096
# The 2**(K - 1) - 1 different bits of more labels than this are too many to train.
MAX_EXHAUSTIVE_LABELS = 8
# Matrices that "distant" draws, of which it takes the one whose closest code words differ most.
DRAWS = 200
# "auto" gives so many bits for each bit that the labels' numbers need, but no more than labels.
BITS_PER_BIT = 16
FEWEST_AUTO_BITS = 7
# Probabilities of bits are cut off here: one wrong bit must not outweigh all others.
LEAST_PROBABILITY = 1e-4


def n_different_bits(n_labels: int) -> int:
    """How many bits there can be, none equal or complementary to another, none constant."""
    return int(2 ** (n_labels - 1) - 1)


def least_bits(n_labels: int) -> int:
    """The fewest bits that give every label a code word of its own."""
    return max(1, math.ceil(math.log2(n_labels)))


def auto_bits(n_labels: int) -> int:
    """A good number of bits: it grows with the logarithm of the number of labels."""
    most = min(n_different_bits(n_labels), max(n_labels, FEWEST_AUTO_BITS))
    return min(most, BITS_PER_BIT * least_bits(n_labels))


def check_bits(kind: str, n_labels: int, bits: int | None) -> int:
    """The number of bits of a code of this kind; with bits=None, the kind's own choice."""
    if kind not in KINDS:
        raise ValueError(f"treecrf: setting 'code' is {kind!r}; use one of {', '.join(KINDS)}")
    if n_labels < MIN_LABELS:
        raise ValueError(
            f"treecrf: output codes need {MIN_LABELS} labels or more, and the data have "
            f"{n_labels}; use BoostedCRF, which learns {n_labels} directly"
        )
    if kind in ("one_per_class", "exhaustive"):
        if kind == "exhaustive" and n_labels > MAX_EXHAUSTIVE_LABELS:
            raise ValueError(
                f"treecrf: code='exhaustive' of {n_labels} labels has 2**{n_labels - 1} - 1 "
                f"bits; use it for up to {MAX_EXHAUSTIVE_LABELS} labels, else code='random'"
            )
        own = n_labels if kind == "one_per_class" else n_different_bits(n_labels)
        if bits is not None and bits != own:
            raise ValueError(
                f"treecrf: setting 'bits' is {bits}, but code={kind!r} has {own} bits for "
                f"{n_labels} labels; leave bits at None, or use code='random'"
            )
        return own
    if bits is None:
        return auto_bits(n_labels)
    least = least_bits(n_labels)
    if bits < least:
        raise ValueError(
            f"treecrf: setting 'bits' is {bits}, which makes {2**bits} code words at most for "
            f"{n_labels} labels; use {least} bits or more"
        )
    if bits > min(n_different_bits(n_labels), MAX_BITS):
        raise ValueError(
            f"treecrf: setting 'bits' is {bits}, but {n_labels} labels have only "
            f"{min(n_different_bits(n_labels), MAX_BITS)} different bits; use fewer"
        )
    return bits


def make_code(kind: str, n_labels: int, bits: int | None = None, seed: int = 0) -> Bits:
    """A code matrix of 0 and 1. kind: one of KINDS."""
    n_bits = check_bits(kind, n_labels, bits)
    if kind == "one_per_class":
        return np.eye(n_labels, dtype=np.uint8)
    if kind == "exhaustive":
        return _exhaustive(n_labels)
    draws = _random_codes(n_labels, n_bits, seed)
    if kind == "random":
        return next(draws)
    return max((next(draws) for _ in range(DRAWS)), key=row_separation)


def _exhaustive(n_labels: int) -> Bits:
    """The code of all bits. The first label has 1 in all, so that no bit complements another."""
    numbers = np.arange(n_different_bits(n_labels))
    places = np.arange(n_labels - 2, -1, -1)[:, None]
    rest = (numbers[None, :] >> places) & 1
    return np.concatenate([np.ones((1, len(numbers)), np.uint8), rest.astype(np.uint8)])


def _random_codes(n_labels: int, n_bits: int, seed: int) -> Iterator[Bits]:
    """Valid codes, drawn one after the other."""
    rng = np.random.default_rng([seed, n_labels, n_bits])
    few = n_different_bits(n_labels) <= 4 * n_bits
    every = _exhaustive(n_labels).T if few else None  # drawing would hit few new bits
    while True:
        if every is not None:
            code = every[rng.permutation(len(every))[:n_bits]].T
            code = code ^ rng.integers(0, 2, n_bits, dtype=np.uint8)
        else:
            drawn: dict[bytes, Bits] = {}
            while len(drawn) < n_bits:
                bit = rng.integers(0, 2, n_labels, dtype=np.uint8)
                # A bit and its complement have one name: that of the one which starts with 0.
                drawn.setdefault((bit ^ bit[0]).tobytes(), bit)
                drawn.pop(bytes(n_labels), None)  # the constant bit
            code = np.stack(list(drawn.values()), axis=1)
        different = _apart(code, rng)
        if different is not None:
            yield different


def _apart(code: Bits, rng: np.random.Generator) -> Bits | None:
    """The code with bits of equal rows flipped until all rows differ; None if it becomes invalid.

    Where bits are few, most random codes have some equal rows: drawing anew would not end.
    """
    code = np.ascontiguousarray(code)
    n_labels = len(code)
    used = {row.tobytes() for row in code}
    seen: set[bytes] = set()
    for y in range(n_labels):
        name = code[y].tobytes()
        if name in seen:
            free = _free_word(code[y], used, rng)
            code[y] = free
            name = free.tobytes()
            used.add(name)
        seen.add(name)
    return code if is_valid(code) else None


def _free_word(word: Bits, used: set[bytes], rng: np.random.Generator) -> Bits:
    """A code word that nobody has, reached by flipping single bits at random."""
    word = word.copy()
    while word.tobytes() in used:
        word[rng.integers(len(word))] ^= 1
    return word


def is_valid(code: Bits) -> bool:
    """Whether no bit is constant, no two are equal or complementary, and all code words differ."""
    bits = code ^ code[:1]
    different = len({bit.tobytes() for bit in bits.T}) == code.shape[1]
    return different and bool(bits.any(axis=0).all()) and row_separation(code) > 0


def row_separation(code: Bits) -> int:
    """The number of bits in which the two closest code words differ."""
    signs = code.astype(np.int32) * 2 - 1
    agreement = signs @ signs.T
    np.fill_diagonal(agreement, -code.shape[1])
    return int((code.shape[1] - agreement.max()) // 2)


def label_scores(probabilities: Floats, code: Bits, decoding: str) -> Floats:
    """Scores of labels, higher where the code word is closer. shape: (n_rows, n_labels)

    probabilities: P(bit = 1). shape: (n_rows, n_bits)
    "l1" is minus the L1 distance of probabilities and code word (Dietterich and Bakiri), "hamming"
    minus the number of bits that differ once they are rounded, "likelihood" the logarithm of the
    word's probability if bits were independent.
    """
    p = probabilities.astype(np.float64)
    if decoding == "likelihood":
        p = np.clip(p, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        zero, gain = np.log1p(-p), np.log(p) - np.log1p(-p)
    elif decoding in ("l1", "hamming"):
        if decoding == "hamming":
            p = (p > 0.5).astype(np.float64)
        zero, gain = -p, 2.0 * p - 1.0
    else:
        raise ValueError(
            f"treecrf: setting 'decoding' is {decoding!r}; use one of {', '.join(DECODINGS)}"
        )
    # einsum without optimize never calls BLAS, whose sums vary with its threads
    scores = zero.sum(axis=1)[:, None] + np.einsum("ij,kj->ik", gain, code.astype(np.float64))
    found: Floats = scores.astype(np.float32)
    return found
