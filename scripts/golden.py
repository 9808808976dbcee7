"""Digests of what models predict: for work that must not change a bit of any model.

    python -m scripts.golden record before.json     # before you start
    python -m scripts.golden compare before.json    # after every step

A digest is of labels and exact marginals on test rows, so that it does not depend on the file
format. Digests hold on one machine: another processor may round differently. NETtalk and
CoNLL-2000 are read from the folder that TREECRF_CORPORA names.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
import typer

import spacy_treecrf
from spacy_treecrf.cli.shared.common import reports_errors, say
from spacy_treecrf.corpora import load_corpus

Labelled = tuple[list[list[dict[str, Any]]], list[list[str]]]

HALF_WINDOW = 3
MISSING_SHARE = 0.2
METHODS = ("instance_weighting", "surrogate", "imputation", "indicator")


def letters(layer: str, n: int, missing: bool = False) -> Labelled:
    """Words of NETtalk as letters in a window, and a layer of their labels."""
    draw = random.Random(0)

    def letter_at(word: list[str], i: int) -> str | None:
        if not 0 <= i < len(word):
            return "_"
        return None if missing and draw.random() < MISSING_SHARE else word[i]

    words = load_corpus("nettalk", split="large", seed=7)["train"][:n]
    window = range(-HALF_WINDOW, HALF_WINDOW + 1)
    X = [
        [{f"c{d}": letter_at(word.words, i + d) for d in window} for i in range(len(word.words))]
        for word in words
    ]
    return X, [word.labels[layer] for word in words]


def chunks(n: int) -> Labelled:
    """Sentences of CoNLL-2000 with features of all kinds."""
    sentences = load_corpus("conll2000")["train"][:n]
    X = []
    for sentence in sentences:
        words = ["<s>", *(word.lower() for word in sentence.words), "</s>"]
        tags = ["<s>", *sentence.labels["tag"], "</s>"]
        X.append(
            [
                {
                    "word": words[i + 1],
                    "before": words[i],
                    "tag": tags[i + 1],
                    "tag before": tags[i],
                    "tag after": tags[i + 2],
                    "suffixes": [word[-k:].lower() for k in (1, 2, 3)],
                    "title": word.istitle(),
                    "length": float(len(word)),
                }
                for i, word in enumerate(sentence.words)
            ]
        )
    return X, [sentence.labels["chunk"] for sentence in sentences]


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Names, models, X and y."""
    crf = spacy_treecrf.BoostedCRF
    X, stress = letters("stress", 500)
    for name, settings in {
        "crf": {"rounds": 12},
        "crf separate": {"rounds": 12, "family": "separate"},
        "crf order 2": {"family": "joint", "order": 2},
        "crf order 0": {"order": 0},
        "crf gradient": {"step": "gradient", "linear_rounds": 0},
        "crf conjugate": {"step": "conjugate", "linear_rounds": 0},
        "crf mixing": {"gamma": "mixing"},
        "crf unbiased": {"unbiased": True},
        "crf drawn": {"subsample": 0.5, "colsample": 0.5, "node_colsample": 0.5, "seed": 5},
        "crf pseudo, line search": {"pseudo_rounds": 3, "line_search": True},
    }.items():
        yield name, crf(**{"rounds": 8} | settings), X, stress
    partial = [[y if (i + j) % 3 else None for j, y in enumerate(s)] for i, s in enumerate(stress)]
    yield "crf partial", crf(rounds=8), X, partial
    damaged, stress = letters("stress", 500, missing=True)
    for method in METHODS:
        yield f"missing {method}", crf(rounds=8, missing=method), damaged, stress
    yield "memm", spacy_treecrf.BoostedMEMM(order=1), X, stress
    stressed = [[str(y != "<") for y in labels] for labels in stress]
    yield "ff-memm", spacy_treecrf.FutureFeatureMEMM(order=0, bag=3), X, stressed
    F, phonemes = letters("phoneme_stress", 400)
    yield "crf beam", crf(rounds=6, beam=8), F, phonemes
    yield "secoc", spacy_treecrf.SECOCCRF(), F, phonemes
    C, chunk = chunks(500)
    yield "crf chunks", crf(rounds=12), C, chunk
    yield "crf bio", crf(rounds=8, constraints="bio", predictor="marginal"), C, chunk
    yield "perceptron", spacy_treecrf.PerceptronTagger(), C, chunk


def digest(model: Any, X: list[Any], y: list[Any]) -> str:
    n = len(X) * 4 // 5
    model.fit(X[:n], y[:n])
    found = hashlib.sha256(srsly.json_dumps(model.predict(X[n:])).encode())
    for sequence in model.predict_marginals(X[n:]):
        for row in sequence:
            found.update(np.array([row[label] for label in sorted(row)], np.float64).tobytes())
    return found.hexdigest()[:16]


@reports_errors
def golden(
    mode: Annotated[str, typer.Argument(help="record or compare.")],
    path: Annotated[Path, typer.Argument(help="JSON file of digests.")],
) -> None:
    """Record the digests of all models, or compare with those recorded."""
    if mode not in ("record", "compare"):
        raise ValueError(f"treecrf: mode is {mode!r}; use 'record' or 'compare'")
    found = {}
    for name, *case in cases():
        found[name] = digest(*case)
        say(f"{name:28} {found[name]}")
    if mode == "record":
        srsly.write_json(path, found)
        return
    before = srsly.read_json(path)
    changed = sorted(name for name in before | found if found.get(name) != before.get(name))
    say(f"changed: {', '.join(changed) or 'nothing'}")
    if changed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(golden)
