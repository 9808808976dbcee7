"""Files as the tools write them, made by hand, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf.formats.annotated_text import (
    DISCONTINUOUS,
    MORE_ANNOTATIONS,
    NOT_ACCEPTED,
    NOT_ANNOTATED,
    OTHER_RESULTS,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.formats.converting import FORMATS, convert, guess_format, read_texts
from tests.refusals import assert_refused

TEXT = "😀 Ann Lee in New York"
SPANS = (LabelledSpan(2, 9, "PER"), LabelledSpan(13, 21, "LOC"))


def region(start: int, end: int, text: str, label: str, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": [label]}
    return {"from_name": "ner", "to_name": "text", "type": "labels", "value": value, **more}


UNITS = [region(3, 10, "Ann Lee", "PER"), region(14, 22, "New York", "LOC")]
POINTS = [region(2, 9, "Ann Lee", "PER"), region(13, 21, "New York", "LOC")]


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf8")
    return path


def test_prodigy_keeps_what_was_accepted(tmp_path: Path) -> None:
    task = {
        "text": "Ann Lee",
        "_input_hash": -1,
        "_task_hash": 5,
        "tokens": [
            {"text": "Ann", "start": 0, "end": 3, "id": 0, "ws": True},
            {"text": "Lee", "start": 4, "end": 7, "id": 1, "ws": False},
        ],
        "spans": [{"start": 0, "end": 7, "token_start": 0, "token_end": 1, "label": "PER"}],
        "_view_id": "ner_manual",
        "answer": "accept",
    }
    no, skipped = {**task, "answer": "reject"}, {**task, "answer": "ignore"}
    path = write(tmp_path / "a.jsonl", task, no, skipped)
    tally = Tally()
    (found,) = FORMATS["prodigy"].read(path, tally)  # type: ignore[call-arg]
    expected = AnnotatedText("Ann Lee", (LabelledSpan(0, 7, "PER"),), ((0, 3), (4, 7)))
    assert found == expected
    assert tally.left_out == {NOT_ACCEPTED: 2}


@pytest.mark.parametrize("results", [UNITS, POINTS])
def test_label_studio_counts_as_the_texts_of_its_regions_say(
    tmp_path: Path, results: list[Any]
) -> None:
    choice = {"type": "choices", "value": {"choices": ["x"]}}
    task = {
        "id": 7,
        "data": {"text": TEXT},
        "annotations": [
            {"was_cancelled": True, "result": []},
            {"result": [*results, choice]},
            {"result": []},
        ],
        "predictions": [{"score": 0.5, "result": []}],
    }
    path = write(tmp_path / "a.json", [task])
    tally = Tally()
    (found,) = FORMATS["label-studio"].read(path, tally)  # type: ignore[call-arg]
    assert found == AnnotatedText(TEXT, SPANS, name="7")
    assert tally.left_out == {OTHER_RESULTS: 1, MORE_ANNOTATIONS: 1}


def test_label_studio_without_annotations_gives_the_best_prediction(tmp_path: Path) -> None:
    task = {
        "data": {"other": TEXT},
        "annotations": [],
        "predictions": [
            {"score": 0.2, "result": []},
            {"score": 0.9, "model_version": "m", "result": [{**UNITS[0], "score": 0.8}]},
        ],
    }
    found = read_texts(write(tmp_path / "a.json", [task]), "label-studio")
    assert found == [AnnotatedText(TEXT, (LabelledSpan(2, 9, "PER", 0.8),), predicted=True)]
    small = {"id": 1, "text": TEXT, "label": [each["value"] for each in UNITS]}
    found = read_texts(write(tmp_path / "min.json", [small]), "label-studio")
    assert found == [AnnotatedText(TEXT, SPANS, name="1")]


DONE = {"result": []}
CANCELLED = {"was_cancelled": True, "result": [region(0, 1, "a", "X")]}
GUESSED = {"score": 1.0, "result": [region(0, 1, "a", "X")]}


@pytest.mark.parametrize(
    ("format", "annotated", "others"),
    [
        (
            "prodigy",
            {"text": "a", "spans": [], "answer": "accept"},
            [{"text": "a"}, {"text": "a", "spans": [{"start": 0, "end": 1, "label": "X"}]}],
        ),
        (
            "label-studio",
            {"data": {"text": "a"}, "annotations": [DONE], "predictions": [GUESSED]},
            [
                {"data": {"text": "a"}},
                {"data": {"text": "a"}, "annotations": [CANCELLED]},
                {"data": {"text": "a"}, "annotations": [CANCELLED], "predictions": [GUESSED]},
            ],
        ),
        ("label-studio", {"text": "a", "annotation_id": 3}, [{"text": "a"}]),
        ("doccano", {"text": "a", "label": []}, [{"text": "a"}, {"text": "a", "label": None}]),
    ],
)
@pytest.mark.parametrize("target", ["b.spacy", "b.conll", "b.conllu", "b.iob"])
def test_texts_that_nobody_annotated_are_no_gold(
    tmp_path: Path, format: str, annotated: Any, others: list[Any], target: str
) -> None:
    lines = [annotated, *others]
    path = write(tmp_path / "a", *([lines] if format == "label-studio" else lines))
    tally = convert(path, tmp_path / target, format)
    assert tally.summary() == {"texts": 1, "spans": 0, "left_out": {NOT_ANNOTATED: len(others)}}
    assert f"left out: {len(others)} texts that are not annotated" in tally.lines()
    (found,) = read_texts(tmp_path / target)
    assert (found.text.strip(), found.spans) == ("a", ())


def test_a_text_without_suggestions_stays_one_that_is_not_annotated(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"text": "a"}, {"text": "b", "answer": "accept"})
    for before, after in (("prodigy", "doccano"), ("doccano", "label-studio")):
        convert(path, tmp_path / after, before, after)
        path = tmp_path / after
        assert [each.predicted for each in read_texts(path, after)] == [True, False]


@pytest.mark.parametrize(
    "line",
    [
        {"text": TEXT, "label": [[3, 10, "PER"], [14, 22, "LOC"]]},
        {"text": TEXT, "labels": [[3, 10, "PER"], [14, 22, "LOC"]]},
        {
            "text": TEXT,
            "entities": [
                {"id": 1, "label": "PER", "start_offset": 3, "end_offset": 10},
                {"id": 2, "label": "LOC", "start_offset": 14, "end_offset": 22},
            ],
            "relations": [],
        },
    ],
)
def test_doccano_is_read_in_all_its_forms(tmp_path: Path, line: dict[str, Any]) -> None:
    assert read_texts(write(tmp_path / "a.jsonl", line), "doccano") == [AnnotatedText(TEXT, SPANS)]


def test_brat_leaves_out_discontinuous_spans_and_what_is_no_span(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("😀 Ann\r\nLee in New York".encode())
    lines = [
        "T1\tPER 2 10\tAnn  Lee",
        "T2\tLOC 14 17;18 22\tNew York",
        "T3\tLOC 14 22\tNew York",
        "R1\tIn Arg1:T1 Arg2:T3",
        "#1\tAnnotatorNotes T1\tsure?",
        "*\tAlias T1 T3",
    ]
    (tmp_path / "a.ann").write_text("\n".join(lines) + "\n")
    tally = Tally()
    (found,) = FORMATS["brat"].read(tmp_path, tally)  # type: ignore[call-arg]
    assert found.spans == (LabelledSpan(2, 10, "PER"), LabelledSpan(14, 22, "LOC"))
    assert tally.left_out == {DISCONTINUOUS: 1, OTHER_RESULTS: 3}
    assert [each.name for each in read_texts(tmp_path / "a.ann")] == ["a"]


@pytest.mark.parametrize(
    ("format", "line", "parts"),
    [
        ("prodigy", {"spans": []}, ["line 2", "text", "nothing"]),
        ("prodigy", {"text": 3}, ["line 2", "text"]),
        ("prodigy", {"text": "a", "answer": "yes"}, ["line 2", "answer", "accept"]),
        ("prodigy", {"text": "a", "spans": [{"start": 0, "end": 2, "label": "X"}]}, ["spans[0]"]),
        ("prodigy", {"text": "a", "spans": [{"start": 0, "end": 1}]}, ["spans[0] label"]),
        ("prodigy", {"text": "a", "spans": {}}, ["spans", "list"]),
        ("prodigy", {"text": "a", "tokens": [{"start": 0, "end": 1, "text": "b"}]}, ["tokens[0]"]),
        ("prodigy", {"text": "\ud800"}, ["surrogate"]),
        ("prodigy", [], ["line 2", "object"]),
        ("doccano", {"text": "😀", "label": [[0, 1, "X"]]}, ["line 2", "label[0]", "0 and 1"]),
        ("doccano", {"text": "a", "label": [[0, True, "X"]]}, ["whole number"]),
        ("doccano", {"text": "a", "label": [[0, 1]]}, ["[start, end, label]"]),
        ("doccano", {"text": "a", "label": [[0, 1, " "]]}, ["name of a label"]),
    ],
)
def test_wrong_lines_are_refused_with_their_number(
    tmp_path: Path, format: str, line: Any, parts: list[str]
) -> None:
    path = write(tmp_path / "a.jsonl", {"text": "good"}, line)
    assert_refused(lambda: read_texts(path, format), str(path), *parts)


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": ', ["line 2", "JSON"]),
        ("a.jsonl", "[" * 100_000, ["nested too deep"]),
        ("a.conll", "a\tNN\nb\tVB\n", ["'NN'", "spans"]),
        ("a.conll", "a\n", ["one column"]),
        ("a.conll", "a\tO\nb\n", ["a.conll:2"]),
        ("a.conllu", "1\ta\n", ["line 1", "10 columns"]),
        ("a.conllu", "2" + "\t_" * 9 + "\n", ["line 1", "word 1"]),
        ("a.conllu", "1" + "\t_" * 5 + "\tx" + "\t_" * 3 + "\n", ["line 1", "head"]),
        ("a.conllu", "1" + "\t_" * 5 + "\t9" + "\t_" * 3 + "\n", ["a.conllu"]),
        ("a.iob", "a|O b\n", ["line 1", "word|label"]),
        ("a.iob", "a|O\nb|NN\n", ["line 2", "B-X"]),
        ("a.spacy", "no", [".spacy"]),
    ],
)
def test_wrong_files_are_refused_with_the_place(
    tmp_path: Path, name: str, content: str, parts: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(content)
    format = "prodigy" if name.endswith("jsonl") else None
    assert_refused(lambda: read_texts(path, format), name, *parts)


@pytest.mark.parametrize(
    "task",
    [
        {"data": {"text": "abc"}, "annotations": [{"result": [region(0, 2, "xx", "X")]}]},
        {"data": {"text": "abc"}, "annotations": [{"result": [region(2, 9, "c", "X")]}]},
        {"data": {"a": "abc", "b": "d"}},
        {"annotations": []},
    ],
)
def test_wrong_tasks_of_label_studio_are_refused(tmp_path: Path, task: Any) -> None:
    path = write(tmp_path / "a.json", [{"data": {"text": "x"}}, task])
    assert_refused(lambda: read_texts(path, "label-studio"), "a.json", "[1]")


@pytest.mark.parametrize(
    ("line", "part"),
    [("T1\tX 0 1\tb", "'a'"), ("T1\tX 0 9\ta", "up to 1"), ("T1 X", "LABEL START END")],
)
def test_wrong_lines_of_brat_are_refused(tmp_path: Path, line: str, part: str) -> None:
    (tmp_path / "a.txt").write_text("a")
    assert_refused(lambda: read_texts(tmp_path), "no a.ann")
    (tmp_path / "a.ann").write_text(line + "\n")
    assert_refused(lambda: read_texts(tmp_path), "a.ann, line 1", part)


def test_formats_are_told_by_suffixes_and_others_must_be_named(tmp_path: Path) -> None:
    assert guess_format(tmp_path) == "brat"
    assert guess_format(Path("x.conllu")) == "conllu"
    assert_refused(lambda: guess_format(Path("x.jsonl")), "--from", "prodigy")
    path = write(tmp_path / "a.jsonl", {"text": "a"})
    assert_refused(lambda: read_texts(path, "word"), "'word'", "doccano")
    assert_refused(lambda: convert(path, tmp_path / "b.json", "prodigy", "json"), "only read")


def test_the_json_of_spacy_2_is_read(tmp_path: Path) -> None:
    tokens = [{"id": 0, "orth": "Ann", "ner": "U-PER"}, {"id": 1, "orth": "left", "ner": "O"}]
    paragraph = {"raw": "Ann left", "sentences": [{"tokens": tokens}]}
    path = write(tmp_path / "a.json", [{"id": 0, "paragraphs": [paragraph]}])
    (found,) = read_texts(path, "json")
    assert (found.text, found.spans) == ("Ann left", (LabelledSpan(0, 3, "PER"),))
    path = write(tmp_path / "b.json", [{"id": 0, "paragraphs": [{"sentences": 3}]}])
    assert_refused(lambda: read_texts(path, "json"), "b.json")
