"""`corpus list` and `corpus prepare`, on data that need no files."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.calls import good, process, refused


def test_list_names_all_data_sets() -> None:
    shown = good("corpus", "list")
    for name in ("cmudict *", "nettalk", "conll2000", "conll2002es", "conll2003", "moby", "ocr"):
        assert f"\n{name}" in shown
    found = json.loads(good("corpus", "list", "--json"))
    assert {own["name"]: own["found"] for own in found}["synthetic"] is True


def test_prepared_columns_can_be_trained_on(tmp_path: Path) -> None:
    shown = good("corpus", "prepare", "synthetic", "-o", tmp_path / "data", "--format", "conll")
    assert shown.startswith("train: ")
    rows = (tmp_path / "data" / "train.conll").read_text().split("\n\n")[:20]
    few = tmp_path / "few.conll"
    few.write_text("\n\n".join(rows) + "\n")
    options = ["--rounds", "2", "--linear-rounds", "2", "--threads", "1"]
    assert "saved to" in good("train", few, "-o", tmp_path / "m.treecrf", *options)


def test_own_column_files_become_docs(tmp_path: Path) -> None:
    data = tmp_path / "own.conll"
    data.write_text("".join(f"w{i} N B-X\nis V O\n\n" for i in range(60)))
    shown = good(
        "corpus", "prepare", "conll", "-o", tmp_path / "out", "--input", data,
        "--columns", "word,tag,ner", "--json",
    )  # fmt: skip
    found = json.loads(shown)
    assert sum(part["sequences"] for part in found.values()) == 60
    assert Path(found["train"]["path"]).suffix == ".spacy"


def test_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    arguments = ["corpus", "prepare", "synthetic", "-o", tmp_path, "--format", "jsonl"]
    (tmp_path / "train.jsonl").write_text("precious")
    assert "train.jsonl" in refused(*arguments)
    assert (tmp_path / "train.jsonl").read_text() == "precious"
    good(*arguments, "--force")
    assert (tmp_path / "train.jsonl").read_text() != "precious"


def test_bad_input_is_refused(tmp_path: Path) -> None:
    refused("corpus", "prepare", "nothing", "-o", tmp_path)
    refused("corpus", "prepare", "synthetic", "-o", tmp_path, "--format", "xml")
    refused("corpus", "prepare", "synthetic", "-o", tmp_path, "--split", "tiny")
    said = refused("corpus", "prepare", "cmudict", "-o", tmp_path, "--all", "--split", "default")
    assert "exclude each other" in said
    said = refused("corpus", "prepare", "nettalk", "-o", tmp_path, "--folder", tmp_path)
    assert "nettalk" in said


def test_as_a_process(tmp_path: Path) -> None:
    run = process(["corpus", "list"], tmp_path)
    assert run.returncode == 0, run.stderr
    arguments = ["corpus", "prepare", "synthetic", "-o", "data", "--format", "conll"]
    run = process(arguments, tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "data" / "train.conll").is_file()
