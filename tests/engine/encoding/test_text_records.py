"""Many texts that are found at once get the ids that dicts give them one by one."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding import entry_tables
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.encoding.text_records import joined
from tests.engine.encoding.naive_encoding import naive_encode

LETTERS = st.sampled_from(["a", "b", "\x01", "\x7f", "\x80", "é", "ж", "😀", "\ud800", "=", " "])
# Around the lengths of one and two words of eight bytes, and beyond
TEXT = st.text(LETTERS, max_size=9) | st.sampled_from([n * "a" for n in range(26)])
ITEM = st.fixed_dictionaries({"u": TEXT, "v": TEXT}) | st.dictionaries(
    st.sampled_from(["u", "v", "w", "unseen", "u=a"]), TEXT, min_size=1
)
SEQUENCES = st.lists(st.lists(ITEM, min_size=1, max_size=6), min_size=1, max_size=4)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(entry_tables, "MANY_TEXTS", 1)


def assert_as_naive(columns, X):
    for found, expected in zip(columns.encode(X), naive_encode(columns, X), strict=True):
        np.testing.assert_array_equal(found, expected)


def finds_texts_at_once(columns, items):
    coded, _ = columns.item_ids.coded(items)
    return len(coded.codes) == 0


@settings(max_examples=200, deadline=None)
@given(SEQUENCES, SEQUENCES)
@example([[{"u": "aaaaaaaa", "v": ""}]], [[{"u": "aaaaaaaab", "v": "a"}, {"u": "", "v": ""}]])
def test_texts_get_the_ids_that_entry_by_entry_gives(X, unseen):
    columns = fit_columns(X)[0]
    assert_as_naive(columns, X + unseen)
    assert finds_texts_at_once(columns, X[0])


def test_a_text_that_holds_a_0_is_found_as_others_are():
    X = [[{"u": "a\0b", "v": "c"}, {"u": "a", "v": "b\0"}]]
    plain = [[{"u": "a", "v": "b"}, {"u": "b", "v": "c"}]]
    for seen in (X, plain):
        columns = fit_columns(seen)[0]
        assert_as_naive(columns, [*X, *plain, [{"u": "a\0b", "v": "\0"}], [{"u": "\0"}]])
        assert not finds_texts_at_once(columns, X[0])
    assert finds_texts_at_once(fit_columns(plain)[0], plain[0])


def test_other_values_than_texts_are_found_as_before():
    X = [[{"u": "a", "v": "b"}, {"u": "b", "v": "c"}, {"u": True, "v": 2.5}, {"v": None}]]
    columns = fit_columns(X)[0]
    for value in (True, False, None, 1, 2.5, ["b"], {"b": "c"}, np.float32(1.0), np.str_("b")):
        assert_as_naive(columns, [[{"u": "a", "v": "b"}, {"u": "a", "v": value}], X[0]])


def test_many_texts_share_places():
    texts = [f"{i:x}" * (1 + i % 5) for i in range(3000)]
    X = [[{"u": text, "v": text[:3]} for text in texts]]
    columns = fit_columns(X)[0]
    unseen = [[{"u": text + "!", "v": text} for text in texts]]
    assert_as_naive(columns, X + unseen)
    assert finds_texts_at_once(columns, X[0])


def test_joined_texts_end_with_room_for_a_word():
    assert joined(["ab", "", "é"]).tobytes() == b"ab\0\0\xc3\xa9" + 9 * b"\0"
    with pytest.raises(TypeError):
        joined(["a", 1])
