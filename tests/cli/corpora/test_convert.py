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


def test_column_files_have_any_encoding(tmp_path: Path) -> None:
    source, target = tmp_path / "latin.conll", tmp_path / "a.spacy"
    source.write_bytes("Jos\xe9 B-PER\nran O\n".encode("latin-1"))
    assert "--encoding latin-1" in refused("convert", source, target)
    good("convert", source, target, "--encoding", "latin-1")
    good("convert", target, tmp_path / "b.conll")
    assert (tmp_path / "b.conll").read_text(encoding="utf-8") == "Jos\xe9\tB-PER\nran\tO\n\n"
    good("convert", target, tmp_path / "b.conll", "--encoding", "UTF-8", "--force")
    other = ["--encoding", "latin-1", "--force"]
    assert "is no column file" in refused("convert", target, tmp_path / "c.conll", *other)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_of_brat_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    folder = tmp_path / "brat"
    source, bad = tmp_path / "a.jsonl", tmp_path / "bad.jsonl"
    lines = [json.dumps({"text": f"text {i}", "label": [[0, 4, "X"]]}) for i in range(3)]
    source.write_text("\n".join(lines))
    bad.write_text("\n".join([*lines, json.dumps({"text": "abc", "label": [[0, 1, "A B"]]})]))
    to_brat = ("--from", "doccano", "--to", "brat", "--force")
    assert "'A B'" in refused("convert", bad, folder, *to_brat)
    assert not folder.exists()
    good("convert", source, folder, *to_brat)
    before = contents(folder)
    assert len(before) == 6
    for wrong in (bad, tmp_path / "cut.jsonl"):
        (tmp_path / "cut.jsonl").write_text(lines[2] + "\n{")
        refused("convert", wrong, folder, *to_brat)
        assert contents(folder) == before
    source.write_text(lines[1])
    (folder / "doc-00001.txt").chmod(0o640)
    good("convert", source, folder, *to_brat)
    assert contents(folder) == {
        "doc-00001.txt": b"text 1",
        "doc-00001.ann": b"T1\tX 0 4\ttext\n",
    }
    assert (folder / "doc-00001.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("other", ["annotation.conf", "notes.txt", "b.ann", "inner"])
def test_a_folder_that_holds_anything_but_pairs_of_brat_is_refused(
    tmp_path: Path, other: str
) -> None:
    source, folder = tmp_path / "a.conll", tmp_path / "brat"
    source.write_text("a\tO\n")
    good("convert", source, folder, "--to", "brat")
    (folder / other).mkdir() if other == "inner" else (folder / other).write_text("mine")
    names = sorted(path.name for path in folder.iterdir())
    assert f"also holds {other}" in refused("convert", source, folder, "--force")
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_folder_of_brat_never_replaces_its_own_source(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "x.txt").write_text("abc")
    (folder / "x.ann").write_text("T1\tX 0 1\ta\nR1\tIn Arg1:T1 Arg2:T1\n")
    before = contents(folder)
    for source in (folder / "x.ann", folder / "x.txt", folder):
        said = refused("convert", source, folder, "--from", "brat", "--to", "brat", "--force")
        assert "name another output" in said
        assert contents(folder) == before


def test_a_file_is_no_target_for_brat(tmp_path: Path) -> None:
    source, taken = tmp_path / "a.conll", tmp_path / "taken"
    source.write_text("a\tO\n")
    taken.write_text("mine")
    assert "name a folder" in refused("convert", source, tmp_path / "x.ann")
    assert not (tmp_path / "x.ann").exists()
    assert "is a file" in refused("convert", source, taken, "--to", "brat", "--force")
    assert taken.read_text() == "mine"


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
