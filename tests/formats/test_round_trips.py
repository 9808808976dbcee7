"""What one format says, all others say: texts with emoji, line ends and combining characters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_treecrf.formats.alignment import from_docs, to_docs
from spacy_treecrf.formats.annotated_text import (
    MISALIGNED,
    NOT_ANNOTATED,
    OF_BLANKS,
    OVERLAPPING,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.formats.brat import read_brat, write_brat
from spacy_treecrf.formats.conllu import read_conllu, write_conllu
from spacy_treecrf.formats.converting import FORMATS, TextFormat, TokenFormat, convert, read_texts
from spacy_treecrf.formats.offsets import COUNTINGS, from_code_points, to_code_points
from tests.refusals import assert_refused

CHARACTERS = ["a", "B", " ", "\r\n", "\n", "\t", "\U0001f600", "\U0001f469\u200d\U0001f692"]
CHARACTERS += ["e\u0301", "\u2028", "\ufeff", "\xdf", "|", "."]
LABELS = ["PER", "Loc-2", "ORT_é"]
CHAR_FORMATS = [
    name for name, each in FORMATS.items() if isinstance(each, TextFormat) and each.write
]
nlp = spacy.blank("en")


@st.composite
def annotated(draw: st.DrawFn) -> AnnotatedText:
    text = "".join(draw(st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=20)))
    spans = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        spans.append(LabelledSpan(start, end, draw(st.sampled_from(LABELS))))
    return AnnotatedText(text, tuple(spans))


@given(st.lists(st.sampled_from(CHARACTERS)).map("".join))
def test_offsets_come_back_under_both_countings(text: str) -> None:
    for counting in COUNTINGS:
        there, back = from_code_points(text, counting), to_code_points(text, counting)
        assert [back(there(i)) for i in range(len(text) + 1)] == list(range(len(text) + 1))
    units = from_code_points(text, "utf-16")
    assert [units(i) for i in range(len(text) + 1)] == [
        len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)
    ]
    assert to_code_points("😀", "utf-16")(1) is None


@pytest.mark.parametrize("name", CHAR_FORMATS)
@given(texts=st.lists(annotated(), max_size=4))
def test_spans_of_characters_come_back(
    name: str, tmp_path_factory: pytest.TempPathFactory, texts: list[AnnotatedText]
) -> None:
    path = tmp_path_factory.mktemp("formats") / "file"
    format = FORMATS[name]
    assert isinstance(format, TextFormat)
    assert format.write is not None
    path.write_bytes(b"".join(format.write(texts)))
    tally = Tally()
    assert list(format.read(path, tally)) == texts
    assert not +tally.left_out


@given(texts=st.lists(annotated(), min_size=1, max_size=4))
def test_spans_come_back_from_a_folder_of_brat(
    tmp_path_factory: pytest.TempPathFactory, texts: list[AnnotatedText]
) -> None:
    folder = tmp_path_factory.mktemp("brat")
    write_brat(texts, folder)
    found = list(read_brat(folder, Tally()))
    assert [(each.text, each.spans) for each in found] == [(t.text, t.spans) for t in texts]


@pytest.mark.parametrize("name", CHAR_FORMATS[:2])
def test_predictions_and_scores_come_back(name: str, tmp_path: Path) -> None:
    spans = (LabelledSpan(0, 1, "A", 0.25), LabelledSpan(1, 2, "B", 0.75))
    texts = [AnnotatedText("ab", spans, predicted=True), AnnotatedText("c", predicted=True)]
    format = FORMATS[name]
    assert isinstance(format, TextFormat)
    assert format.write is not None
    path = tmp_path / "file"
    path.write_bytes(b"".join(format.write(texts)))
    assert list(format.read(path, Tally())) == texts


@given(
    st.lists(annotated(), min_size=1, max_size=3), st.sampled_from(["strict", "contract", "expand"])
)
def test_docs_have_the_spans_that_can_be_entities_and_the_others_are_counted(
    texts: list[AnnotatedText], alignment: str
) -> None:
    tally = Tally()
    counted = list(tally.counted(texts))
    docs = list(to_docs(counted, nlp, alignment, tally))
    assert [doc.text for doc in docs] == [each.text for each in texts]
    kept = [each.spans for each in from_docs(docs)]
    assert sum(map(len, kept)) == tally.spans
    left_out = tally.left_out[MISALIGNED] + tally.left_out[OVERLAPPING]
    assert tally.spans + left_out == sum(len(each.spans) for each in texts)
    if alignment == "strict":
        for doc, each, spans in zip(docs, texts, kept, strict=True):
            assert {(s.label, doc.text[s.start : s.end].strip()) for s in spans} <= {
                (s.label, each.text[s.start : s.end].strip()) for s in each.spans
            }


@given(st.lists(annotated(), min_size=1, max_size=3))
def test_tokens_of_prodigy_are_the_tokens_of_docs(texts: list[AnnotatedText]) -> None:
    docs = list(to_docs(texts, nlp, "expand", Tally()))
    again = list(to_docs(from_docs(docs), nlp, "strict", Tally()))
    assert [[t.text for t in doc] for doc in again] == [[t.text for t in doc] for doc in docs]
    assert list(from_docs(again)) == list(from_docs(docs))


@pytest.mark.parametrize("name", ["conll", "conllu", "iob"])
@given(st.data())
def test_tokens_and_entities_come_back_from_files_of_tokens(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    words = st.lists(
        st.sampled_from(["a", "😀", "e\u0301", "New", ",", "#1"]), min_size=1, max_size=8
    )
    docs = []
    for own in data.draw(st.lists(words, min_size=1, max_size=3)):
        doc = spacy.tokens.Doc(nlp.vocab, words=own)
        start = data.draw(st.integers(0, len(own) - 1))
        end = data.draw(st.integers(start + 1, len(own)))
        doc.set_ents([spacy.tokens.Span(doc, start, end, data.draw(st.sampled_from(LABELS)))])
        docs.append(doc)
    format = FORMATS[name]
    assert isinstance(format, TokenFormat)
    assert format.write is not None
    path = tmp_path_factory.mktemp("tokens") / "file"
    path.write_bytes(b"".join(format.write(docs)))
    assert list(from_docs(format.read(path))) == list(from_docs(docs))


def test_sentences_tags_heads_and_blanks_come_back_from_conllu(tmp_path: Path) -> None:
    doc = spacy.tokens.Doc(
        nlp.vocab,
        words=["Ann", "sleeps", ".", "Fine", "!"],
        spaces=[True, False, True, False, False],
        tags=["NNP", "VBZ", ".", "JJ", "."],
        pos=["PROPN", "VERB", "PUNCT", "ADJ", "PUNCT"],
        lemmas=["Ann", "sleep", ".", "fine", "!"],
        heads=[1, 1, 1, 3, 3],
        deps=["nsubj", "ROOT", "punct", "ROOT", "punct"],
        ents=["B-PER", "O", "O", "O", "O"],
    )
    path = tmp_path / "a.conllu"
    path.write_bytes(b"".join(write_conllu([doc, doc])))
    first, second = read_conllu(path)
    for found in (first, second):
        assert found.text == doc.text
        for token, other in zip(found, doc, strict=True):
            assert (token.tag_, token.pos_, token.lemma_) == (other.tag_, other.pos_, other.lemma_)
            assert (token.head.i, token.dep_) == (other.head.i, other.dep_)
            assert token.is_sent_start == other.is_sent_start
        assert [(e.text, e.label_) for e in found.ents] == [("Ann", "PER")]


def test_a_spacy_file_comes_back(tmp_path: Path) -> None:
    doc = nlp("Ann lives in York")
    doc.set_ents([spacy.tokens.Span(doc, 3, 4, "LOC")])
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    format = FORMATS["spacy"]
    assert isinstance(format, TokenFormat)
    assert list(from_docs(format.read(tmp_path / "a.spacy"))) == list(from_docs([doc]))


@pytest.mark.parametrize("name", ["conll", "conllu", "iob"])
def test_tokens_of_blanks_of_a_spacy_file_are_not_written(tmp_path: Path, name: str) -> None:
    doc = nlp("Ann left.\n\nBob\tslept")
    assert sum(token.is_space for token in doc) == 2
    doc.set_ents([spacy.tokens.Span(doc, 0, 1, "PER")], default="outside")
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    convert(tmp_path / "a.spacy", tmp_path / f"b.{name}")
    convert(tmp_path / f"b.{name}", tmp_path / "c.spacy")
    (found,) = DocBin().from_disk(tmp_path / "c.spacy").get_docs(nlp.vocab)
    assert [token.text for token in found] == ["Ann", "left", ".", "Bob", "slept"]


@pytest.mark.parametrize("name", ["conll", "conllu", "iob"])
def test_entities_begin_behind_their_blanks(tmp_path: Path, name: str) -> None:
    words = ["Anna", " ", "Berg", "met", "Carl", "\n", "Rome"]
    doc = spacy.tokens.Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * 6)
    places = [(0, 1, "PER"), (1, 3, "PER"), (4, 5, "PER"), (5, 6, "X"), (6, 7, "LOC")]
    doc.set_ents([spacy.tokens.Span(doc, *place) for place in places], default="outside")
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    tally = convert(tmp_path / "a.spacy", tmp_path / f"b.{name}")
    assert tally.spans == 4
    assert tally.left_out == Counter({OF_BLANKS: 1})
    convert(tmp_path / f"b.{name}", tmp_path / "c.spacy")
    (found,) = DocBin().from_disk(tmp_path / "c.spacy").get_docs(nlp.vocab)
    assert [(ent.text, ent.label_) for ent in found.ents] == [
        ("Anna", "PER"),
        ("Berg", "PER"),
        ("Carl", "PER"),
        ("Rome", "LOC"),
    ]


def test_sentences_of_a_conllu_file_without_heads_stay_whole(tmp_path: Path) -> None:
    doc = spacy.tokens.Doc(
        nlp.vocab, words=["Ann", "sleeps", "Fine"], sent_starts=[True, False, True]
    )
    path = tmp_path / "a.conllu"
    path.write_bytes(b"".join(write_conllu([doc])))
    (found,) = read_conllu(path)
    assert [sentence.text for sentence in found.sents] == ["Ann sleeps", "Fine"]
    assert not found.has_annotation("DEP")


def test_sentences_without_heads_beside_parsed_ones_stay_whole(tmp_path: Path) -> None:
    row = "{}\t{}\t_\t_\t_\t_\t{}\t{}\t_\t_\n".format
    parsed = row(1, "Ann", 2, "nsubj") + row(2, "sleeps", 0, "root")
    bare = row(1, "She", "_", "_") + row(2, "snores", "_", "_") + row(3, "loudly", "_", "_")
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc\n{parsed}\n{bare}\n{parsed}\n", encoding="utf8")
    (found,) = read_conllu(path)
    assert [len(sentence) for sentence in found.sents] == [2, 3, 2]
    assert not found.has_annotation("DEP")


@pytest.mark.parametrize("name", ["conll", "conllu", "iob"])
@pytest.mark.parametrize("parsed", [False, True])
def test_entities_over_the_end_of_a_sentence_stay_whole(
    tmp_path: Path, name: str, parsed: bool
) -> None:
    words = ["He", "met", "Dr.", "Smith", "today", "Fine"]
    if parsed:
        deps = ["nsubj", "ROOT", "obj", "ROOT", "advmod", "ROOT"]
        doc = spacy.tokens.Doc(nlp.vocab, words=words, heads=[1, 1, 1, 3, 3, 5], deps=deps)
    else:
        starts = [i in (0, 3, 5) for i in range(len(words))]
        doc = spacy.tokens.Doc(nlp.vocab, words=words, sent_starts=starts)
    assert len(list(doc.sents)) == 3
    doc.ents = [spacy.tokens.Span(doc, 2, 4, "PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    tally = convert(tmp_path / "a.spacy", tmp_path / f"b.{name}")
    assert tally.lines() == [
        "1 texts, 1 spans",
        "left out: 1 boundaries of sentences within spans",
    ]
    tally = convert(tmp_path / f"b.{name}", tmp_path / "c.spacy")
    assert tally.spans == 1
    found = list(DocBin().from_disk(tmp_path / "c.spacy").get_docs(nlp.vocab))
    assert [ent.text for doc in found for ent in doc.ents] == ["Dr. Smith"]
    assert [token.text for doc in found for token in doc] == words


def test_user_data_come_back_from_a_spacy_file(tmp_path: Path) -> None:
    doc = nlp("Ann left")
    kept = {("._.", "part", 0, None): "Name", ("._.", "part", 4, None): "Verb", "list": (1, 2.5)}
    doc.user_data.update(kept)
    DocBin(docs=[doc, nlp("other")], store_user_data=True).to_disk(tmp_path / "a.spacy")
    convert(tmp_path / "a.spacy", tmp_path / "b.spacy")
    found = DocBin().from_disk(tmp_path / "b.spacy").get_docs(nlp.vocab)
    assert [each.user_data for each in found] == [kept, {}]


@pytest.mark.parametrize("name", ["conll", "conllu", "iob"])
@pytest.mark.parametrize("label", ["A B", "A\tB", "A\u2003B"])
def test_labels_with_blanks_are_refused_where_blanks_separate(name: str, label: str) -> None:
    doc = nlp("Ann left")
    doc.set_ents([spacy.tokens.Span(doc, 0, 1, label)])
    format = FORMATS[name]
    assert isinstance(format, TokenFormat)
    assert format.write is not None
    write = format.write
    assert_refused(lambda: b"".join(write([doc])), repr(f"{label}")[1:-1])


def test_docs_whose_entities_were_never_set_are_no_gold(tmp_path: Path) -> None:
    known = nlp("Ann left")
    known.set_ents([], default="outside")
    DocBin(docs=[known, nlp("Bob left")]).to_disk(tmp_path / "a.spacy")
    for target in ("b.conll", "b.iob"):
        tally = convert(tmp_path / "a.spacy", tmp_path / target)
        assert tally.summary() == {"texts": 1, "spans": 0, "left_out": {NOT_ANNOTATED: 1}}
        assert "Bob" not in (tmp_path / target).read_text()
    convert(tmp_path / "a.spacy", tmp_path / "c.spacy")
    convert(tmp_path / "a.spacy", tmp_path / "c.jsonl", None, "prodigy")
    for path, format in ((tmp_path / "c.spacy", None), (tmp_path / "c.jsonl", "prodigy")):
        assert [each.predicted for each in read_texts(path, format)] == [False, True]
