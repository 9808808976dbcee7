"""The training likelihood over rounds on a part of each corpus; newton steps never lower it."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from spacy_treecrf.corpora import Salesman
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from tests.engine.small_models import assert_never_falls, climb
from tests.engine.training_data import Training

Labelled = list[tuple[dict[str, str | float], str]]  # a sequence: features and label


def corpus(*parts: str) -> Path:
    folder = os.environ.get("TREECRF_CORPORA")
    if not folder:
        pytest.skip("TREECRF_CORPORA is not set; set it to the folder of corpora")
    path = Path(folder, *parts)
    if not path.exists():
        pytest.skip(f"{path} is not there; set TREECRF_CORPORA to the folder of corpora")
    return path


def window_training(sequences: Iterable[Labelled], radius: int) -> Training:
    """Each position sees its neighbours up to `radius` positions away."""
    X, y = [], []
    for pairs in sequences:
        items = [item for item, _ in pairs]
        X.append(
            [
                {
                    f"{name}{d}": value
                    for d in range(-radius, radius + 1)
                    if 0 <= t + d < len(items)
                    for name, value in items[t + d].items()
                }
                for t in range(len(items))
            ]
        )
        y.extend(label for _, label in pairs)
    labels = sorted(set(y))
    columns, offsets, feature_ids, numeric = fit_columns(X, min_count=2)
    ids = np.array([labels.index(label) for label in y], np.int32)
    return Training(
        columns, Sequences(offsets, feature_ids, numeric, ids, np.ones(len(y), np.float32)), labels
    )


def blocks(lines: Iterable[str], n: int) -> list[list[list[str]]]:
    """The fields of each line of the first n blocks that blank lines separate."""
    groups = itertools.groupby(lines, lambda line: not line.strip())
    full = ([line.split() for line in group] for blank, group in groups if not blank)
    return list(itertools.islice(full, n))


@pytest.mark.parametrize(("family", "gamma"), [("separate", "local"), ("joint", "mixing")])
@pytest.mark.parametrize("shrinkage", [1.0, 0.6])
def test_nettalk(family, gamma, shrinkage):
    lines = corpus("nettalk", "nettalk.data").read_text("latin-1").splitlines()[10:]
    words = [line.split("\t") for line in lines[::100]]
    training = window_training(
        (
            [({"letter": letter}, mark) for letter, mark in zip(w[0], w[2], strict=True)]
            for w in words
        ),
        3,
    )
    values = climb(
        training, 8, family=family, gamma=gamma, linear_rounds=3, leaves=15, shrinkage=shrinkage
    )
    assert_never_falls(values)
    assert values[-1] > values[0] / 2


@pytest.mark.parametrize("constraints", ["none", "bio"])
def test_conll2000(constraints):
    with corpus("conll2000", "train.txt").open(encoding="utf-8") as file:
        sentences = blocks(file, 120)
    training = window_training(
        ([({"word": word, "tag": tag}, chunk) for word, tag, chunk in s] for s in sentences), 1
    )
    values = climb(training, 8, constraints=constraints, linear_rounds=4, leaves=15)
    assert_never_falls(values)
    assert values[-1] > values[0] / 4


@pytest.mark.parametrize(("family", "shrinkage"), [("separate", 1.0), ("joint", 0.6)])
def test_conll2003(family, shrinkage):
    with corpus("conll2003", "eng.train").open(encoding="latin-1") as file:
        sentences = blocks(file, 200)
    training = window_training(
        ([({"word": line[0], "tag": line[1]}, line[-1]) for line in s] for s in sentences), 1
    )
    values = climb(training, 8, family=family, linear_rounds=3, leaves=15, shrinkage=shrinkage)
    assert_never_falls(values)
    assert values[-1] > values[0] / 4


def protein_training() -> Training:
    text = corpus("protein", "protein-secondary-structure.train").read_text("latin-1")
    chains = [
        [line.split() for line in chain.splitlines() if len(line.split()) == 2]
        for chain in text.split("<>")[1:20]
    ]
    return window_training(
        ([({"residue": residue}, fold) for residue, fold in c] for c in chains if c), 5
    )


def salesman_training() -> Training:
    days = (
        [
            ({"activity": activity, "speed": speed}, city)
            for activity, speed, city in zip(
                record.features["activity"],
                record.features["speed"],
                record.labels["city"],
                strict=True,
            )
        ]
        for record in Salesman().sample(92)
    )
    return window_training(days, 3)


@pytest.mark.parametrize("make", [protein_training, salesman_training])
def test_conjugate_and_unbiased_steps_rise_faster_at_first(make):
    """Kersting & Gutmann 2006, figures 2 and 3, without a line search."""
    training = make()
    options = {"family": "joint", "linear_rounds": 0, "leaves": 32}
    plain = climb(training, 6, step="gradient", **options)
    conjugate = climb(training, 6, step="conjugate", **options)
    both = climb(training, 6, step="conjugate", unbiased=True, **options)
    assert conjugate[-1] > plain[-1]
    assert all(fast > slow for fast, slow in zip(both[1:], plain[1:], strict=True))


@pytest.mark.parametrize("order", [1, 2])
def test_protein(order):
    training = protein_training()
    values = climb(training, 8, family="joint", order=order, linear_rounds=2, leaves=15)
    assert_never_falls(values)
    assert values[-1] > values[0]


@pytest.mark.parametrize("linear_rounds", [0, 3])
def test_ocr(linear_rounds):
    """26 labels; pixels, and the share of ink as a numeric column."""
    with corpus("ocr", "letters.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(itertools.islice(csv.DictReader(file, delimiter="\t"), 400))
    words = itertools.groupby(rows, lambda row: row["word_id"])
    training = window_training(
        (
            [
                (
                    {f"p{i}": bit for i, bit in enumerate(row["pixels_16x8_rowmajor"])}
                    | {"ink": row["pixels_16x8_rowmajor"].count("1") / 128},
                    row["letter"],
                )
                for row in word
            ]
            for _, word in words
        ),
        0,
    )
    values = climb(training, 6, linear_rounds=linear_rounds, leaves=15)
    assert_never_falls(values)
    assert values[-1] > values[0] / 4


@pytest.mark.parametrize("gamma", ["local", "mixing"])
def test_moby_hyphenation(gamma):
    """Label of a letter: whether a hyphen follows it."""
    separator = b"\xa5"
    entries = corpus("moby_hyph", "mhyph.txt").read_bytes().split()[::400]
    words = []
    for entry in entries:
        parts = [part.decode("mac-roman") for part in entry.split(separator) if part]
        words.append(
            [
                ({"letter": letter}, "hyphen" if i == len(part) - 1 else "none")
                for part in parts
                for i, letter in enumerate(part)
            ]
        )
    values = climb(window_training(filter(None, words), 3), 8, gamma=gamma, linear_rounds=2)
    assert_never_falls(values)
    assert values[-1] > 0.7 * values[0]
