"""Pronouncing dictionaries of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spacy_treecrf.corpora import load_corpus, prepare_corpus
from spacy_treecrf.corpora.dictionary import read_entries

LINES = [
    f"{a}{b}{c}  {a.upper()} {b.upper()}1 {c.upper()}\n"
    for a in "kst"
    for b in "aou"
    for c in "kstn"
]


def test_words_of_a_file_get_a_label_for_each_letter(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    file.write_text(";;; mine\n\n" + "".join(LINES), encoding="utf-8")
    splits = load_corpus("dictionary", inputs=[file])
    words = {word.key: word.labels["phoneme"] for part in splits.values() for word in part}
    assert len(words) == len(LINES)
    assert words["kan"] == ["K", "A1", "N"]
    assert all(splits.values())


def test_the_first_pronunciation_counts(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    file.write_text("Éa  e a\néa(2)  i a\n", encoding="utf-8")
    assert read_entries(file) == {"éa": ["e", "a"]}


def test_entries_of_several_words_before_a_tab_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    file.write_text("ad hoc\t@ d h a k\n ad \t@ d\nhoc\th\ta\tk\n", encoding="utf-8")
    assert read_entries(file) == {"ad": ["@", "d"], "hoc": ["h", "a", "k"]}


def test_comments_behind_pronunciations_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    file.write_text("aalto  AA1 L T OW2 # name, finnish\nhiv  EY1 CH # abbrev\n", encoding="utf-8")
    assert read_entries(file) == {"aalto": ["AA1", "L", "T", "OW2"], "hiv": ["EY1", "CH"]}


def test_a_number_sign_is_a_phoneme_where_phonemes_follow(tmp_path: Path) -> None:
    file = tmp_path / "disc.dict"
    file.write_text("barn  b # n\nnub  n V b\nspa's  s p # b #\n", encoding="utf-8")
    assert read_entries(file) == {
        "barn": ["b", "#", "n"],
        "nub": ["n", "V", "b"],
        "spa's": ["s", "p", "#", "b", "#"],
    }


def test_a_dictionary_that_cannot_be_aligned_is_refused_and_replaces_nothing(
    tmp_path: Path,
) -> None:
    good, bad, output = tmp_path / "good.dict", tmp_path / "bad.dict", tmp_path / "out"
    good.write_text("".join(LINES), encoding="utf-8")
    bad.write_text("a  A B C\no  O P Q\n", encoding="utf-8")
    prepare_corpus("dictionary", output, inputs=[good])
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    with pytest.raises(ValueError, match=r"bad\.dict: none of its 2 words can be aligned"):
        prepare_corpus("dictionary", output, inputs=[bad], force=True)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


@pytest.mark.parametrize(
    ("separator", "between", "said"),
    [
        (",", " ", "line 2: found a comma in the word, as in nearly all lines: 'kak,K A1 K'"),
        (" 0.9 ", " ", "line 2: found a number before the phonemes"),
        (" 1 0.5 1.0 ", " ", "take out the probabilities"),
        (" /", "", "line 2: found one phoneme of a word with several letters"),
    ],
)
def test_other_formats_are_refused(tmp_path: Path, separator: str, between: str, said: str) -> None:
    file = tmp_path / "own.dict"
    entries = [line.split() for line in LINES]
    lines = [word + separator + between.join(phonemes) for word, *phonemes in entries]
    file.write_text("\n".join(["a  A", *lines]), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)):
        read_entries(file)


def test_what_a_few_words_have_of_another_format_is_theirs(tmp_path: Path) -> None:
    file = tmp_path / "own.dict"
    own = ["1,000  W A N", "eau  O", "aim  1 m"]
    file.write_text("\n".join(own) + "\n" + "".join(LINES), encoding="utf-8")
    assert len(read_entries(file)) == len(LINES) + len(own)
    file.write_text("eau  O\neaux  O\n", encoding="utf-8")  # too few to tell
    assert read_entries(file) == {"eau": ["O"], "eaux": ["O"]}
    numbered = [f"{'a' * i}  {' '.join(map(str, range(i)))}\n" for i in range(2, 20)]
    file.write_text("".join(numbered), encoding="utf-8")  # phonemes are numbers
    assert len(read_entries(file)) == len(numbered)


@pytest.mark.parametrize("line", ["word", "word # gone", "word _", "word K-S"])
def test_lines_that_cannot_be_read_are_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "own.dict"
    file.write_text(f"ka  K A\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="2"):
        read_entries(file)
