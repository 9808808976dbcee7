"""A model of sequences of symbols: n-grams with interpolated, modified Kneser-Ney smoothing.

P(symbol | history) is that of the longest history that was seen, discounted, plus what the discount
left over times that of the next shorter history (Chen and Goodman 1999). Histories begin at most
where the sequence does; its end is a symbol, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.storage.state_reader import StateReader

BEGIN, END, UNKNOWN = range(3)  # symbols of every model; others count from FIRST on
FIRST = 3
LEAST = 1e-12  # no probability is smaller
MAX_ORDER = 12

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Grams:
    """The n-grams of one length.

    The key of an n-gram is the place of its first n - 1 symbols in the table of that length, times
    the number of symbols, plus its last symbol; keys rise.
    """

    keys: Ints
    probability: npt.NDArray[np.float32]  # of the last symbol after the others
    backoff: npt.NDArray[np.float32]  # the factor of shorter histories, where this one is too long

    def places(self, keys: Ints) -> Ints:
        """The places of keys in the table; -1: not there."""
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, -1)


@dataclass(frozen=True)
class Framed:
    """Sequences of symbols end to end, each from BEGIN to END."""

    symbols: Ints
    starts: Ints  # shape: (n_sequences,), where each begins

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Framed:
        symbols = [s for sequence in sequences for s in (BEGIN, *sequence, END)]
        lengths = np.array([len(sequence) + 2 for sequence in sequences], np.int64)
        return cls(np.array(symbols, np.int64), np.cumsum(lengths) - lengths)

    @classmethod
    def of_flat(cls, symbols: Ints, lengths: Ints) -> Framed:
        """The same of symbols that are end to end already, and the lengths of their sequences."""
        starts = np.cumsum(lengths + 2) - lengths - 2
        framed = np.full(len(symbols) + 2 * len(lengths), END, np.int64)
        framed[starts] = BEGIN
        inside = np.arange(len(symbols)) + 2 * np.repeat(np.arange(len(lengths)), lengths) + 1
        framed[inside] = symbols
        return cls(framed, starts)

    def positions(self) -> Ints:
        """The number of symbols before each one in its sequence."""
        lengths = np.diff(self.starts, append=len(self.symbols))
        return np.arange(len(self.symbols)) - np.repeat(self.starts, lengths)


class NgramModel:
    """P(sequence of symbols).

    n_symbols: The number of symbols, with BEGIN, END and UNKNOWN.
    grams: Those of length 1, which are all symbols, then those of length 2, and so on.
    """

    def __init__(self, n_symbols: int, grams: Sequence[Grams]) -> None:
        self.n_symbols = n_symbols
        self.grams = list(grams)

    @property
    def n_grams(self) -> int:
        return sum(len(grams.keys) for grams in self.grams)

    def log_probabilities(self, data: Framed) -> Floats:
        """log P of each sequence. shape: (n_sequences,)"""
        if not len(data.starts):
            return np.zeros(0)
        logs = np.log(self.probabilities(data))
        logs[data.starts] = 0.0
        return np.asarray(np.add.reduceat(logs, data.starts))

    def probabilities(self, data: Framed) -> Floats:
        """P(symbol | all before it) of each symbol; 1 for BEGIN. shape: (n_symbols,)"""
        positions = data.positions()
        history = data.symbols  # the longest n-gram so far that ends here; its place in its table
        found = self.grams[0].probability[data.symbols].astype(float)
        for length, (shorter, grams) in enumerate(pairwise(self.grams), start=2):
            if not len(grams.keys):  # no sequence was that long
                break
            history = np.concatenate([[-1], history[:-1]])
            history[positions < length - 1] = -1
            places = grams.places(history * self.n_symbols + data.symbols)
            left = np.where(history >= 0, shorter.backoff[history], 1.0)
            found = np.where(places >= 0, grams.probability[places], left * found)
            history = places
        found[data.starts] = 1.0
        return found

    def to_state(self) -> dict[str, Any]:
        return {
            "grams": [
                {
                    "keys": np.diff(grams.keys, prepend=0),  # small numbers, which pack well
                    "probability": grams.probability,
                    "backoff": grams.backoff,
                }
                for grams in self.grams
            ],
        }

    @classmethod
    def from_state(cls, reader: StateReader, n_symbols: int) -> NgramModel:
        tables = reader.nested_list("grams")
        if not 1 <= len(tables) <= MAX_ORDER:
            reader.fail("grams", f"1 to {MAX_ORDER} tables", f"{len(tables)}")
        grams: list[Grams] = []
        shorter = 1
        for table in tables:
            steps = table.array("keys", np.int64, (None,), 0, shorter * n_symbols)
            keys = np.cumsum(steps)
            if len(keys) and ((steps[1:] < 1).any() or not 0 <= keys[-1] < shorter * n_symbols):
                table.fail("keys", "rising keys of n-grams", "others")
            probability = table.array("probability", np.float32, (len(keys),), LEAST / 2, 1)
            backoff = table.array("backoff", np.float32, (len(keys),), LEAST / 2, 2 / LEAST)
            grams.append(Grams(keys, probability, backoff))
            shorter = len(keys)
        if len(grams[0].keys) != n_symbols:
            reader.fail("grams", f"all {n_symbols} symbols in the first", f"{len(grams[0].keys)}")
        return cls(n_symbols, grams)
