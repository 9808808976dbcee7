"""`report`."""

from __future__ import annotations

from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_treecrf.columnar.files import read_column_file
from tests.cli.calls import good, refused
from tests.columnar.tiny_columns import tiny_rows, write_columns
from tests.pages.test_markup import Reader
from tests.pipeline.tiny_pipes import corpus, new_nlp


def text_of(page: Path) -> str:
    return Reader(page.read_text(encoding="utf8")).text


def test_of_a_model_for_column_files(shared: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    model, data = shared / "weak.treecrf", shared / "test.conll"
    said = good("report", model, data, "-o", page, "--resamples", "20", "--errors", "3")
    assert said == f"saved to {page}\n"
    text = text_of(page)
    assert "span F1" in text
    assert "log-likelihood per token over rounds" in text
    assert page.read_text(encoding="utf8").count('class="error"') == 3
    assert str(len(read_column_file(data).sequences)) in text


def test_of_a_pipeline_with_docs_and_beside_another_model(shared: Path, tmp_path: Path) -> None:
    docs = DocBin(docs=[example.reference for example in corpus(new_nlp("ents"), "ents")])
    docs.to_disk(tmp_path / "test.spacy")
    page = tmp_path / "report.html"
    pipeline = shared / "pipeline"
    good("report", pipeline, tmp_path / "test.spacy", "-o", page, "--against", pipeline)
    text = text_of(page)
    assert "B − A" in text
    assert "only A is right at 0, only B at 0" in text
    assert "log-likelihood per token over rounds" in text  # which the pipe has kept


def test_an_existing_page_and_data_without_labels_are_refused(shared: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("mine")
    arguments = ("report", shared / "weak.treecrf", shared / "test.conll", "-o", page)
    assert "use --force" in refused(*arguments)
    assert page.read_text() == "mine"
    good(*arguments, "--force", "--resamples", "0")
    assert "span F1" in text_of(page)
    plain = write_columns(
        tmp_path / "plain.conll", [[row[:2] for row in rows] for rows in tiny_rows(3)]
    )
    assert "treecrf: " in refused(
        "report", shared / "weak.treecrf", plain, "-o", tmp_path / "x.html"
    )
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_page_is_the_same_again(shared: Path, tmp_path: Path, threads: str) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        arguments = (shared / "weak.treecrf", shared / "test.conll", "-o", tmp_path / name)
        good("report", *arguments, "--resamples", "20", "--threads", threads)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_a_log_of_spacy_is_refused_for_a_model_of_column_files(
    shared: Path, tmp_path: Path
) -> None:
    log, page = tmp_path / "log.jsonl", tmp_path / "report.html"
    log.write_text("{}\n")
    arguments = (shared / "weak.treecrf", shared / "test.conll", "-o", page)
    assert "leave --log out" in refused("report", *arguments, "--log", log)
    assert not page.exists()
