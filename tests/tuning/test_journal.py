"""The journal survives interruptions, and belongs to one search."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.tuning.journal import Journal, Result

ABOUT = {"config": "abc", "folds": 0}


def result(leaves: int, fold: int = 0, score: float | None = 0.5) -> Result:
    return Result({"leaves": leaves}, fold, score, {"ents_f": 0.5}, 3, 1.5)


def test_results_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, ABOUT)
    journal.add(result(8))
    journal.add(result(8, fold=1, score=None))
    again = Journal(path, ABOUT)
    assert len(again) == 2
    assert again.find({"leaves": 8}, 0) == result(8)
    assert again.find({"leaves": 8}, 1) == result(8, fold=1, score=None)
    assert again.find({"leaves": 9}, 0) is None


def test_half_a_line_is_dropped_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, ABOUT)
    journal.add(result(8))
    journal.add(result(16))
    path.write_bytes(path.read_bytes()[:-10])
    again = Journal(path, ABOUT)
    assert len(again) == 1
    again.add(result(16))
    assert len(Journal(path, ABOUT)) == 2


def test_journals_of_other_searches_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Journal(path, ABOUT).add(result(8))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"another search \(different: config\)"):
        Journal(path, {**ABOUT, "config": "def"})
    assert path.read_bytes() == before


@pytest.mark.parametrize("data", ["hello\n", '{"kind": "other"}\n', "[1]\n", "no line end"])
def test_other_files_are_refused_and_kept(tmp_path: Path, data: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(data)
    with pytest.raises(ValueError, match="journal"):
        Journal(path, ABOUT)
    assert path.read_text() == data


def test_malformed_results_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Journal(path, ABOUT).add(result(8))
    path.write_text(path.read_text().splitlines()[0] + '\n{"settings": {}}\n')
    with pytest.raises(ValueError, match=r"j\.jsonl:2: expected a line of a journal"):
        Journal(path, ABOUT)


def test_searches_without_a_score_leave_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, ABOUT)
    journal.add(result(0, score=None))
    assert not path.exists()
    assert journal.find({"leaves": 0}, 0) == result(0, score=None)
    journal.add(result(8))
    again = Journal(path, ABOUT)
    assert len(again) == 2
    assert again.find({"leaves": 0}, 0) == result(0, score=None)


def test_journals_without_a_score_block_no_other_search(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    first_line = '{"kind": "spacy-treecrf tune", "config": "abc", "folds": 0}\n'
    path.write_text(first_line)  # as version 0.1.0 left it
    other = Journal(path, {**ABOUT, "config": "def"})
    assert path.read_text() == first_line
    other.add(result(8))
    assert len(Journal(path, {**ABOUT, "config": "def"})) == 1
