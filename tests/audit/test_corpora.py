"""Corpora that are audited: places, words, documents, and what corrections leave as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_treecrf.audit.column_corpus import ColumnCorpus
from spacy_treecrf.audit.doc_corpus import DocCorpus
from spacy_treecrf.audit.entries import (
    Correction,
    Layer,
    Place,
    entry,
    read_decisions,
    refuse_other_layers,
)
from spacy_treecrf.audit.findings import Finding
from spacy_treecrf.configs.ready_configs import ready_config
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.formats.token_files import read_spacy_docs
from spacy_treecrf.labels.schemes import SCHEMES, conll_spans, scheme_of, spelled
from tests.audit.spoiled import spoiled_docs, spoiled_file


def correction(unit, start, end, words, annotated, suggested) -> Correction:
    return Correction(unit, start, end, tuple(words), annotated, suggested, Layer("ents"), "line 1")


@st.composite
def span_lists(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    cuts = sorted(draw(st.sets(st.integers(0, 9), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return [(a, b, draw(st.sampled_from(["X", "Y-Z"]))) for a, b in pairs]


@given(spans=span_lists(), scheme=st.sampled_from(SCHEMES))
def test_spelled_spans_are_read_back(spans, scheme):
    labels = spelled(spans, 9, scheme)
    assert conll_spans(labels) == spans
    told = scheme_of([labels])
    assert spelled(spans, 9, told) == labels


ROWS = {
    "BIO": ["B-PER", "I-PER", "O", "B-LOC", "B-LOC"],
    "IOB1": ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"],
    "IOE2": ["I-PER", "E-PER", "O", "E-LOC", "E-LOC"],
    "BIOES": ["B-PER", "E-PER", "O", "S-LOC", "S-LOC"],
    "BILUO": ["B-PER", "L-PER", "O", "U-LOC", "U-LOC"],
}
EXPECTED = {
    "BIO": ["B-PER", "I-PER", "O", "B-PER", "B-LOC"],
    "IOB1": ["I-PER", "I-PER", "O", "I-PER", "I-LOC"],
    "IOE2": ["I-PER", "E-PER", "O", "E-PER", "E-LOC"],
    "BIOES": ["B-PER", "E-PER", "O", "S-PER", "S-LOC"],
    "BILUO": ["B-PER", "L-PER", "O", "U-PER", "U-LOC"],
}
WORDS = ["Ann", "Lee", "saw", "Rome", "Bern"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("between", [" ", "   ", "\t"])
def test_a_corrected_column_file_keeps_scheme_lines_and_separators(tmp_path, scheme, end, between):
    path = tmp_path / "data.conll"
    lines = [f"{w}{between}{y}{between}é" for w, y in zip(WORDS, ROWS[scheme], strict=True)]
    text = end.join([f"-DOCSTART-{between}O{between}-", "", *lines, "", ""])
    path.write_bytes(text.encode("latin-1"))
    corpus = ColumnCorpus.read(path, "latin-1", label_column=2)
    assert corpus.units == [1]
    one = correction(1, 3, 4, ["Rome"], ((3, 4, "LOC"),), ((3, 4, "PER"),))
    found = corpus.corrected([one]).decode("latin-1")
    labels = [line.split()[1] for line in found.replace("\r", "\n").split("\n") if line.strip()]
    assert labels[1:] == EXPECTED[scheme]
    rest = [line.replace(y, "", 1) for line, y in zip(lines, ROWS[scheme], strict=True)]
    written = [line for line in found.split(end) if line.strip()][1:]
    assert [
        line.replace(y, "", 1) for line, y in zip(written, EXPECTED[scheme], strict=True)
    ] == rest
    assert corpus.corrected([]) == path.read_bytes()


def test_one_stray_label_does_not_change_the_scheme_of_new_spans(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text("Ann B-PER\nLee I-PER\n\nin O\nRome I-LOC\n\nBern O\n")
    one = correction(2, 0, 1, ["Bern"], (), ((0, 1, "LOC"),))
    found = ColumnCorpus.read(path, "utf-8").corrected([one])
    assert found == path.read_bytes().replace(b"Bern O", b"Bern B-LOC")


@given(
    labels=st.lists(
        st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y"]),
        min_size=1,
        max_size=7,
    ),
    bio=st.booleans(),
    data=st.data(),
)
def test_a_corrected_file_has_exactly_the_wanted_spans(tmp_path_factory, labels, bio, data):
    if bio:
        labels = [label.replace("E-", "I-").replace("S-", "B-") for label in labels]
    before = conll_spans(labels)
    path = tmp_path_factory.mktemp("corrected") / "data.conll"
    words = [f"w{t}" for t in range(len(labels))]
    rows = [f"{w} {y}\n" for w, y in zip(words, labels, strict=True)]
    path.write_text("".join([*rows, "\nx B-X\n"]))
    start, end, old = data.draw(st.sampled_from(before or [(0, 1, "")]))
    new = ((start, end, data.draw(st.sampled_from(["X", "Y"]))),)
    annotated = ((start, end, old),) if before else ()
    one = correction(0, start, end, words[start:end], annotated, new)
    found = ColumnCorpus.read(path, "utf-8").corrected([one]).decode().split("\n\n")
    after = conll_spans([line.split()[1] for line in found[0].splitlines()])
    assert after == sorted([*(span for span in before if span not in annotated), *new])
    assert found[1] == "x B-X\n"


def test_spans_without_types_and_plain_labels_are_corrected(tmp_path):
    path = tmp_path / "chunks.conll"
    path.write_text("a B\nb I\nc O\n\na B\nb O\n")
    one = correction(1, 0, 2, ["a", "b"], ((0, 1, "span"),), ((0, 2, "span"),))
    assert ColumnCorpus.read(path, "utf-8").corrected([one]) == b"a B\nb I\nc O\n\na B\nb I\n"
    path.write_text("dog N\nruns N\n")
    one = correction(0, 1, 2, ["runs"], ((1, 2, "N"),), ((1, 2, "V"),))
    assert ColumnCorpus.read(path, "utf-8").corrected([one]) == b"dog N\nruns V\n"


@pytest.mark.parametrize(
    ("unit", "words", "annotated"),
    [(9, ["Rome"], "LOC"), (0, ["Oslo"], "LOC"), (0, ["Rome"], "PER")],
)
def test_decisions_about_another_corpus_are_refused(tmp_path, unit, words, annotated):
    path = tmp_path / "data.conll"
    path.write_text("Rome B-LOC\n")
    one = correction(unit, 0, 1, words, ((0, 1, annotated),), ())
    with pytest.raises(ValueError, match="apply decisions to the corpus that was audited"):
        ColumnCorpus.read(path, "utf-8").corrected([one])


def test_documents_of_a_column_file_end_at_their_marks(tmp_path):
    path, _ = spoiled_file(tmp_path)
    corpus = ColumnCorpus.read(path, "utf-8")
    labelled = corpus.labelled(Settings(min_count=1), None)
    assert labelled.groups.tolist() == [1 + s // 3 for s in range(120)]
    assert corpus.place(0, 1) == Place(1, 0, f"{path}:4")
    assert len(corpus.words) == 120


def test_a_label_with_a_blank_is_written_only_where_tabs_separate_columns(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text("Rome B-LOC\n")
    one = correction(0, 0, 1, ["Rome"], ((0, 1, "LOC"),), ((0, 1, "A B"),))
    with pytest.raises(ValueError, match="line 1 suggests the label 'A B'"):
        ColumnCorpus.read(path, "utf-8").corrected([one])
    path.write_text("Rome\tB-LOC\n")
    assert ColumnCorpus.read(path, "utf-8").corrected([one]) == b"Rome\tB-A B\n"


def test_labels_of_document_marks_do_not_say_what_labels_are(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text("-DOCSTART- -X-\n\nAnn I-PER\n\nin O\nRome O\n")
    one = correction(2, 1, 2, ["Rome"], (), ((1, 2, "LOC"),))
    found = ColumnCorpus.read(path, "utf-8").corrected([one])
    assert found == path.read_bytes().replace(b"Rome O", b"Rome I-LOC")
    path.write_text("-DOCSTART- -X-\n\na B\nb I\n\na O\n")
    one = correction(2, 0, 1, ["a"], (), ((0, 1, "span"),))
    found = ColumnCorpus.read(path, "utf-8").corrected([one])
    assert found == path.read_bytes().replace(b"a O", b"a B")


def test_tokens_beside_document_marks_without_an_empty_line_are_judged(tmp_path):
    path = tmp_path / "data.conll"
    text = "-DOCSTART- O\nAnn B-PER\nslept O\n-DOCSTART- O\nBob O\n\n-DOCSTART- O\n\nEve O\n"
    path.write_text(text)
    corpus = ColumnCorpus.read(path, "utf-8")
    assert corpus.units == [1, 3, 5]
    assert corpus.words == [["Ann", "slept"], ["Bob"], ["Eve"]]
    assert [corpus.place(s, 0).name for s in range(3)] == [f"{path}:{n}" for n in (2, 5, 9)]
    assert corpus.labelled(Settings(min_count=1), None).groups.tolist() == [1, 2, 3]
    one = correction(3, 0, 1, ["Bob"], (), ((0, 1, "PER"),))
    assert corpus.corrected([one]).decode() == text.replace("Bob O", "Bob B-PER")


def test_equal_sequences_without_documents_stay_together(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text("a N\n\nb N\n\na N\n")
    groups = ColumnCorpus.read(path, "utf-8").labelled(Settings(min_count=1), None).groups
    assert groups.tolist() == [0, 1, 0]


def docs_file(folder: Path) -> Path:
    vocab = Vocab()
    doc = Doc(
        vocab,
        words=["Ann", "Lee", "saw", "Rome", "Bern"],
        tags=["N", "N", "V", "N", "N"],
        sent_starts=[True, False, False, True, False],
    )
    doc.set_ents([Span(doc, 0, 2, "PER"), Span(doc, 3, 4, "LOC", kb_id="Q1")], default="missing")
    doc.spans["sc"] = [Span(doc, 0, 2, "PER"), Span(doc, 4, 5, "LOC")]
    DocBin(docs=[Doc(vocab, words=["x"]), doc]).to_disk(folder / "data.spacy")
    return folder / "data.spacy"


def corrected_doc(path: Path, task: str, one: Correction) -> Doc:
    corpus = DocCorpus.read(path, task, None, None)
    target = path.with_name("new.spacy")
    target.write_bytes(corpus.corrected([one]))
    return list(read_spacy_docs(target))[1]


def test_corrected_entities_leave_the_rest_as_it_was(tmp_path):
    path = docs_file(tmp_path)
    one = correction(1, 0, 3, ["Ann", "Lee", "saw"], ((0, 2, "PER"),), ((0, 1, "PER"),))
    doc = corrected_doc(path, "ents", one)
    assert [(e.start, e.end, e.label_) for e in doc.ents] == [(0, 1, "PER"), (3, 4, "LOC")]
    assert doc.ents[1].kb_id_ == "Q1"
    assert [token.ent_iob_ for token in doc] == ["B", "O", "O", "B", ""]
    assert [token.tag_ for token in doc] == ["N", "N", "V", "N", "N"]
    dropped = correction(1, 3, 4, ["Rome"], ((3, 4, "LOC"),), ())
    assert [e.label_ for e in corrected_doc(path, "ents", dropped).ents] == ["PER"]
    wrong = correction(1, 3, 4, ["Rome"], (), ((3, 4, "PER"),))
    with pytest.raises(ValueError, match="another annotation"):
        corrected_doc(path, "ents", wrong)


def test_corrected_spans_and_tags(tmp_path):
    path = docs_file(tmp_path)
    one = correction(1, 4, 5, ["Bern"], ((4, 5, "LOC"),), ((4, 5, "ORG"),))
    doc = corrected_doc(path, "spans:sc", one)
    assert [(s.start, s.end, s.label_) for s in doc.spans["sc"]] == [(0, 2, "PER"), (4, 5, "ORG")]
    one = correction(1, 2, 3, ["saw"], ((2, 3, "V"),), ((2, 3, "N"),))
    doc = corrected_doc(path, "tag", one)
    assert [token.tag_ for token in doc] == ["N"] * 5
    assert len(doc.ents) == 2


def test_a_missing_span_is_not_added_twice(tmp_path):
    path = docs_file(tmp_path)
    missing = correction(1, 3, 4, ["Rome"], (), ((3, 4, "LOC"),))
    corpus = DocCorpus.read(path, "spans:sc", None, None)
    path.write_bytes(corpus.corrected([missing]))
    with pytest.raises(ValueError, match="the corpus has 'the suggested annotation' there"):
        corrected_doc(path, "spans:sc", missing)


def test_sentences_of_docs_are_sequences_and_docs_are_documents(tmp_path):
    corpus = DocCorpus.read(docs_file(tmp_path), "ents", None, None)
    labelled = corpus.labelled(Settings(min_count=1))
    assert labelled.groups.tolist() == [0, 1, 1]
    assert corpus.words == [["x"], ["Ann", "Lee", "saw"], ["Rome", "Bern"]]
    assert corpus.place(2, 1) == Place(1, 3, "doc 2, token 5")


def test_other_files_and_tasks_are_refused(tmp_path):
    path, _ = spoiled_docs(tmp_path)
    with pytest.raises(ValueError, match="name a config by --config"):
        DocCorpus.read(path, "ext:kind", None, None)
    (tmp_path / "no.cfg").write_text("nothing")
    with pytest.raises(ValueError, match="no config of spaCy"):
        DocCorpus.read(path, "ents", tmp_path / "no.cfg", None)
    (tmp_path / "no.spacy").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot read"):
        DocCorpus.read(tmp_path / "no.spacy", "ents", None, None)


def written(path: Path, *decisions: str | None, **changes) -> Path:
    finding = Finding(3, 1, 2, "type", ((1, 2, "X"),), ((1, 2, "Y"),), 0.1, 0.9, 2.0)
    lines = []
    for i, decision in enumerate(decisions):
        one = entry(1, finding, Place(7 + i, 4, "doc"), ["a", "b", "c"], Layer("ents"))
        lines.append(json.dumps({**one, "decision": decision, **changes}))
    path.write_text("\n".join(lines))
    return path


def test_accepted_decisions_are_read_with_their_place(tmp_path):
    path = written(tmp_path / "d.jsonl", "accept", "reject", None)
    accepted, others = read_decisions(path)
    assert others == 2
    [one] = accepted
    assert (one.unit, one.start, one.end, one.words) == (7, 5, 6, ("b",))
    assert one.annotated == ((5, 6, "X"),)
    assert one.suggested == ((5, 6, "Y"),)
    assert one.layer == Layer("ents")


@pytest.mark.parametrize(
    "layer",
    [
        Layer("spans:sc", config="chunk.cfg"),
        Layer("tag"),
        Layer(label_column=3),
        Layer(label_column=2, unlabelled="_"),
    ],
)
def test_a_layer_is_read_back_and_decisions_about_others_are_refused_by_both_names(tmp_path, layer):
    finding = Finding(0, 0, 1, "missing", (), ((0, 1, "Y"),), 0.1, 0.9, 2.0)
    one = entry(1, finding, Place(0, 0, "doc"), ["a"], layer)
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({**one, "decision": "accept"}))
    accepted, _ = read_decisions(path)
    assert accepted[0].layer == layer
    assert accepted[0].layer.config == layer.config
    refuse_other_layers(accepted, layer)
    for other in (Layer("ents"), Layer(label_column=2)):
        with pytest.raises(ValueError, match="is a decision about") as error:
            refuse_other_layers(accepted, other)
        assert f"line 1: is a decision about {layer}, " in str(error.value)
        assert f"would change {other};" in str(error.value)


def test_layers_are_what_is_written_to(tmp_path):
    path = docs_file(tmp_path)
    for task in ("ents", "spans:sc", "tag", "pos"):
        assert DocCorpus.read(path, task, None, None).layer == Layer(task)
    assert DocCorpus.read(path, "spans", None, None).layer == Layer("spans:sc")
    config = tmp_path / "tags.cfg"
    config.write_text(ready_config("tagger", None))
    layer = DocCorpus.read(path, "ents", config, None).layer
    assert (layer, layer.config) == (Layer("tag"), str(config))
    columns, _ = spoiled_file(tmp_path)
    assert ColumnCorpus.read(columns, "utf-8").layer == Layer(label_column=3)
    assert ColumnCorpus.read(columns, "utf-8", label_column=2).layer == Layer(label_column=2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decision": "maybe"}, "one of accept, reject"),
        ({"start": 99}, "lie within the words"),
        ({"unit": -1}, "lie within the words"),
        ({"words": [1]}, "a text"),
        ({"layer": {}}, "layer: found .* expected a task of docs or the label_column"),
        ({"layer": {"label_column": "2"}}, "layer label_column: found .* expected a whole number"),
        ({"suggested": [{"start": 0, "end": 1, "label": "X"}]}, "spans in their order"),
        ({"unit": 7}, "keep one of the two"),
        *(
            ({"suggested": [{"start": 5, "end": 6, "label": label}]}, f"line 1: .*label: {said}")
            for label, said in {
                "": "found .* expected the name of a label",
                " ": "found .* expected the name of a label",
                "X\tY": "found .* without tabs and line ends",
                "X\n": "found .* without tabs and line ends",
                "X\u2028Y": "found .* without tabs and line ends",
            }.items()
        ),
    ],
)
def test_damaged_decisions_are_refused_with_their_line(tmp_path, changes, said):
    path = written(tmp_path / "d.jsonl", "accept", "accept", **changes)
    with pytest.raises(ValueError, match=said):
        read_decisions(path)
