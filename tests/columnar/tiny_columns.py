"""Small column files whose labels follow from their words, and a model trained on them."""

from __future__ import annotations

import random
from pathlib import Path

from spacy_treecrf.columnar.files import read_column_file
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.columnar.template import make_template
from spacy_treecrf.columnar.training import fit

NAMES = ["Ann", "Bob", "Eve", "Lee", "Max"]
PLACES = ["Rome", "Oslo", "Bern"]
VERBS = ["saw", "left", "likes"]
SETTINGS = {
    "rounds": 4,
    "linear_rounds": 2,
    "leaves": 8,
    "min_rows": 1,
    "min_count": 1,
    "threads": 1,
}


def tiny_rows(n: int = 30, seed: int = 0) -> list[list[list[str]]]:
    """Sentences of word, tag and BIO label."""
    rng = random.Random(seed)
    sentences = []
    for _ in range(n):
        names = rng.sample(NAMES, rng.randint(1, 2))
        person = [[name, "N", "B-PER" if i == 0 else "I-PER"] for i, name in enumerate(names)]
        place = [[rng.choice(PLACES), "N", "B-LOC"]]
        first, last = rng.sample([person, place], 2)  # only the words tell which is which
        rows = [*first, [rng.choice(VERBS), "V", "O"], *last]
        if rng.random() < 0.5:
            rows.append([".", ".", "O"])
        sentences.append(rows)
    return sentences


def write_columns(path: Path, sentences: list[list[list[str]]]) -> Path:
    blocks = ("".join("\t".join(row) + "\n" for row in rows) for rows in sentences)
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


def tiny_file(folder: Path, name: str = "train.conll", n: int = 30, seed: int = 0) -> Path:
    return write_columns(folder / name, tiny_rows(n, seed))


def trained(path: Path, **settings: object) -> ColumnModel:
    file = read_column_file(path)
    template = make_template(file)
    sequences, labels = template.split(file, need_labels=True)
    assert labels is not None
    features = list(template.features(sequences, file.place))
    return fit(template, (features, labels), None, {**SETTINGS, **settings})
