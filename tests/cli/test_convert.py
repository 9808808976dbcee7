"""`convert`: files of annotation tools, and models of CRFsuite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spacy_treecrf import BoostedCRF
from tests.cli.calls import call, good, refused


def test_texts_become_docs_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "a.spacy"
    spans = [[0, 3, "PER"], [0, 7, "PER"], [9, 10, "X"]]
    source.write_text(json.dumps({"text": "Ann Lee left", "label": spans}) + "\n")
    assert "does not tell its format" in refused("convert", source, target)
    done = call("convert", source, target, "--from", "doccano", "--lang", "en")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [
        "1 texts, 1 spans",
        "left out: 1 spans that do not align with tokens",
        "left out: 1 spans that overlap longer ones",
    ]
    assert "exists; use --force" in refused("convert", source, target, "--from", "doccano")
    wide = ["--from", "doccano", "--alignment", "expand", "--force", "--json"]
    assert json.loads(good("convert", source, target, *wide)) == {
        "texts": 1,
        "spans": 2,
        "left_out": {"spans that overlap longer ones": 1},
    }
    good("convert", target, tmp_path / "a.conll")
    assert (tmp_path / "a.conll").read_text() == "Ann\tB-PER\nLee\tI-PER\nleft\tB-X\n\n"
    good("convert", target, tmp_path / "brat", "--to", "brat")
    assert len(list((tmp_path / "brat").iterdir())) == 2
    assert "not empty" in refused("convert", target, tmp_path / "brat", "--to", "brat")


def test_wrong_options_are_refused_before_a_file_is_written(tmp_path: Path) -> None:
    source = tmp_path / "a.conll"
    source.write_text("a\tO\n")
    target = tmp_path / "b.spacy"
    for options in (["--alignment", "near"], ["--offsets", "bytes"], ["--to", "word"]):
        assert options[1] in refused("convert", source, target, *options)
    assert "'zz'" in refused(
        "convert", source, tmp_path / "b.jsonl", "--to", "prodigy", "--from", "zz"
    )
    assert "no such" in refused("convert", tmp_path / "no such.conll", target)
    assert not target.exists()


def test_a_model_of_crfsuite_becomes_one_of_ours(tmp_path: Path) -> None:
    pytest.importorskip("pycrfsuite")
    from tests.crfsuite_models import addresses, train_crfsuite

    X, y = addresses(20, seed=0)
    source, target = tmp_path / "model.crfsuite", tmp_path / "model.treecrf"
    tagger = train_crfsuite(source, X, y)
    done = call("convert", source, target)
    assert done.exit_code == 0, done.output
    assert "4 labels" in done.stderr
    assert BoostedCRF.load(target).predict(X) == [tagger.tag(items) for items in X]
    assert "model.treecrf exists" in refused("convert", source, target)
    counts = json.loads(good("convert", source, target, "--force", "--json"))
    assert counts["labels"] == 4
    assert "NUMBER" in good("inspect", target)
    source.write_bytes(source.read_bytes()[:100])
    assert "damaged" in refused("convert", source, tmp_path / "other.treecrf")
