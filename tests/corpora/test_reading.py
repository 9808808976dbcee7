"""Each reader on small files: what it reads, and how it refuses what is malformed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf.corpora import LabelledSequence, read_columns
from spacy_treecrf.corpora.cmudict import read_cmudict, read_pronunciations
from spacy_treecrf.corpora.conll import read_conll, read_conll2000, read_conll2003
from spacy_treecrf.corpora.conll2002 import read_conll2002
from spacy_treecrf.corpora.faq import FEATURES, line_features, read_faq
from spacy_treecrf.corpora.moby import read_moby
from spacy_treecrf.corpora.nettalk import read_nettalk, with_all_layers
from spacy_treecrf.corpora.ocr import HEADER, read_ocr
from spacy_treecrf.corpora.protein import read_protein

NETTALK_HEADER = "header\n" * 10
PIXELS = "01" * 64
OCR_HEADER = "\t".join(HEADER) + "\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "data.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def words(sequences: list[LabelledSequence]) -> list[str]:
    return ["".join(sequence.words) for sequence in sequences]


def test_nettalk(write) -> None:
    rows = (
        "aback\txb@k-\t0>1<<\t0\nbarrow\tb@r-o-\t>1<>0<\t0 \ngunpowder\tg^npW-d-R\t0\t\n"
        "aback\txb@k-\t0>1<<\t2\n"
    )
    sequences = read_nettalk(write(NETTALK_HEADER + rows))
    assert words(sequences) == ["aback", "barrow", "gunpowder", "aback"]
    assert sequences[0].labels == {
        "phoneme": list("xb@k-"),
        "stress": list("0>1<<"),
        "phoneme_stress": ["x0", "b>", "@1", "k<", "-<"],
    }
    assert "".join(sequences[1].labels["stress"]) == ">1<>0<"
    assert list(sequences[2].labels) == ["phoneme"]
    assert words(with_all_layers(sequences)) == ["aback", "barrow", "aback"]


def test_moby_labels_the_letters_that_a_hyphen_may_follow(write) -> None:
    data = b"aard\xa5vark\na cap\xa5pel\xa5la\nAa\xa5ron\nab\xa5b\x8e\npi\xa5ra\xa5\nabb\n"
    sequences = read_moby(write(data))
    assert words(sequences) == ["aardvark", "pira", "abb"]
    hyphens = ["".join("y" if h == "yes" else "." for h in r.labels["hyphen"]) for r in sequences]
    assert hyphens == ["...y....", ".y..", "..."]


def test_protein_chains(write) -> None:
    data = "# comment\n<>\nG _\nV h\nend\n<>\nA e\n<>\nC _\n<end>\n"
    sequences = read_protein(write(data))
    assert words(sequences) == ["GV", "A", "C"]
    assert [sequence.labels["structure"] for sequence in sequences] == [["_", "h"], ["e"], ["_"]]


def test_ocr_hides_the_letter_and_keeps_the_pixels(write) -> None:
    rows = f"7\t0\t3\to\t{PIXELS}\n7\t1\t3\tm\t{PIXELS[::-1]}\n9\t0\t0\tx\t{PIXELS}\n"
    sequences = read_ocr(write(OCR_HEADER + rows))
    assert words(sequences) == ["??", "?"]
    assert sequences[0].labels == {"letter": ["o", "m"]}
    assert sequences[0].features["pixels"] == [[0, 1] * 64, [1, 0] * 64]
    assert [sequence.fold for sequence in sequences] == [3, 0]


def test_conll2000(write) -> None:
    sequences = read_conll2000(write("He PRP B-NP\nsaid VBD B-VP\n\n\nYes UH O\n"))
    assert [sequence.words for sequence in sequences] == [["He", "said"], ["Yes"]]
    assert sequences[0].labels == {"tag": ["PRP", "VBD"], "chunk": ["B-NP", "B-VP"]}


def test_conll2003_is_converted_from_iob1_and_keeps_documents(write) -> None:
    start = "-DOCSTART- -X- O O\n\n"
    rows = "EU NNP I-NP I-ORG\nUN NNP B-NP B-ORG\nsays VBZ I-VP O\nJoe NNP I-NP I-PER\n"
    rows += "Caf\xe9 NNP I-NP I-ORG\n\nHi UH O O\n\n"
    data = start + rows + start + "Bye UH O O\n"
    sequences = read_conll2003(write(data.encode("latin-1")))
    assert sequences[0].labels["ner"] == ["B-ORG", "B-ORG", "O", "B-PER", "B-ORG"]
    assert sequences[0].labels["chunk"] == ["B-NP", "B-NP", "B-VP", "B-NP", "I-NP"]
    assert sequences[0].words[-1] == "Café"
    assert [sequence.document for sequence in sequences] == [0, 0, 1]
    assert sequences[0].key == sequences[1].key != sequences[2].key


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_conll2002_has_documents_by_marks_and_is_read_in_both_encodings(
    write, encoding: str
) -> None:
    start = "-DOCSTART- -DOCSTART- O\n"
    data = f"{start}Caf\xe9 N B-ORG\nBr N I-ORG\n\nHij Pron O\n\n{start}Dag N O\n"
    sequences = read_conll2002(write(data.encode(encoding)))
    assert [sequence.words for sequence in sequences] == [["Café", "Br"], ["Hij"], ["Dag"]]
    assert [sequence.document for sequence in sequences] == [0, 0, 1]
    assert sequences[0].labels == {"tag": ["N", "N"], "ner": ["B-ORG", "I-ORG"]}
    assert sequences[0].key == sequences[1].key != sequences[2].key


def test_reports_of_conll2002_begin_at_their_datelines(write) -> None:
    sentences = [
        "Hoy , 25 de mayo .",
        "EFE por Ana Beirut , 25 may ( EFE ) .",
        "El presidente ( EFE ) .",
        "Londres , 3 jun ( EFECOM ) .",
        "La bolsa , 3 jun ( EFECOM ) . subió",
    ]
    data = "\n\n".join("\n".join(f"{w} X O" for w in s.split()) for s in sentences)
    assert [s.document for s in read_conll2002(write(data))] == [0, 1, 1, 2, 2]


def test_conll_names_its_columns(write) -> None:
    path = write("a\tX\t1\tO\nb\tY\t2\tB-Q\n")
    (sequence,) = read_conll(path)
    assert sequence.labels == {"label": ["O", "B-Q"]}
    assert sequence.features == {"column2": ["X", "Y"], "column3": ["1", "2"]}
    (named,) = read_conll(path, ["form", "tag", "nr", "ner"])
    assert (list(named.features), list(named.labels)) == (["tag", "nr"], ["ner"])


def test_columns_may_hold_blanks_between_tabs_and_windows_line_ends(write) -> None:
    assert read_columns(write("New York\tB\r\nis\tO\r\n\r\n")) == [[["New York", "B"], ["is", "O"]]]
    assert read_columns(write("\ufeffa  B \n \nc O")) == [[["a", "B"]], [["c", "O"]]]


def test_cmudict_takes_the_first_pronunciation_of_words_of_letters(write) -> None:
    path = write("'bout B AW1 T\na AH0\na(2) EY1\nbox B AA1 K S # noun\nd.c. D IY1 S IY1\n")
    assert read_pronunciations(path) == {"a": ["AH0"], "box": ["B", "AA1", "K", "S"]}
    sequences = read_cmudict(path, sample=1.0)
    assert words(sequences) == ["a", "box"]
    assert sequences[1].key == "box"


def test_faq_lines_and_their_features(write) -> None:
    path = write("head\tSubject: FAQ\nhead\t\nquestion\t[1]  What is it?\nanswer\t  see http://x\n")
    sequence = read_faq(path, 4)
    assert sequence.words == ["Subject: FAQ", "", "[1]  What is it?", "  see http://x"]
    assert sequence.labels["line"] == ["head", "head", "question", "answer"]
    assert (sequence.fold, len(FEATURES), set(sequence.features)) == (4, 20, set(FEATURES))
    assert sequence.features["blank"] == [False, True, False, False]
    assert sequence.features["begins_with_subject"] == [True, False, False, False]
    assert sequence.features["contains_bracketed_number"] == [False, False, True, False]


@pytest.mark.parametrize(
    ("line", "features"),
    [
        ("", {"blank", "shorter_than_30"}),
        (
            "1) How are you?",
            {
                "begins_with_number",
                "contains_alphanum",
                "contains_number",
                "contains_question_mark",
                "contains_question_word",
                "ends_with_question_mark",
                "first_alpha_is_capitalized",
                "shorter_than_30",
            },
        ),
        (
            "2nd | point of this very long line",
            {
                "begins_with_number",
                "begins_with_ordinal",
                "contains_alphanum",
                "contains_number",
                "contains_pipe",
            },
        ),
        (
            "      --",
            {
                "begins_with_punctuation",
                "indented",
                "indented_5_to_10",
                "more_than_one_third_space",
                "shorter_than_30",
            },
        ),
        (
            "  why not, http://example.org/index",
            {
                "begins_with_question_word",
                "contains_alphanum",
                "contains_http",
                "contains_question_word",
                "indented",
                "indented_1_to_4",
            },
        ),
    ],
)
def test_line_features(line: str, features: set[str]) -> None:
    found = line_features(line)
    assert {name for name, value in found.items() if value} == features
    assert tuple(sorted(found)) == tuple(sorted(FEATURES))


MALFORMED: list[tuple[Callable[[Path], Any], str | bytes, str]] = [
    (read_nettalk, NETTALK_HEADER + "aback\txb@k-\t0>1<<\n", "line 11"),
    (read_nettalk, NETTALK_HEADER + "aback\txb@k\t0>1<<\t0\n", "line 11"),
    (read_nettalk, NETTALK_HEADER + "ab\txb\t01\t0\naback\txb@k-\t0>1<\t0\n", "line 12"),
    (read_nettalk, NETTALK_HEADER + "ab\txb\t0?\t0\n", "line 11"),
    (read_nettalk, NETTALK_HEADER, "no rows"),
    (read_moby, "aard\u2022vark\n", "0xA5"),
    (read_moby, b"aard\xa5vark\n\n", "line 2"),
    (read_moby, b"aard\xa5\xa5vark\n", "line 1"),
    (read_protein, "<>\nG _\nV x\n", "line 3"),
    (read_protein, "G _\n", "line 1"),
    (read_protein, "<>\nG _\nend\nV h\n", "line 4"),
    (read_protein, "<>\n", "no chains"),
    (read_ocr, "word\tpos\n", "line 1"),
    (read_ocr, "", "line 1"),
    (read_ocr, OCR_HEADER + f"0\t0\t0\to\t{PIXELS[1:]}\n", "line 2"),
    (read_ocr, OCR_HEADER + f"0\t0\t0\to\t{PIXELS[1:]}2\n", "line 2"),
    (read_ocr, OCR_HEADER + f"0\t0\t10\to\t{PIXELS}\n", "line 2"),
    (read_ocr, OCR_HEADER + f"0\t1\t0\to\t{PIXELS}\n", "letters in order"),
    (read_ocr, OCR_HEADER + f"0\t0\t0\to\t{PIXELS}\n0\t1\t1\to\t{PIXELS}\n", "line 3"),
    (read_ocr, OCR_HEADER + "0\t0\t0\to\n", "line 2"),
    (read_conll2000, "He PRP B-NP\nsaid VBD\n", "line 2"),
    (read_conll2000, "\n\n", "no rows"),
    (read_conll2003, "EU NNP I-NP I-ORG\n", "-DOCSTART-"),
    (read_conll2003, "-DOCSTART- -X- O O\nEU NNP I-NP I-ORG\n", "blank line"),
    (read_conll, "a O\nb X O\n", "line 2"),
    (read_conll, "a\tO\nb\t\n", "empty field"),
    (read_conll, "a\nb\n", "two or more"),
    (read_conll, "a O\nb \xe9 \xff".encode("latin-1"), "line 2: found byte 0xe9"),
    (read_pronunciations, "box B AA1 K S\nfox\n", "line 2"),
    (read_pronunciations, "box b aa1 k s\n", "line 1"),
    (read_pronunciations, "box B AA1 K S\n\n", "line 2"),
    (read_faq, "head\tSubject\nanswer without a tab\n", "line 2"),
    (read_faq, "\tno label\n", "line 1"),
    (read_faq, "", "is empty"),
]


@pytest.mark.parametrize(("read", "content", "part"), MALFORMED)
def test_malformed_files_are_refused_with_file_place_and_remedy(write, read, content, part) -> None:
    path = write(content)
    with pytest.raises(ValueError, match=r"^treecrf: .*expected") as caught:
        read(path)
    assert part in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^treecrf: .*does not exist"):
        read_columns(tmp_path / "nothing.txt")
    with pytest.raises(ValueError, match=r"^treecrf: .*is a folder"):
        read_columns(tmp_path)


def test_columns_with_one_name_twice_are_refused(write) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: columns are named a b b"):
        read_conll(write("x y z\n"), ["a", "b", "b"])


def test_sequence_refuses_labels_that_do_not_fit() -> None:
    with pytest.raises(
        ValueError, match=r"^treecrf: sequence 'k' has 2 words and 1 values of 'tag'"
    ):
        LabelledSequence(["a", "b"], {"tag": ["X"]}, key="k")


def test_lines_may_end_as_on_any_system_but_in_one_way(write) -> None:
    for end in ("\n", "\r\n", "\r"):
        assert read_columns(write(end.join(["a X", "b Y", "", "c Z", ""]))) == [
            [["a", "X"], ["b", "Y"]],
            [["c", "Z"]],
        ]
    for mixed in ("a X\nb Y\rc Z\n", "a X\r\r\nb Y\r\r\n"):
        with pytest.raises(ValueError, match=r"^treecrf: .*line \d: found a carriage return"):
            read_columns(write(mixed))
