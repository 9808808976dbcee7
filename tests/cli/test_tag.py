"""`tag`: columns, text, probabilities, best labellings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spacy_treecrf import BoostedCRF
from tests.cli.calls import call, good, process, refused
from tests.columnar.tiny_columns import tiny_rows, write_columns
from tests.tiny import new, tiny_data


def blocks(text: str) -> list[list[list[str]]]:
    return [[line.split("\t") for line in block.splitlines()] for block in text.split("\n\n")[:-1]]


def test_labels_are_a_further_column(shared: Path) -> None:
    found = blocks(good("tag", shared / "good.treecrf", shared / "test.conll", "--threads", "1"))
    rows = tiny_rows(20, seed=7)
    assert [[row[:3] for row in sentence] for sentence in found] == rows
    assert [[row[3] for row in sentence] for sentence in found] == [
        [row[2] for row in sentence] for sentence in rows
    ]


def test_files_without_labels_get_the_same(shared: Path, tmp_path: Path) -> None:
    bare = [[row[:2] for row in sentence] for sentence in tiny_rows(20, seed=7)]
    path = write_columns(tmp_path / "bare.conll", bare)
    with_gold = blocks(good("tag", shared / "good.treecrf", shared / "test.conll"))
    without = blocks(good("tag", shared / "good.treecrf", path))
    assert [[row[-1] for row in s] for s in without] == [[row[-1] for row in s] for s in with_gold]
    assert without[0][0][:2] == bare[0][0]


def test_probabilities_are_the_last_column(shared: Path) -> None:
    found = blocks(good("tag", shared / "weak.treecrf", shared / "test.conll", "-p"))
    values = [float(row[4]) for sentence in found for row in sentence]
    assert all(0.0 < value <= 1.0 for value in values)
    assert min(values) < 0.9


def test_best_labellings_are_ranked(shared: Path) -> None:
    shown = good("tag", shared / "weak.treecrf", shared / "test.conll", "--nbest", "3")
    heads = [line.split() for line in shown.splitlines() if line.startswith("# ")]
    assert [int(rank) for _, rank, _ in heads[:3]] == [0, 1, 2]
    assert len(heads) == 60
    for i in range(0, 60, 3):
        p = [float(value) for _, _, value in heads[i : i + 3]]
        assert p == sorted(p, reverse=True)
        assert sum(p) <= 1.0 + 1e-5


def test_json_lines_hold_everything(shared: Path) -> None:
    shown = good(
        "tag", shared / "good.treecrf", shared / "test.conll", "--json", "-p", "--nbest", "2"
    )
    found = [json.loads(line) for line in shown.splitlines()]
    rows = tiny_rows(20, seed=7)
    assert [own["tokens"] for own in found] == [[row[0] for row in s] for s in rows]
    assert [own["labels"] for own in found] == [[row[2] for row in s] for s in rows]
    assert all(len(own["probabilities"]) == len(own["tokens"]) for own in found)
    assert all(own["nbest"][0]["labels"] == own["labels"] for own in found)


def test_tokens_are_those_of_the_column_of_words(tmp_path: Path) -> None:
    """A tag comes first, as a number does in CoNLL-U; people read the words."""
    swapped = [[[row[1], row[0], row[2]] for row in rows] for rows in tiny_rows()]
    path = write_columns(tmp_path / "swapped.conll", swapped)
    model = tmp_path / "swapped.treecrf"
    good("train", path, "-o", model, "--columns", "1=value,2=word", "--rounds", "3")
    words = [[row[1] for row in rows] for rows in swapped]
    shown = good("tag", model, path, "--json").splitlines()
    assert [json.loads(line)["tokens"] for line in shown] == words
    assert words[0][0] in good("explain", model, path)


def test_raw_text_is_told_from_column_files(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "news.txt"
    path.write_text("Ann left Rome with Bob\n", encoding="utf8")
    done = call("tag", shared / "pipeline", path)
    assert done.exit_code == 0
    assert "if this is raw text, use --text" in done.stderr
    assert call("tag", shared / "pipeline", path, "--text").stderr == ""
    path.write_text("Ann PERSON\nleft O\n", encoding="utf8")
    assert call("tag", shared / "pipeline", path).stderr == ""
    path.write_text("Ann left Rome with Bob\nBob slept\n", encoding="utf8")
    assert "is read by `tag --text`" in refused("tag", shared / "pipeline", path)


def test_output_files_are_written_whole_and_not_over_others(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.conll"
    arguments = ["tag", shared / "good.treecrf", shared / "test.conll"]
    assert good(*arguments, "-o", output) == ""
    assert output.read_text() == good(*arguments)
    assert "exists" in refused(*arguments, "-o", output)
    assert "store the docs" in refused(*arguments, "-o", tmp_path / "out.spacy")
    good(*arguments, "-o", output, "--force", "-p")
    assert [file.name for file in tmp_path.iterdir()] == ["out.conll"]


def test_failure_midway_leaves_the_old_output(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.conll"
    output.write_text("precious")
    ragged = tmp_path / "ragged.conll"
    ragged.write_text("Ann\tN\nsaw\n")
    said = refused("tag", shared / "good.treecrf", ragged, "-o", output, "--force")
    assert "ragged.conll:2: expected 2 columns" in said
    assert output.read_text() == "precious"


def test_pipelines_tag_raw_text(shared: Path, tmp_path: Path) -> None:
    text = tmp_path / "news.txt"
    text.write_text("Ann saw New York .\n\nwe left Rome with Bob .\n", encoding="utf-8")
    shown = good("tag", shared / "pipeline", text, "--text")
    assert blocks(shown) == [
        [["Ann", "U-PERSON"], ["saw", "O"], ["New", "B-PLACE"], ["York", "L-PLACE"], [".", "O"]],
        [
            ["we", "O"],
            ["left", "O"],
            ["Rome", "U-PLACE"],
            ["with", "O"],
            ["Bob", "U-PERSON"],
            [".", "O"],
        ],
    ]
    found = json.loads(good("tag", shared / "pipeline", text, "--text", "--json").splitlines()[0])
    assert found["labels"][0] == "U-PERSON"


def test_pipelines_tag_column_files(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.conll"
    path.write_text("Ann x\nsaw x\nRome x\n")
    assert blocks(good("tag", shared / "pipeline", path, "-p"))[0][2][:3] == [
        "Rome",
        "x",
        "U-PLACE",
    ]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("good.treecrf", ["--text"], "cannot cut raw text into tokens"),
        ("nothing.treecrf", [], "there is no model"),
        ("train.conll", [], "does not hold a model of spacy-treecrf"),
        ("pipeline", ["--pipe", "ner"], "these treecrf pipes: treecrf; name one by --pipe"),
        ("pipeline/treecrf/model", [], "treecrf"),
    ],
)
def test_models_that_do_not_fit_are_refused(
    shared: Path, model: str, options: list[str], message: str
) -> None:
    assert message in refused("tag", shared / model, shared / "test.conll", *options)


def test_models_of_the_estimator_are_refused_with_the_reason(tmp_path: Path) -> None:
    model = new(rounds=1, threads=1).fit(*tiny_data())
    assert isinstance(model, BoostedCRF)
    model.save(tmp_path / "own.treecrf")
    said = refused("tag", tmp_path / "own.treecrf", "-")
    assert "was saved by an estimator" in said


def test_as_a_process_from_standard_input(shared: Path) -> None:
    run = process(["tag", "good.treecrf", "-"], shared, input="Ann\tN\nsaw\tV\nRome\tN\n")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "Ann\tN\tB-PER\nsaw\tV\tO\nRome\tN\tB-LOC\n\n"
    assert run.stderr == ""


def test_nbest_has_a_limit_that_is_named(shared: Path) -> None:
    model, data = shared / "good.treecrf", shared / "test.conll"
    assert "100000" in refused("tag", model, data, "--nbest", "100001", code=2)
