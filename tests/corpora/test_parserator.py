"""Labelled XML of parserator: tokens, labels, and nothing that XML could do beside."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.corpora import load_corpus
from spacy_treecrf.corpora.parserator import read_parserator
from tests.refusals import assert_refused

GOOD = """<AddressCollection>
  <AddressString><AddressNumber>123</AddressNumber> <Street>M&amp;M</Street> </AddressString>
  <AddressString><PlaceName>New</PlaceName> <PlaceName>York,</PlaceName></AddressString>
</AddressCollection>
"""


def test_children_are_tokens_and_their_names_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "labeled.xml"
    path.write_text(GOOD)
    first, second = read_parserator(path)
    assert (first.words, first.labels) == (
        ["123", "M&M"],
        {"part": ["AddressNumber", "Street"]},
    )
    assert second.words == ["New", "York,"]
    splits = load_corpus("parserator", inputs=[path, path])
    assert [sequence.words for sequence in splits["test"]] == [first.words, second.words]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("<AddressC", '<!DOCTYPE a [<!ENTITY b "c">]><AddressC', ["line 1", "document type"]),
        ("<AddressC", '<!DOCTYPE a SYSTEM "file:///etc/passwd"><AddressC', ["document type"]),
        ("New", "", ["line 3", "empty"]),
        ("York,", "<b>York</b>", ["line 3", "<b>"]),
        ("</PlaceName> <", "</PlaceName> and <", ["line 3", "'and'"]),
        ("</AddressCollection>", "", ["labeled.xml", "XML"]),
        ("<PlaceName>New</PlaceName> <PlaceName>York,</PlaceName>", "", ["without tokens"]),
    ],
)
def test_other_xml_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, parts: list[str]
) -> None:
    path = tmp_path / "labeled.xml"
    path.write_text(GOOD.replace(old, new, 1) if old in GOOD else new)
    assert_refused(lambda: read_parserator(path), *parts)


@pytest.mark.parametrize("encoding", ["foo", "utf-32", "utf-7", "idna", "punycode", "hex", "cp037"])
def test_an_encoding_that_cannot_be_read_is_refused(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "labeled.xml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n{GOOD}')
    assert_refused(lambda: read_parserator(path), "labeled.xml, line 1", "encoding")
    path.write_bytes(f'<?xml version="1.0" encoding="cp1252"?>\n{GOOD}'.encode("cp1252"))
    assert len(read_parserator(path)) == 2


def test_a_file_without_strings_or_none_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labeled.xml"
    assert_refused(lambda: read_parserator(path), "cannot read")
    path.write_text("<a/>")
    assert_refused(lambda: read_parserator(path), "no labelled strings")


tokens = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1),
        st.sampled_from(["Name", "Number"]),
    ),
    min_size=1,
)


@given(st.lists(tokens, min_size=1))
def test_what_is_written_as_xml_is_read(tmp_path_factory: pytest.TempPathFactory, strings) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("xml") / "labeled.xml"
    rows = [" ".join(f"<{n}>{escape(t)}</{n}>" for t, n in string) for string in strings]
    body = "\n".join(f"<String>{row}</String>" for row in rows)
    path.write_bytes(f"<Collection>{body}</Collection>".encode())
    found = read_parserator(path)
    assert [[*zip(s.words, s.labels["part"], strict=True)] for s in found] == strings
