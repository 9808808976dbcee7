"""`audit`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_treecrf.cli.corpora.audit import Source
from spacy_treecrf.columnar.files import read_column_file
from tests.audit.spoiled import spoiled_docs, spoiled_file
from tests.cli.calls import good, process, refused

QUICK = ["--rounds", "6", "--linear-rounds", "3", "--min-count", "1", "--threads", "1"]
QUICK += ["--members", "1", "--set", "min_rows=1", "--set", "leaves=8"]


def findings(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def decide(path: Path, target: Path, n: int) -> Path:
    """Accept the first n findings, as a person would on the page."""
    lines = [
        json.dumps({**one, "decision": "accept" if one["rank"] <= n else "reject"})
        for one in findings(path)
    ]
    target.write_text("\n".join(lines), encoding="utf8")
    return target


def test_from_a_column_file_to_the_corrected_one_in_processes(tmp_path: Path) -> None:
    path, done = spoiled_file(tmp_path)
    arguments = ["audit", path.name, "-o", "found.jsonl", "--page", "page.html", *QUICK]
    run = process(arguments, tmp_path)
    assert run.returncode == 0, run.stderr
    assert "spans judged" in run.stdout
    found = findings(tmp_path / "found.jsonl")
    n = len(done)
    # every third sequence of the file is a mark of a document
    assert {one["unit"] for one in found[:n]} == {s + s // 3 + 1 for s in done}
    assert "Save decisions" in (tmp_path / "page.html").read_text(encoding="utf8")
    decide(tmp_path / "found.jsonl", tmp_path / "decisions.jsonl", n)
    before = path.read_bytes()
    apply = ["audit", path.name, "--apply", "decisions.jsonl"]
    run = process([*apply, "-o", "corrected.conll"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert f"{n} corrections applied" in run.stderr
    assert path.read_bytes() == before
    labels = [[row[-1] for row in rows] for rows in read_column_file(path).sequences]
    new = read_column_file(tmp_path / "corrected.conll").sequences
    changed = [s for s, rows in enumerate(new) if [row[-1] for row in rows] != labels[s]]
    assert changed == sorted(one["unit"] for one in found[:n])
    for s in changed:
        assert "B-LOC" in [row[-1] for row in new[s]]


def test_from_docs_to_corrected_docs(tmp_path: Path) -> None:
    path, done = spoiled_docs(tmp_path)
    good("audit", path, "-o", tmp_path / "found.jsonl", *QUICK)
    n = len(done)
    assert {one["unit"] for one in findings(tmp_path / "found.jsonl")[:n]} == set(done)
    decisions = decide(tmp_path / "found.jsonl", tmp_path / "decisions.jsonl", n)
    good("audit", path, "--apply", decisions, "-o", tmp_path / "new.spacy", "--json")
    docs = list(DocBin().from_disk(tmp_path / "new.spacy").get_docs(Vocab()))
    assert all("LOC" in {e.label_ for e in docs[s].ents} for s in done)
    assert all(token.tag_ for doc in docs for token in doc)


def test_decisions_about_another_column_or_task_are_refused(tmp_path: Path) -> None:
    path, _ = spoiled_file(tmp_path)
    page, found = tmp_path / "page.html", tmp_path / "found.jsonl"
    good("audit", path, "--label-column", "3", "-o", found, "--page", page, *QUICK)
    options = f"{path} --label-column 3 --apply decisions.jsonl -o corrected.conll"
    assert options in page.read_text(encoding="utf8")
    decisions = decide(found, tmp_path / "decisions.jsonl", 1)
    target = tmp_path / "new"
    apply = ("--apply", decisions, "-o", target)
    said = refused("audit", path, "--label-column", "2", *apply)
    assert "the label column 3" in said
    assert "the label column 2" in said
    assert not target.exists()
    good("audit", path, *apply)  # the last column is the third
    docs, _ = spoiled_docs(tmp_path)
    assert "the label column 3" in refused("audit", docs, *apply, "--force")
    good("audit", docs, "-o", found, *QUICK, "--force")
    decide(found, decisions, 1)
    said = refused("audit", docs, "--task", "spans:sc", *apply, "--force")
    assert "the task 'ents'" in said
    assert "the task 'spans:sc'" in said


@pytest.mark.parametrize(
    ("name", "options", "shown"),
    [
        ("a.conll", {}, ""),
        ("a.conll", {"label_column": -1, "kinds": {2: "skip", 3: "number"}, "unlabelled": "_"},
         "--columns 2=skip,3=number --unlabelled _"),
        ("a.spacy", {"task": "spans:my key", "lang": "de"}, "--lang de --task 'spans:my key'"),
        ("a.spacy", {"config": Path("my tags.cfg")}, "--config 'my tags.cfg'"),
        ("a.conll", {"encoding": "latin-1"}, "--encoding latin-1"),
    ],
)  # fmt: skip
def test_the_page_names_the_options_by_which_the_corpus_was_read(
    name: str, options: dict, shown: str
) -> None:
    columns = {"label_column": -1, "kinds": {}, "window": None, "unlabelled": None}
    columns |= {key: value for key, value in options.items() if key in columns}
    source = Source(
        Path(name),
        options.get("encoding", "utf-8"),
        columns,
        options.get("task", "ents"),
        options.get("config"),
        options.get("lang"),
    )
    assert shlex.join(source.options()) == shown


def test_tags_of_docs_are_judged_too(tmp_path: Path) -> None:
    path, _ = spoiled_docs(tmp_path)
    said = json.loads(good("audit", path, "--task", "tag", "--json", *QUICK))
    assert said["judged"] == said["tokens"]


def test_existing_files_stay_and_the_corpus_is_replaced_only_by_force(tmp_path: Path) -> None:
    path, _ = spoiled_file(tmp_path)
    empty = tmp_path / "decisions.jsonl"
    empty.write_text("")
    assert "use --force" in refused("audit", path, "--apply", empty, "-o", path)
    before = path.read_bytes()
    good("audit", path, "--apply", empty, "-o", path, "--force")
    assert path.read_bytes() == before
    assert "name the corrected corpus" in refused("audit", path, "--apply", empty)
    both = ("-o", tmp_path / "x", "--page", tmp_path / "x")
    assert "name two" in refused("audit", path, *both)
    assert "exists" in refused("audit", path, "--page", empty)
    assert "would be lost" in refused("audit", path, "-o", path, "--force")
    assert "would be lost" in refused("audit", path, "--apply", empty, "-o", empty, "--force")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--folds", "1000"], "cannot be cut into"), (["--set", "order=9"], "order")],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    path, _ = spoiled_file(tmp_path)
    assert said in refused("audit", path, *arguments)


def test_files_without_annotation_are_named_with_what_they_lack(tmp_path: Path) -> None:
    path = tmp_path / "bare.spacy"
    DocBin(docs=[Doc(Vocab(), words=["Ann", "left"])] * 2).to_disk(path)
    said = refused("audit", path, "--task", "tag")
    assert "nothing is annotated in" in said
    assert "bare.spacy for the task 'tag', which reads token.tag_;" in said
    columns = tmp_path / "bare.conll"
    columns.write_text("Ann _\nleft _\n", encoding="utf8")
    said = refused("audit", columns, "--unlabelled", "_")
    assert f"nothing is annotated in column 2 of {columns}" in said


def test_sentences_of_documents_can_be_dealt_out_apart(tmp_path: Path) -> None:
    path, _ = spoiled_file(tmp_path)
    more_than_documents = ["--json", *QUICK, "--folds", "41", "--rounds", "2"]
    assert "40 documents cannot be cut into 41" in refused("audit", path, *more_than_documents)
    said = json.loads(good("audit", path, "--apart", *more_than_documents))
    assert said["sequences"] == 120
