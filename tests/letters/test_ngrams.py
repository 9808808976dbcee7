"""N-gram models: against a plain twin, and sums over all symbols."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.letters.ngram_learning import _discounts, learn_ngrams
from spacy_treecrf.letters.ngram_model import BEGIN, END, FIRST, UNKNOWN, Framed, NgramModel
from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader

Gram = tuple[int, ...]
N_SYMBOLS = FIRST + 4


def sequences(n: int = 150, seed: int = 0) -> list[list[int]]:
    """Sequences of three symbols of the four, some of them empty."""
    draws = np.random.default_rng(seed)
    return [draws.integers(FIRST, FIRST + 3, draws.integers(0, 6)).tolist() for _ in range(n)]


class NaiveKneserNey:
    """Chen and Goodman's formulas on dicts, one n-gram after the other."""

    def __init__(self, data: Sequence[Sequence[int]], order: int) -> None:
        counts: dict[int, Counter[Gram]] = defaultdict(Counter)
        for sequence in data:
            whole = (BEGIN, *sequence, END)
            for n in range(1, order + 1):
                counts[n].update(whole[i : i + n] for i in range(len(whole) - n + 1))
        self.counts: dict[int, dict[Gram, int]] = {}
        for n in range(1, order + 1):
            after = Counter(gram[1:] for gram in counts[n + 1]) if n < order else counts[n]
            self.counts[n] = {
                g: counts[n][g] if g[0] == BEGIN and n > 1 else after[g] for g in counts[n]
            }
        self.counts[1][BEGIN,] = 0
        self.discounts = {
            n: _discounts(np.array([*self.counts[n].values()], float)) for n in self.counts
        }
        self.order = order

    def probability(self, history: Gram, symbol: int) -> float:
        history = history[-(self.order - 1) :] if self.order > 1 else ()
        n = len(history) + 1
        shorter = self.probability(history[1:], symbol) if history else 1.0 / (N_SYMBOLS - 1)
        children = {g: c for g, c in self.counts[n].items() if g[:-1] == history}
        total = sum(children.values())
        if not total:
            return shorter
        left = sum(self.discounts[n][min(c, 3)] for c in children.values())
        count = children.get((*history, symbol), 0)
        return float(count - self.discounts[n][min(count, 3)] + left * shorter) / total


@pytest.mark.parametrize("order", [1, 2, 4])
def test_probabilities_are_those_of_the_plain_twin(order: int) -> None:
    data = sequences()
    model, twin = learn_ngrams(data, N_SYMBOLS, order), NaiveKneserNey(data, order)
    asked = [*sequences(20, seed=1), [FIRST + 3, FIRST], [UNKNOWN, FIRST, FIRST]]
    framed = Framed.of(asked)
    wholes = [(BEGIN, *sequence, END) for sequence in asked]
    expected = [
        twin.probability(whole[:i], whole[i]) if i else 1.0
        for whole in wholes
        for i in range(len(whole))
    ]
    assert model.probabilities(framed) == pytest.approx(expected, rel=1e-5)
    ends = zip(framed.starts, wholes, strict=True)
    logs = [np.log(expected)[a : a + len(whole)].sum() for a, whole in ends]
    assert model.log_probabilities(framed) == pytest.approx(logs, rel=1e-5)


@pytest.mark.parametrize("min_count", [1, 2, 4])
def test_after_any_history_probabilities_of_all_symbols_sum_to_one(min_count: int) -> None:
    model = learn_ngrams(sequences(), N_SYMBOLS, 4, min_count)
    a, b = FIRST, FIRST + 1
    for history in ([], [a], [a, b], [b, b, b, a], [FIRST + 3, a], [UNKNOWN, b]):
        ends = Framed.of([history, *([*history, s] for s in range(UNKNOWN, N_SYMBOLS))])
        last = ends.starts + 1 + len(history)
        assert model.probabilities(ends)[last].sum() == pytest.approx(1.0, abs=1e-5)


def test_rare_ngrams_are_forgotten() -> None:
    sizes = [learn_ngrams(sequences(), N_SYMBOLS, 4, count).n_grams for count in (1, 2, 4)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_a_stored_model_says_the_same_and_nothing_is_nothing() -> None:
    model = learn_ngrams(sequences(), N_SYMBOLS, 3)
    state = container.parse(container.dump(model.to_state(), small=True))
    again = NgramModel.from_state(StateReader(state), N_SYMBOLS)
    asked = Framed.of(sequences(9, seed=2))
    assert (again.log_probabilities(asked) == model.log_probabilities(asked)).all()
    assert len(model.log_probabilities(Framed.of([]))) == 0


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("keys", np.array([0, 0, 1], np.int64), "rising keys"),
        ("keys", np.array([10**9], np.int64), "'grams[1].keys'"),
        ("probability", np.zeros(3, np.float32), "'grams[1].probability'"),
        ("backoff", np.ones(2, np.float64), "'grams[1].backoff'"),
    ],
)
def test_damaged_states_are_refused(field: str, value: Any, said: str) -> None:
    state = learn_ngrams(sequences(), N_SYMBOLS, 3).to_state()
    state["grams"][1][field] = value
    with pytest.raises(ValueError, match=re.escape(said)):
        NgramModel.from_state(StateReader(state), N_SYMBOLS)
    with pytest.raises(ValueError, match="all 99 symbols"):
        NgramModel.from_state(StateReader(learn_ngrams([[3]], 4, 1).to_state()), 99)
