"""Models that are not sure of spans, and the probabilities of spans by enumeration."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from spacy_treecrf import BoostedCRF
from spacy_treecrf.labels.schemes import conll_spans, spelled

WORDS = "abcd"
HINTS = ["X1", "X2", "X3", "Y1", "Y2", "-", "?"]


def fitted(scheme: str, **settings: Any) -> BoostedCRF:
    """A model that is not sure: spans of random lengths follow random words."""
    draw = random.Random(0)
    X, y = [], []
    for _ in range(90):
        n = draw.randint(1, 6)
        spans, t = [], 0
        while t < n:
            end = min(n, t + draw.randint(1, 3))
            if draw.random() < 0.7:
                spans.append((t, end, draw.choice("XY")))
            t = end
        starts = {start: f"{name}{end - start}" for start, end, name in spans}
        hints = [starts.get(t, "-") if draw.random() < 0.9 else "?" for t in range(n)]
        X.append([{"word": draw.choice(WORDS), "hint": hint} for hint in hints])
        y.append(spelled(spans, n, scheme))
    return BoostedCRF(rounds=8, linear_rounds=4, min_rows=1, **settings).fit(X, y)


def inputs(n: int) -> list[list[dict[str, str]]]:
    draw = random.Random(1)
    return [
        [{"word": draw.choice(WORDS), "hint": draw.choice(HINTS)} for _ in range(1 + s % 4)]
        for s in range(n)
    ]


def enumerated(model: BoostedCRF, x: list[dict[str, str]]) -> dict[tuple[int, int, str], float]:
    """The probability of each span, summed over the label sequences that spell it out."""
    found: dict[tuple[int, int, str], float] = defaultdict(float)
    letters_of_model = {label[0] for label in model.classes_}
    for labels, p in model.predict_nbest([x], n=len(model.classes_) ** len(x))[0]:
        for start, end, name in conll_spans(labels):
            letters = "".join(label[0] for label in labels[start:end])
            letters = letters.replace("L", "E").replace("U", "S")
            if "B" not in letters_of_model:  # IOE2
                whole = letters[-1] == "E"
            elif letters_of_model & set("LE"):
                whole = letters == "S" or (letters[0] == "B" and letters[-1] == "E")
            else:
                whole = letters[0] == "B"
            if whole:
                found[start, end, name] += p
    return found
