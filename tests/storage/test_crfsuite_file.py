"""Files of CRFsuite: read as they are, and refused if anything in them is wrong."""

from __future__ import annotations

import random
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pycrfsuite")

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.models.crfsuite import crf_of_crfsuite
from spacy_treecrf.storage.crfsuite_file import (
    MAX_WEIGHT,
    is_crfsuite_file,
    parse_crfsuite,
    read_crfsuite,
)
from tests.crfsuite_models import addresses, train_crfsuite
from tests.hardening.damage import damaged_bytes
from tests.refusals import assert_refused

EXTREME = [0, 1, 2, 3, 11, 2**16, 2**31 - 1, 2**31, 2**32 - 5, 2**32 - 1]


@cache
def model_bytes() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.crfsuite")
        train_crfsuite(path, *addresses(4, seed=0))
        return path.read_bytes()


def header() -> list[int]:
    return list(struct.unpack_from("<9I", model_bytes(), 12))


def changed(at: int, layout: str, value: object) -> bytes:
    data = bytearray(model_bytes())
    struct.pack_into(layout, data, at, value)
    return bytes(data)


def test_a_file_says_what_crfsuite_says_of_it(tmp_path: Path) -> None:
    path = tmp_path / "model.crfsuite"
    tagger = train_crfsuite(path, *addresses(20, seed=0))
    info = tagger.info()
    file = read_crfsuite(path)
    assert file.labels == tagger.labels()
    assert file.attributes == list(info.attributes)
    states, moves = file.states, file.transitions
    assert {
        (file.attributes[a], file.labels[b]): w
        for a, b, w in zip(states.source, states.target, states.weight, strict=True)
        if abs(w) >= 1e-6
    } == pytest.approx(info.state_features, abs=1e-6)
    assert {
        (file.labels[a], file.labels[b]): w
        for a, b, w in zip(moves.source, moves.target, moves.weight, strict=True)
    } == pytest.approx(info.transitions, abs=1e-6)
    assert is_crfsuite_file(path)
    assert not is_crfsuite_file(tmp_path)


def test_every_cut_of_a_file_is_refused() -> None:
    data = model_bytes()
    for n in [*range(60), *range(60, len(data), 97), len(data) - 1]:
        assert_refused(lambda n=n: parse_crfsuite(data[:n], "the file"), "the file")
        # also where the header agrees with the length
        if n >= 48:
            short = bytearray(data[:n])
            struct.pack_into("<I", short, 4, n)
            assert_refused(lambda short=short: parse_crfsuite(bytes(short)), "damaged")


@pytest.mark.parametrize(
    ("at", "layout", "value", "field"),
    [
        (4, "<I", 7, "size of the file"),
        (8, "<I", 7, "kind of model"),
        (12, "<I", 101, "version"),
        (20, "<I", 2**31, "labels, number"),
        (24, "<I", 2**31, "attributes, number"),
        (28, "<I", 2**32 - 1, "weights, place"),
        (32, "<I", 3, "labels, place"),
        (36, "<I", 2**31, "attributes, place"),
        (40, "<I", 2**31, "lists of transitions, place"),
        (44, "<I", 2**31, "lists of attributes, place"),
    ],
)
def test_a_wrong_field_of_the_header_is_named(at: int, layout: str, value: int, field: str) -> None:
    assert_refused(lambda: parse_crfsuite(changed(at, layout, value), "the file"), field)


@pytest.mark.parametrize(
    ("at", "layout", "value", "field"),
    [
        (8, "<I", 10**6, "weights, number"),
        (12, "<I", 2, "weights, kind"),
        (12, "<I", 1, "lists of"),
        (16, "<I", 2**31, "weights of attributes"),
        (20, "<I", 2**31, "weights, label"),
        (24, "<d", float("nan"), "a weight"),
        (24, "<d", float("inf"), "a weight"),
        (24, "<d", 2 * MAX_WEIGHT, "a weight"),
    ],
)
def test_a_wrong_weight_is_refused(at: int, layout: str, value: float, field: str) -> None:
    place = header()[4] + at
    number = value if layout == "<d" else int(value)
    assert_refused(lambda: parse_crfsuite(changed(place, layout, number)), field)


def test_a_text_that_is_no_utf8_is_no_attribute_and_cannot_be_a_label() -> None:
    data = model_bytes()
    file = parse_crfsuite(data.replace(b"\0\0\0word:york\0", b"\0\0\0word:\xff\xfe\xff\xfe\0"))
    assert file.attributes.count(None) == 1
    columns = crf_of_crfsuite(file, Settings()).columns
    before = crf_of_crfsuite(parse_crfsuite(data), Settings()).columns
    assert set(before.feature_names) - set(columns.feature_names) == {"word:york"}
    assert_refused(lambda: parse_crfsuite(data.replace(b"CITY\0", b"CIT\xff\0")), "labels", "UTF-8")
    assert_refused(lambda: parse_crfsuite(data.replace(b"CITY\0", b"CI\0Y\0")), "labels", "zero")


def test_few_bytes_do_not_become_a_large_table() -> None:
    """All texts of a table that lie within one another, or many labels of few weights."""
    n = 5000
    record = struct.Struct("<II")
    texts = bytearray()
    starts = []
    for i in range(n):
        starts.append(24 + len(texts))
        texts += record.pack(i, 8 * (n - i) + 1)
    texts += b"\0" * 64
    end = 24 + len(texts)
    table = struct.pack("<4s5I", b"CQDB", end + 4 * n, 0, 0x62445371, n, end)
    table += bytes(texts) + struct.pack(f"<{n}I", *starts)
    size = 48 + len(table)
    head = struct.pack("<4sI4s9I", b"lCRF", size, b"FOMC", 100, 0, n, 0, 48, 48, 48, 48, 48)
    assert_refused(lambda: parse_crfsuite(head + table), "labels, length of a text")


@settings(max_examples=400)
@given(st.integers(0, 2**32), st.data())
def test_a_damaged_file_is_refused_or_gives_a_whole_model(seed: int, data: st.DataObject) -> None:
    whole = model_bytes()
    how = data.draw(st.sampled_from(["bytes", "number", "weights"]))
    if how == "bytes":
        damaged = damaged_bytes(whole, random.Random(seed))[0]
    else:
        weights_at, labels_at, attributes_at, *lists_at = header()[4:]
        starts = [0, weights_at, labels_at, attributes_at, *lists_at]
        first = data.draw(st.sampled_from(starts))
        near = st.integers(first, min(first + 60, len(whole) - 4))
        anywhere = st.integers(0, len(whole) - 4)
        at = data.draw(near if how == "number" else anywhere)
        damaged = changed(at, "<I", data.draw(st.sampled_from(EXTREME)))
    try:
        file = parse_crfsuite(damaged, "the file")
        crf = crf_of_crfsuite(file, Settings())
    except ValueError as error:
        if not str(error).startswith("treecrf: "):
            raise
        return
    assert crf.potentials.linear.categorical.shape == (
        len(crf.columns.feature_names),
        len(file.labels),
    )
