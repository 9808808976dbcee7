"""Column files are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.columnar.files import read_column_file, read_text_lines


def written(folder: Path, data: str | bytes) -> Path:
    path = folder / "data.conll"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_rows_sequences_and_lines(tmp_path: Path) -> None:
    file = read_column_file(written(tmp_path, "\n\na X\nb Y\n \n\nc Z"))
    assert file.sequences == [[["a", "X"], ["b", "Y"]], [["c", "Z"]]]
    assert file.lines == [3, 7]
    assert file.place(0, 1).endswith("data.conll:4")
    assert file.n_fields == 2


def test_tabs_keep_blanks_and_empty_cells(tmp_path: Path) -> None:
    file = read_column_file(written(tmp_path, "New York\t\tX\r\nb\tc\tY\r\n"))
    assert file.sequences == [[["New York", "", "X"], ["b", "c", "Y"]]]


def test_unusual_line_ends_and_blanks_stay_in_tokens(tmp_path: Path) -> None:
    file = read_column_file(written(tmp_path, "a\u2028b\u00a0c X\n\u0085 Y\n"))
    assert file.sequences == [[["a\u2028b\u00a0c", "X"], ["\u0085", "Y"]]]


def test_byte_order_mark_is_no_part_of_the_first_token(tmp_path: Path) -> None:
    assert read_column_file(written(tmp_path, b"\xef\xbb\xbfa X")).sequences == [[["a", "X"]]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a X\nb\n", r"data\.conll:2: expected 2 columns separated by blanks.* found 1 in 'b'"),
        ("a\tX\nb\tY\tZ\n", r":2: expected 2 columns separated by tabs.* found 3"),
        ("a\tX\nb Y\n", r":2: expected 2 columns separated by tabs.* found 1"),
        (b"a X\n\xe9t\xe9 Y\n", r":2: expected utf-8, found the byte 0xe9.*--encoding latin-1"),
        ("a X\n\0\0 Y\n", r":2: found a zero byte"),
        ("\n \n", r"data\.conll has no rows"),
        ("", r"data\.conll has no rows"),
        ("# s1\na X\n\n# s2\nb X\n", r"data\.conll:1: '# s1' looks like a comment"),
        ("\n# id 1\na\tX\n", r"data\.conll:2: '# id 1' looks like a comment"),
    ],
)
def test_malformed_files_are_refused_with_line_and_remedy(
    tmp_path: Path, data: str | bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read_column_file(written(tmp_path, data))
    assert str(error.value).startswith("treecrf: ")


def test_a_number_sign_may_be_a_token(tmp_path: Path) -> None:
    file = read_column_file(written(tmp_path, "# O\na X\n\nb X\n"))
    assert file.sequences == [[["#", "O"], ["a", "X"]], [["b", "X"]]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_end_as_on_any_system(tmp_path: Path, end: str, last: bool) -> None:
    data = end.join(["a\tX", "b\tY", "", "c\tZ", *[""] * last])
    file = read_column_file(written(tmp_path, data))
    assert file.sequences == [[["a", "X"], ["b", "Y"]], [["c", "Z"]]]
    assert file.lines == [1, 4]
    assert read_text_lines(written(tmp_path, data)) == ["a\tX", "b\tY", "c\tZ"]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a\tX\nb\tY\rc\tZ\n", 2),
        ("a X\rb Y\rc Z\n", 1),
        ("a X\r\r\nb Y\r\r\n", 1),  # CRLF that was converted once more
        ("a X\n\r\rb Y\n", 2),
    ],
)
def test_files_of_mixed_line_ends_are_refused(tmp_path: Path, data: str, line: int) -> None:
    message = rf"^treecrf: .*data\.conll:{line}: found a carriage return .*; end all lines"
    with pytest.raises(ValueError, match=message):
        read_column_file(written(tmp_path, data))


def test_other_encodings_are_read_when_named(tmp_path: Path) -> None:
    path = written(tmp_path, "été X".encode("latin-1"))
    assert read_column_file(path, "latin-1").sequences == [[["été", "X"]]]
    for name in ("klingon", "undefined", "base64", "idna", "utf\0", ""):
        with pytest.raises(ValueError, match=r"^treecrf: ") as error:
            read_column_file(path, name)
        assert repr(name) in str(error.value) or name in str(error.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"treecrf: cannot read .*nothing\.conll: No such file"):
        read_column_file(tmp_path / "nothing.conll")


def test_text_is_a_document_per_line(tmp_path: Path) -> None:
    assert read_text_lines(written(tmp_path, "One.\n\nTwo three.\r\n")) == ["One.", "Two three."]
    with pytest.raises(ValueError, match="holds no text"):
        read_text_lines(written(tmp_path, "\n"))
