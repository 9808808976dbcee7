"""Weights of labels in column files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.columnar.files import parse_column_file
from spacy_treecrf.columnar.soft_labels import parse_weights, with_weights
from tests.cli.calls import QUICK, good, refused
from tests.columnar.tiny_columns import tiny_rows, write_columns
from tests.refusals import assert_refused


def test_labels_weights_and_distributions_are_told_apart() -> None:
    assert parse_weights("B-PER", "here") == "B-PER"
    assert parse_weights("B-PER:0.5", "here") == ("B-PER", 0.5)
    assert parse_weights("B-PER:0.7|O:0.3", "here") == {"B-PER": 0.7, "O": 0.3}
    assert parse_weights("ns:B:1", "here") == ("ns:B", 1.0)
    file = parse_column_file(b"a\tO:0.25\nb\tX\n\nc\tO:1|X:0\n", "f")
    labels = [["O:0.25", None], ["O:1|X:0"]]
    assert with_weights(labels, file) == [[("O", 0.25), None], [{"O": 1.0, "X": 0.0}]]


@pytest.mark.parametrize(
    "text", ["B:much", "B:-1", ":0.5", "B:nan", "B:0.5|O", "B:0.5|B:0.5", "B:"]
)
def test_malformed_weights_are_refused_with_their_line(text: str) -> None:
    assert_refused(lambda: parse_weights(text, "train.conll:7"), "train.conll:7", "--soft")


def test_train_takes_weights_with_soft_alone(tmp_path: Path) -> None:
    rows = tiny_rows()
    for sentence in rows:
        for row in sentence:
            row[-1] = f"{row[-1]}:0.9|O:0.1" if row[-1] != "O" else "O"
    data = write_columns(tmp_path / "soft.conll", rows)
    shown = good(
        "train",
        data,
        "-o",
        tmp_path / "m.treecrf",
        "--soft",
        "--set",
        "soft_labels=distill",
        *QUICK,
    )
    assert "4 labels" in shown
    assert "8 labels" not in shown
    plain = good("train", data, "-o", tmp_path / "plain.treecrf", *QUICK)
    assert "4 labels" in plain  # other ones: "B-LOC:0.9|O:0.1"
    rows[0][0][-1] = "B-PER:?"
    bad = write_columns(tmp_path / "bad.conll", rows)
    assert "bad.conll:1" in refused("train", bad, "-o", tmp_path / "bad.treecrf", "--soft", *QUICK)
