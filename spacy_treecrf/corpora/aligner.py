"""Letters aligned with phonemes by expectation maximisation: one label for each letter.

A letter stands for nothing ("_"), for one phoneme ("K"), or for two ("K-S", the x of "box"), in
order. The model is P(what a letter stands for | the letter), without regard to stress, learned from
words and their phonemes alone. A second pass rules out what hardly ever happens: this keeps the
labels few, and sets words aside that are not spelled as they sound ("ibm", "mrs").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SILENT = "_"
JOINT = "-"
# Two phonemes start out as this much less likely than one: a letter learns to stand for both only
# where the letters around it cannot stand for one of them.
JOINT_START = 0.01

Pair = tuple[str, Sequence[str]]  # a spelling and its phonemes
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Group:
    """Words of n letters and m phonemes; ids are places in the table of probabilities."""

    places: list[int]  # the index of each word in the list of all words
    silent: Ids  # shape: (words, n)
    single: Ids  # shape: (words, n, m): letter i stands for phoneme j
    joint: Ids  # shape: (words, n, m - 1): letter i stands for phonemes j and j + 1

    def __post_init__(self) -> None:
        assert self.single.shape[:2] == self.silent.shape == self.joint.shape[:2]


@dataclass
class Aligner:
    """A learned table of P(what a letter stands for | the letter).

    likelihoods: The log-likelihood of all words, by pass and round; in a pass it never falls.
    """

    letters: dict[str, int]
    phonemes: dict[str, int]
    table: Floats  # shape: (letters * chunks,): P(chunk | letter)
    likelihoods: list[list[float]]

    @property
    def n_chunks(self) -> int:
        return 1 + len(self.phonemes) + len(self.phonemes) ** 2

    def align(self, pairs: Sequence[Pair]) -> list[list[str] | None]:
        """A label for each letter of each word; None for a word that cannot be aligned."""
        aligned: list[list[str] | None] = [None] * len(pairs)
        for group in self._groups(pairs):
            sizes, possible = _best_sizes(self.table, group)
            for place, row, found in zip(group.places, sizes, possible, strict=True):
                if found:
                    aligned[place] = _labels(pairs[place][1], row.tolist())
        return aligned

    def _groups(self, pairs: Sequence[Pair]) -> list[_Group]:
        """The words grouped by their lengths, without those that have no alignment at all."""
        places = defaultdict(list)
        for place, (spelling, phonemes) in enumerate(pairs):
            known = set(spelling) <= self.letters.keys()
            known &= {without_stress(p) for p in phonemes} <= self.phonemes.keys()
            if known and spelling and len(phonemes) <= 2 * len(spelling):
                places[len(spelling), len(phonemes)].append(place)
        return [self._group(pairs, places[lengths]) for lengths in sorted(places)]

    def _group(self, pairs: Sequence[Pair], places: list[int]) -> _Group:
        n_phonemes = len(self.phonemes)
        spelled = [[self.letters[letter] for letter in pairs[place][0]] for place in places]
        spoken = [[self.phonemes[without_stress(p)] for p in pairs[place][1]] for place in places]
        start = np.array(spelled, np.int32) * np.int32(self.n_chunks)
        sounds = np.array(spoken, np.int32).reshape(len(places), 1, -1)
        twos = 1 + n_phonemes + n_phonemes * sounds[:, :, :-1] + sounds[:, :, 1:]
        return _Group(places, start, start[:, :, None] + 1 + sounds, start[:, :, None] + twos)


def fit_aligner(
    pairs: Sequence[Pair],
    rounds: int = 8,
    min_share: float = 1.5e-4,
    min_joint_share: float = 5e-4,
    report: Callable[[str], None] | None = None,
) -> Aligner:
    """Learn what letters stand for.

    rounds: The number of rounds of expectation maximisation in each of the two passes.
    min_share: How often a letter has to stand for something, as a share of the words, to do so in
        the second pass.
    min_joint_share: The same for two given phonemes.
    report: A function that gets a line of text for each round.
    """
    letters = _numbered(letter for spelling, _ in pairs for letter in spelling)
    phonemes = _numbered(without_stress(p) for _, spoken in pairs for p in spoken)
    if not letters or not phonemes:
        raise ValueError("treecrf: there is nothing to align; give words with their phonemes")
    aligner = Aligner(letters, phonemes, np.zeros(0), [])
    chunks = aligner.n_chunks
    groups = aligner._groups(pairs)
    start = np.ones(chunks)
    start[1 + len(phonemes) :] = JOINT_START
    aligner.table = _normalised(np.tile(start, len(letters)), chunks)
    for name in ("first", "second"):
        likelihoods = []
        counts = np.zeros(0)
        for i in range(rounds):
            counts, likelihood = expected_counts(aligner.table, groups)
            aligner.table = _normalised(counts, chunks)
            likelihoods.append(likelihood)
            if report is not None:
                report(f"alignment, {name} pass, round {i + 1}: log-likelihood {likelihood:.0f}")
        aligner.likelihoods.append(likelihoods)
        if name == "first":
            least = np.full(chunks, min_share * len(pairs))
            least[0] = 0.0  # any letter may be silent
            least[1 + len(phonemes) :] = min_joint_share * len(pairs)
            kept = np.where(counts >= np.tile(least, len(letters)), counts, 0.0)
            aligner.table = _normalised(kept, chunks)
    return aligner


def expected_counts(table: Floats, groups: Iterable[_Group]) -> tuple[Floats, float]:
    """How often each letter stands for each chunk, and the log-likelihood of all words.

    Words that the table rules out count for neither.
    """
    counts = np.zeros_like(table)
    total = 0.0
    for group in groups:
        silent, single, joint, logs = _posteriors(table, group)
        for ids, weights in (
            (group.silent, silent),
            (group.single, single),
            (group.joint, joint),
        ):
            counts += np.bincount(ids.ravel(), weights.ravel(), len(table))
        total += float(logs.sum())
    return counts, total


def _posteriors(table: Floats, group: _Group) -> tuple[Floats, Floats, Floats, Floats]:
    """Probabilities of what each letter stands for, and the words' log-likelihoods (0: ruled out).

    Forward and backward passes go over the letters; every step handles all words and phonemes.
    """
    silent, single, joint = table[group.silent], table[group.single], table[group.joint]
    words, n, m = single.shape
    forward = np.zeros((n + 1, words, m + 1))  # [i, :, j]: i letters stand for j phonemes
    forward[0, :, 0] = 1.0
    logs = np.zeros(words)
    alive = np.ones(words, bool)
    for i in range(n):
        after = _forward_step(forward[i], silent[:, i], single[:, i], joint[:, i], np.add)
        scale = after.sum(axis=1)
        alive &= scale > 0
        scale[scale == 0] = 1.0
        forward[i + 1] = after / scale[:, None]
        logs += np.log(scale)
    last = forward[n, :, m]
    alive &= last > 0
    logs = np.where(alive, logs + np.log(np.where(alive, last, 1.0)), 0.0)

    backward = np.zeros((words, m + 1))
    backward[:, m] = 1.0
    for i in range(n - 1, -1, -1):
        before = forward[i]
        silent_i = before * silent[:, i, None] * backward  # letter i is silent after j phonemes
        single[:, i] *= before[:, :-1] * backward[:, 1:]
        joint[:, i] *= before[:, :-2] * backward[:, 2:]
        new = backward * silent[:, i, None]
        new[:, :-1] += table[group.single[:, i]] * backward[:, 1:]
        new[:, :-2] += table[group.joint[:, i]] * backward[:, 2:]
        scale = new.sum(axis=1)
        backward = new / np.where(scale > 0, scale, 1.0)[:, None]
        # Every letter stands for exactly one thing: its probabilities sum to one.
        whole = silent_i.sum(axis=1) + single[:, i].sum(axis=1) + joint[:, i].sum(axis=1)
        share = np.where(alive & (whole > 0), 1.0 / np.where(whole > 0, whole, 1.0), 0.0)
        silent[:, i] = silent_i.sum(axis=1) * share
        single[:, i] *= share[:, None]
        joint[:, i] *= share[:, None]
    return silent, single, joint, logs


def _forward_step(
    before: Floats, silent: Floats, single: Floats, joint: Floats, combine: np.ufunc
) -> Floats:
    after = before * silent[:, None]
    after[:, 1:] = combine(after[:, 1:], before[:, :-1] * single)
    after[:, 2:] = combine(after[:, 2:], before[:, :-2] * joint)
    return after


def _best_sizes(table: Floats, group: _Group) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """How many phonemes each letter stands for in the best alignment, and whether there is one."""
    silent, single, joint = table[group.silent], table[group.single], table[group.joint]
    words, n, m = single.shape
    best = np.zeros((words, m + 1))
    best[:, 0] = 1.0
    choices = np.zeros((n, words, m + 1), np.int8)
    for i in range(n):
        scores = np.zeros((3, words, m + 1))
        scores[0] = best * silent[:, i, None]
        scores[1, :, 1:] = best[:, :-1] * single[:, i]
        scores[2, :, 2:] = best[:, :-2] * joint[:, i]
        choices[i] = scores.argmax(axis=0)
        best = scores.max(axis=0)
        top = best.max(axis=1, keepdims=True)
        best /= np.where(top > 0, top, 1.0)
    sizes = np.zeros((words, n), np.int8)
    place = np.full(words, m)
    rows = np.arange(words)
    for i in range(n - 1, -1, -1):
        sizes[:, i] = choices[i, rows, place]
        place -= sizes[:, i]
    return sizes, best[:, m] > 0


def _labels(phonemes: Sequence[str], sizes: Sequence[int]) -> list[str]:
    labels = []
    place = 0
    for size in sizes:
        labels.append(JOINT.join(phonemes[place : place + size]) or SILENT)
        place += size
    return labels


def without_stress(phoneme: str) -> str:
    return phoneme.rstrip("012")


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(sorted(set(names)))}


def _normalised(counts: Floats, chunks: int) -> Floats:
    by_letter = counts.reshape(-1, chunks)
    totals = by_letter.sum(axis=1, keepdims=True)
    return np.asarray((by_letter / np.where(totals > 0, totals, 1.0)).ravel())
