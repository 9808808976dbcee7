"""`suggest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_treecrf.formats.converting import read_texts
from tests.cli.calls import QUICK, good, process, refused
from tests.columnar.tiny_columns import tiny_rows, write_columns
from tests.pipeline.tiny_pipes import corpus, new_nlp


def test_texts_for_prodigy_in_a_process(shared: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.txt"
    texts = ["Ann saw Rome .", "they slept .", "Zoe left Quux with Bob Lee .", "in Rome"]
    pool.write_text("\n".join(texts), encoding="utf8")
    run = process(
        ["suggest", shared / "pipeline", pool, "--budget", "9", "-o", "tasks.jsonl"], tmp_path
    )
    assert run.returncode == 0, run.stderr
    tasks = read_texts(tmp_path / "tasks.jsonl", "prodigy")
    assert all(one.predicted for one in tasks)
    assert sum(len(one.tokens or ()) for one in tasks) <= 9
    assert {one.text for one in tasks} < set(texts)
    assert f"{len(tasks)} of 4 texts" in run.stdout


@pytest.mark.parametrize("by", ["entropy", "confidence", "wrong"])
def test_column_files_without_labels(shared: Path, tmp_path: Path, by: str) -> None:
    rows = [[row[:2] for row in own] for own in tiny_rows(12, seed=5)]
    rows[4] = [["Quux", "N"], ["saw", "V"], ["Quuz", "N"]]
    pool = write_columns(tmp_path / "pool.conll", rows)
    found = json.loads(good("suggest", shared / "good.treecrf", pool, "--by", by, "--json"))
    assert sorted(one["number"] for one in found) == list(range(12))
    assert [one["rank"] for one in found] == list(range(1, 13))
    gains = [one["gain"] for one in found]
    assert gains == sorted(gains, reverse=True)
    assert found[0]["number"] == 4  # unseen words


def test_a_committee_and_other_formats(shared: Path, tmp_path: Path) -> None:
    weak, strong = shared / "weak.treecrf", shared / "good.treecrf"
    pool = shared / "test.conll"
    arguments = ("suggest", strong, pool, "--by", "committee")
    assert "two models or more" in refused(*arguments)
    for format in ("label-studio", "doccano", "text"):
        target = tmp_path / f"{format}.out"
        good(*arguments, "--committee", weak, "-o", target, "--format", format, "--budget", "30")
        assert target.stat().st_size
    lines = (tmp_path / "text.out").read_text(encoding="utf8").splitlines()
    assert sum(len(line.split()) for line in lines) <= 30
    again = read_texts(tmp_path / "doccano.out", "doccano")
    assert [one.text for one in again] == lines


@pytest.mark.parametrize("label_first", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_the_text_of_a_column_file_is_its_column_of_words(
    tmp_path: Path, label_first: bool, labelled: bool
) -> None:
    rows = [[[tag, word, label] for word, tag, label in own] for own in tiny_rows(12)]
    at = 2
    if label_first:
        rows, at = [[[label, tag, word] for tag, word, label in own] for own in rows], 0
    train = write_columns(tmp_path / "train.conll", rows)
    words = 3 if label_first else 2
    model = tmp_path / "model.treecrf"
    kinds = f"{words}=word,{words - 1}=value"
    options = ("--columns", kinds, "--label-column", str(at + 1), *QUICK)
    good("train", train, "-o", model, *options)
    pool = rows if labelled else [[row[:at] + row[at + 1 :] for row in own] for own in rows]
    found = json.loads(
        good("suggest", model, write_columns(tmp_path / "pool.conll", pool), "--json")
    )
    texts = [" ".join(row[words - 1] for row in own) for own in rows]
    assert len(found) == len(texts)
    assert all(one["text"] == texts[one["number"]] for one in found)


@pytest.mark.parametrize("mine", [("saw",), ("sa", "w")])
def test_a_committee_that_tokenizes_differently_is_refused(
    shared: Path, tmp_path: Path, mine: tuple[str, ...]
) -> None:
    for name, parts in (("mine", mine), ("other", ("s", "aw"))):
        nlp = spacy.load(shared / "pipeline")
        nlp.tokenizer.add_special_case("saw", [{"ORTH": part} for part in parts])
        nlp.to_disk(tmp_path / name)
    pool = tmp_path / "pool.txt"
    pool.write_text("Ann saw Rome .\nthey slept .\n", encoding="utf8")
    start = ("suggest", tmp_path / "mine", pool, "--by", "committee", "--committee")
    said = refused(*start, tmp_path / "other")
    assert "cut the texts into different tokens" in said
    good(*start, tmp_path / "mine")


def test_docs_of_a_spacy_file(shared: Path, tmp_path: Path) -> None:
    docs = [example.reference for example in corpus(new_nlp("ents"), "ents")]
    DocBin(docs=docs).to_disk(tmp_path / "pool.spacy")
    found = json.loads(good("suggest", shared / "pipeline", tmp_path / "pool.spacy", "--json"))
    assert {one["text"] for one in found} == {doc.text for doc in docs}


def test_wrong_options_are_refused(shared: Path, tmp_path: Path) -> None:
    start = ("suggest", shared / "good.treecrf", shared / "test.conll")
    assert "use one of entropy" in refused(*start, "--by", "luck")
    assert "use one of prodigy" in refused(*start, "--format", "brat")
    assert "diversity is 2.0" in refused(*start, "--diversity", "2")
    weak = shared / "weak.treecrf"
    assert "goes with --by committee" in refused(*start, "--committee", weak)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    assert "use --force" in refused(*start, "-o", mine)
    assert mine.read_text() == "mine"
