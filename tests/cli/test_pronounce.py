"""`pronounce`: words, files and the standard input; tables and tab-separated lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import spacy

from tests.cli.calls import good, refused
from tests.letters.test_pronouncer import SAID, pronouncing


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pronouncing")
    pronouncing(keep=1).to_disk(folder)
    return folder


def test_words_come_from_arguments_files_and_the_standard_input(
    model: Path, tmp_path: Path
) -> None:
    lines = good("pronounce", model, "box", "robot").splitlines()
    assert lines[0].split() == ["word", "pronunciation", "probability"]
    firsts = {line.split()[0]: " ".join(line.split()[1:-1]) for line in reversed(lines[1:])}
    assert {word: firsts[word] for word in ("box", "robot")} == {
        word: SAID[word] for word in ("box", "robot")
    }
    text, output = tmp_path / "words.txt", tmp_path / "said.tsv"
    text.write_text("Box, robot!\n\n", encoding="utf-8")
    good("pronounce", model, text, "--output", output, "--nbest", "1")
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row[:2] for row in rows] == [["Box", SAID["box"]], ["robot", SAID["robot"]]]
    assert all(0 < float(row[2]) <= 1 for row in rows)
    said = good("pronounce", model, "-", "--nbest", "2", input="Box, robot!\n")
    assert [line.split()[0] for line in said.splitlines()[1:]].count("Box") == 2
    assert "exists" in refused("pronounce", model, text, "--output", output)


def test_each_argument_that_is_a_file_is_read(model: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("box\nfob\n", encoding="utf-8")
    second.write_text("tofu\n", encoding="utf-8")
    long = "bob " * 100
    arguments = [first, "robot", "-", second, tmp_path, long]
    said = good("pronounce", model, *arguments, "--nbest", "1", input="fox\n")
    words = [line.split()[0] for line in said.splitlines()[1:]]
    assert words[:5] == ["box", "fob", "robot", "fox", "tofu"]
    assert words[5:] == [*re.findall(r"[^\W_]+", str(tmp_path)), *long.split()]


def test_texts_in_other_encodings_are_read_or_refused(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "latin.txt"
    text.write_bytes("box Jos\xe9\n".encode("latin-1"))
    assert "--encoding latin-1" in refused("pronounce", model, text)
    assert "no encoding 'klingon'" in refused("pronounce", model, text, "--encoding", "klingon")
    said = good("pronounce", model, text, "--encoding", "latin-1", "--nbest", "1")
    assert said.splitlines()[1].split()[0] == "box"
    assert "holds no text" in refused("pronounce", model, "-")


def test_pipelines_that_pronounce_nothing_are_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    assert "no pipe treecrf_pronouncer" in refused("pronounce", tmp_path / "blank", "word")
    assert "cannot load" in refused("pronounce", tmp_path / "absent", "word")
