"""Which features columns become."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.columnar.files import ColumnFile
from spacy_treecrf.columnar.template import (
    LABEL,
    Template,
    make_template,
    parse_kinds,
    word_shape,
)
from spacy_treecrf.storage.state_reader import StateReader
from tests.columnar.tiny_columns import trained, write_columns


def column_file(*sentences: list[list[str]]) -> ColumnFile:
    lines = [1]
    for rows in sentences[:-1]:
        lines.append(lines[-1] + len(rows) + 1)
    return ColumnFile("data.conll", list(sentences), lines)


FILE = column_file([["Paris", "1.5", "N", "B"], ["is", "_", "V", "O"]])


def features(template: Template, file: ColumnFile) -> list[list[dict[str, object]]]:
    return list(template.features(template.split(file, need_labels=True)[0], file.place))


def test_first_column_is_words_others_are_values_last_is_the_label() -> None:
    assert make_template(FILE).kinds == ("word", "value", "value", LABEL)


def test_single_characters_are_letters() -> None:
    assert make_template(column_file([["a", "X"], ["é", "Y"]])).kinds == ("letter", LABEL)


@pytest.mark.parametrize(("column", "index"), [(-1, 3), (4, 3), (1, 0), (-3, 1)])
def test_label_column_counts_from_1_or_from_the_end(column: int, index: int) -> None:
    template = make_template(FILE, label_column=column)
    assert template.label_field == index
    assert template.kinds[0 if index else 1] == "word"


@pytest.mark.parametrize("column", [0, 5, -5])
def test_label_columns_that_do_not_exist_are_refused(column: int) -> None:
    with pytest.raises(ValueError, match=f"label column {column}: data.conll has 4 columns"):
        make_template(FILE, label_column=column)


def test_words_give_forms_affixes_shapes_and_windows() -> None:
    template = make_template(FILE, kinds={2: "skip", 3: "skip"})
    first, second = features(template, FILE)[0]
    assert first == {
        "1.word[0]": "Paris",
        "1.lower[-2]": "<edge>",
        "1.lower[-1]": "<edge>",
        "1.lower[0]": "paris",
        "1.lower[1]": "is",
        "1.lower[2]": "<edge>",
        "1.shape[0]": "Xxxxx",
        "1.shape[1]": "xx",
        "1.prefix2[0]": "pa",
        "1.prefix3[0]": "par",
        "1.prefix4[0]": "pari",
        "1.suffix1[0]": "s",
        "1.suffix2[0]": "is",
        "1.suffix3[0]": "ris",
        "1.suffix4[0]": "aris",
    }
    assert "1.prefix3[0]" not in second


def test_values_and_numbers_have_windows_and_missing_numbers_are_left_out() -> None:
    template = make_template(FILE, kinds={1: "skip", 2: "number"}, window=1)
    assert features(template, FILE)[0] == [
        {"2[0]": 1.5, "3[-1]": "<edge>", "3[0]": "N", "3[1]": "V"},
        {"2[-1]": 1.5, "3[-1]": "N", "3[0]": "V", "3[1]": "<edge>"},
    ]


def test_letters_have_ngrams_around_them() -> None:
    file = column_file([[c, "X"] for c in "Abc"])
    middle = features(make_template(file, window=2), file)[0][1]
    assert middle["1.letter[-1]"] == "a"
    assert middle["1.cased[0]"] == "b"
    assert middle["1.gram2[-1]"] == "ab"
    assert middle["1.gram2[0]"] == "bc"
    assert "1.gram2[1]" not in middle
    assert middle["1.gram3[-1]"] == "abc"


def test_window_zero_sees_the_token_alone() -> None:
    found = features(make_template(FILE, window=0), FILE)[0][0]
    assert all(key.endswith("[0]") for key in found)


def test_text_in_a_column_of_numbers_is_refused_with_its_line() -> None:
    file = column_file([["a", "1", "X"]], [["b", "two", "Y"]])
    with pytest.raises(ValueError, match=r"data\.conll:3: expected a number in column 2.*'two'"):
        features(make_template(file, kinds={2: "number"}), file)


def test_labels_are_split_off_and_unannotated_ones_are_none() -> None:
    template = make_template(FILE, unlabelled="O")
    rows, labels = template.split(FILE, need_labels=True)
    assert rows == [[["Paris", "1.5", "N"], ["is", "_", "V"]]]
    assert labels == [["B", None]]


def test_files_without_the_label_column_can_be_tagged_only() -> None:
    bare = column_file([["Paris", "1.5", "N"]])
    template = make_template(FILE)
    assert template.split(bare, need_labels=False) == (bare.sequences, None)
    with pytest.raises(ValueError, match=r"data\.conll:1: expected 4 columns, .* found 3"):
        template.split(bare, need_labels=True)
    with pytest.raises(ValueError, match="expected 4 columns \\(or 3, without the label\\)"):
        template.split(column_file([["Paris", "N"]]), need_labels=False)


def test_empty_labels_are_refused() -> None:
    file = column_file([["a", "X"], ["b", ""]])
    with pytest.raises(ValueError, match=r"data\.conll:2: expected a label in column 2"):
        make_template(file).split(file, need_labels=True)


@pytest.mark.parametrize("text", ["2", "2=words", "x=skip", "=skip", "-1=skip"])
def test_malformed_kinds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="treecrf: --columns has"):
        parse_kinds(text)


def test_kinds_are_parsed_and_checked_against_the_file() -> None:
    assert parse_kinds(" 2=number, 3=skip ") == {2: "number", 3: "skip"}
    assert parse_kinds("") == {}
    for column in (4, 5):
        with pytest.raises(ValueError, match=f"names column {column}"):
            make_template(FILE, kinds={column: "skip"})
    with pytest.raises(ValueError, match="skips every column"):
        make_template(FILE, kinds={1: "skip", 2: "skip", 3: "skip"})
    with pytest.raises(ValueError, match="at least 2 columns"):
        make_template(column_file([["a"]]))


def test_shapes_are_those_of_spacy() -> None:
    from spacy.lang.lex_attrs import word_shape as of_spacy

    for word in ["Paris", "U.S.", "iPhone12", "12345678", "abcdefgh", "-", "É1é", "ABCDEFg"]:
        assert word_shape(word) == of_spacy(word)


def test_templates_survive_the_model_file_and_edited_ones_are_refused() -> None:
    template = Template(("word", "number", LABEL), 3, "?")
    assert Template.from_state(StateReader(template.to_state())) == template
    assert Template.from_state(StateReader(make_template(FILE).to_state())) == make_template(FILE)
    for kinds in (["word"], ["word", LABEL, LABEL], ["words", LABEL]):
        with pytest.raises(ValueError, match="field 'kinds'"):
            Template.from_state(StateReader({**template.to_state(), "kinds": kinds}))


def test_unannotated_tokens_are_no_label_of_the_model(tmp_path: Path) -> None:
    sentences = [[["a", "X"], ["b", "?"], ["c", "Y"]]] * 4
    path = write_columns(tmp_path / "partial.conll", sentences)
    assert "?" in trained(path).crf.labels
    file = column_file(*sentences)
    _, labels = make_template(file, unlabelled="?").split(file, need_labels=True)
    assert labels is not None
    assert labels[0] == ["X", None, "Y"]
