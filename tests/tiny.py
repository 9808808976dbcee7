"""Small data and estimators for tests: random words whose labels depend on them."""

from __future__ import annotations

import random
from typing import Any

from spacy_treecrf import BoostedCRF

LABELS = ("A", "B", "C")
SMALL: dict[str, Any] = {
    "family": "separate",
    "rounds": 4,
    "linear_rounds": 2,
    "min_rows": 1,
    "min_count": 1,
}


def new(**changes: Any) -> BoostedCRF:
    return BoostedCRF(**{**SMALL, **changes})


def word_labels(X: list[list[Any]], labels: tuple[str, ...] = LABELS) -> list[list[str]]:
    """Labels of `tiny_data` that follow from the word alone: linear models can learn them."""
    return [[labels[int(item["word"][1:]) % len(labels)] for item in items] for items in X]


def tiny_data(
    n: int = 12, labels: tuple[str, ...] = LABELS, seed: int = 0
) -> tuple[list[list[Any]], list[list[str]]]:
    """Sequences of 1 to 7 items with a word, a number, a flag, a list and a nested dict."""
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        words = [rng.randrange(9) for _ in range(rng.randint(1, 7))]
        X.append(
            [
                {
                    "word": f"w{word}",
                    "before": f"w{words[t - 1]}" if t else None,
                    "odd": word % 2 == 1,
                    "size": word + rng.random(),
                    "bag": [f"b{word % 4}", "all"],
                    "nested": {"mod": str(word % 3), "deep": {"half": word / 2}},
                }
                for t, word in enumerate(words)
            ]
        )
        y.append([labels[(word + t) % len(labels)] for t, word in enumerate(words)])
    return X, y
