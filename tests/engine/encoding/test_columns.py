import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding import columns as columns_module
from spacy_treecrf.engine.encoding import tallying
from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS, Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import ABSENT, MISSING
from tests.engine.feature_items import (
    INF,
    ITEMS,
    NAN,
    assert_same_columns,
    fit,
    naive_names,
    names_of,
    training,
)


@given(training(ITEMS), st.integers(1, 3), st.sampled_from([2, 3, 255]))
def test_encoding_the_training_data_gives_the_arrays_of_fit(X, min_count, max_bins):
    columns, offsets, feature_ids, numeric = fit_columns(X, min_count=min_count, max_bins=max_bins)
    for same in (columns, Columns.from_state(columns.to_state())):
        again = same.encode(X)
        for array, expected in zip(again, (offsets, feature_ids, numeric), strict=True):
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


@given(training(ITEMS))
def test_features_stay_in_their_slots_and_shared_slots_are_sorted(X):
    columns, _, feature_ids, _ = fit_columns(X)
    n_keys = len(columns.slot_keys)
    assert feature_ids.shape[1] == n_keys + columns.n_shared_slots
    for row in feature_ids.tolist():
        for slot, feature in enumerate(row):
            if feature >= 0:
                first, past = columns.slot_range[feature]
                assert first <= slot < past
        shared = [feature for feature in row[n_keys:] if feature != ABSENT]
        assert shared == sorted(set(shared))
        assert row[n_keys : n_keys + len(shared)] == shared
    if columns.n_shared_slots:
        assert (feature_ids[:, -1] != ABSENT).any()


@given(training(ITEMS))
def test_counts_fall_and_ties_keep_the_order_of_appearance(X):
    columns, *_ = fit_columns(X)
    assert (np.diff(columns.counts) <= 0).all()
    first_row = {}
    for row, item in enumerate(item for items in X for item in items):
        for name in naive_names(item, columns.numeric_names):
            first_row.setdefault(name, row)
    rows = np.array([first_row[name] for name in columns.feature_names])
    tied = columns.counts[1:] == columns.counts[:-1]
    assert (np.diff(rows)[tied] >= 0).all() if len(rows) else True


@given(training(ITEMS), training(ITEMS))
def test_encoding_other_data_gives_only_what_was_learned(X, others):
    columns, *_ = fit_columns(X)
    offsets, feature_ids, numeric = columns.encode(others)
    items = [item for items in others for item in items]
    assert offsets[-1] == len(feature_ids) == len(numeric) == len(items)
    known = set(columns.feature_names)
    for item, row, names in zip(items, feature_ids, names_of(columns, feature_ids), strict=True):
        assert len(set(names)) == len(names)
        # a number other than 1 makes an indicator active too
        assert set(names) <= known & (naive_names(item) | _numbered(item))
        for name in naive_names(item, columns.numeric_names) & known - set(names):
            slot = columns.slot_range[columns.feature_names.index(name), 0]
            assert slot < len(columns.slot_keys)
            assert row[slot] >= 0  # another one took it


def _numbered(item, prefix=""):
    if not isinstance(item, dict):
        return set()
    names = set()
    for key, value in item.items():
        names |= _numbered(value, f"{prefix}{key}:") if isinstance(value, dict) else {prefix + key}
    return names


def test_each_string_key_has_a_slot():
    columns, feature_ids, numeric = fit(
        {"w": "the", "p": "DT"}, {"w": "dog", "p": "NN"}, {"w": "the"}
    )
    assert columns.slot_keys == columns.column_names == ["w", "p"]
    assert columns.feature_names == ["w=the", "p=DT", "w=dog", "p=NN"]
    assert columns.counts.tolist() == [2, 1, 1, 1]
    assert columns.column_of.tolist() == [0, 1, 0, 1]
    assert columns.slot_range.tolist() == [[0, 1], [1, 2], [0, 1], [1, 2]]
    assert feature_ids.tolist() == [[0, 1], [2, 3], [0, ABSENT]]
    assert feature_ids.dtype == np.int32
    assert numeric.shape == (3, 0)
    assert numeric.dtype == np.uint8


def test_none_is_missing_for_a_string_key_only():
    columns, feature_ids, _ = fit(
        {"w": None}, {"w": "a", "s": ["b"]}, {"w": None, "s": None, "up": None}, {"up": True}
    )
    assert feature_ids[:, 0].tolist() == [
        MISSING,
        columns.feature_names.index("w=a"),
        MISSING,
        ABSENT,
    ]
    assert feature_ids[2, 1:].tolist() == [ABSENT]
    encoded = columns.encode([[{"w": None}, {"new": None}, {"a": {"w": None}}]])[1]
    assert encoded.tolist() == [[MISSING, ABSENT], [ABSENT, ABSENT], [ABSENT, ABSENT]]


def test_none_beside_a_value_of_the_same_key_yields_to_it():
    rows = [{"a:b": None, "a": {"b": "c"}}, {"a": {"b": "c"}, "a:b": None}]
    _, feature_ids, _ = fit(*rows)
    assert feature_ids.tolist() == [[0], [0]]


def test_names_with_several_spellings_in_training_are_one_shared_feature():
    items = [{"a": "b=c"}, {"a=b": "c"}, {"a=b=c": True}, ["a=b=c"], {"a": "x", "a=b=c": 1}]
    columns, _, _ = fit(*items, {"a": "b=c", "a=b": "c"})
    assert columns.feature_names == ["a=b=c", "a=x"]
    assert columns.counts.tolist() == [6, 1]
    assert columns.slot_range.tolist() == [[1, PAST_ALL_SLOTS], [0, 1]]
    assert columns.slot_keys == ["a"]
    assert columns.column_names[columns.column_of[0]] == "a"


def test_two_values_of_one_key_in_a_row_are_both_kept():
    columns, feature_ids, _ = fit({"a:b": "x", "a": {"b": "y"}}, {"a": {"b": "x"}}, {"a:b": "y"})
    assert columns.counts.tolist() == [2, 2]
    assert names_of(columns, feature_ids) == [["a:b=x", "a:b=y"], ["a:b=x"], ["a:b=y"]]


def test_a_value_given_twice_in_a_row_counts_once():
    columns, feature_ids, _ = fit({"a:b": "x", "a": {"b": "x"}})
    assert columns.counts.tolist() == [1]
    assert feature_ids.tolist() == [[0]]


def test_rare_features_are_dropped_with_their_slots_and_columns():
    items = [{"w": "a", "id": "1", "s": ["x", "y"]}, {"w": "a", "id": "2", "s": ["x", "z"]}]
    columns, feature_ids, _ = fit(*items, {"id": None, "w": "b"}, min_count=2)
    assert columns.feature_names == ["w=a", "s:x"]
    assert columns.slot_keys == ["w"]
    assert columns.column_names == ["w", "s"]
    assert columns.n_shared_slots == 1
    assert feature_ids.tolist() == [[0, 1], [0, 1], [ABSENT, ABSENT]]


def test_what_training_did_not_see_is_absent():
    columns, _, _ = fit({"w": "a", "h": 2.5, "up": True, "s": ["x"]})
    unseen = [
        {"w": "b", "new": "a", "s": ["y"], "down": True, "k": 3.5, "n": {"w": "a"}},
        {"h": "tall", "up": "a", "w": ["a"]},
        ["z"],
    ]
    _, feature_ids, numeric = columns.encode([unseen])
    assert (feature_ids == ABSENT).all()
    assert not numeric.any()


def test_more_shared_features_than_in_training_widen_the_codes():
    columns, feature_ids, _ = fit({"w": "a"}, ["x"], ["y"], ["z"])
    assert feature_ids.shape == (4, 2)
    wide = columns.encode([[["x", "y", "z", "y"], {"w": "a"}]])[1]
    assert wide.shape == (2, 4)
    assert names_of(columns, wide) == [["x", "y", "z"], ["w=a"]]
    assert columns.encode([[{"w": "a"}]])[1].shape == (1, 2)


def test_fewer_rows_keep_the_slots_of_training():
    columns, _, _ = fit(["x", "y"], ["x"])
    assert columns.encode([[["x"]]])[1].tolist() == [[0, ABSENT]]


def test_items_without_features_are_fine():
    columns, feature_ids, numeric = fit({}, [], {"up": False, "w": None, "s": []})
    assert feature_ids.shape == (3, 0)
    assert numeric.shape == (3, 0)
    assert columns.slot_range.shape == (0, 2)
    assert_same_columns(columns, Columns.from_state(columns.to_state()))
    assert columns.encode([[{"w": "a"}]])[1].shape == (1, 0)


def test_encoding_nothing_gives_empty_arrays():
    columns, _, _ = fit({"w": "a", "h": 2.5})
    offsets, feature_ids, numeric = columns.encode([])
    assert offsets.tolist() == [0]
    assert feature_ids.shape == (0, 1)
    assert numeric.shape == (0, 1)
    offsets, feature_ids, _ = columns.encode([[], [{"w": "a"}], []])
    assert offsets.tolist() == [0, 0, 1, 1]
    assert feature_ids.tolist() == [[0]]


def test_training_refuses_no_sequences_and_empty_ones():
    with pytest.raises(ValueError, match="treecrf: X holds no sequences; "):
        fit_columns([])
    with pytest.raises(ValueError, match=r"treecrf: X\[1\] is an empty sequence; "):
        fit_columns([[{}], [], []])


@pytest.mark.parametrize("settings", [{"min_count": 0}, {"max_bins": 1}, {"max_bins": 256}])
def test_settings_out_of_range_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"treecrf: {name} is "):
        fit({"w": "a"}, **settings)


def learned():
    columns, _, _ = fit(
        {"w": "a", "p": "x", "h": 2.5, "k": 0, "s": ["u", "v"]},
        {"w": "a", "p": "y", "h": 3.5, "k": 4, "s": ["u"]},
        {"w": "b", "p": "y", "h": 4.5, "k": 4},
    )
    return columns


@given(training(ITEMS))
def test_state_round_trip(X):
    columns, *_ = fit_columns(X)
    state = columns.to_state()
    assert all(type(value) in (int, str, list, np.ndarray) for value in state.values())
    assert_same_columns(columns, Columns.from_state(state))


def test_columns_pickle_and_copy_after_use():
    columns = learned()
    X = [[{"w": "a", "h": 3, "s": ["v"]}]]
    expected = columns.encode(X)
    for same in (pickle.loads(pickle.dumps(columns)), copy.deepcopy(columns)):
        assert_same_columns(columns, same)
        for array, other in zip(same.encode(X), expected, strict=True):
            np.testing.assert_array_equal(array, other)


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("field", "corrupt"),
    [
        ("feature_names", lambda v: v[:-1]),
        ("feature_names", lambda v: [v[1], *v[1:]]),
        ("feature_names", lambda v: [3, *v[1:]]),
        ("feature_names", lambda v: tuple(v)),
        ("counts", lambda v: v[:-1]),
        ("counts", lambda v: v[::-1]),
        ("counts", lambda v: changed(v, -1, 0)),
        ("counts", lambda v: v.astype(np.int32)),
        ("counts", lambda v: v.tolist()),
        ("column_of", lambda v: changed(v, 0, -1)),
        ("column_of", lambda v: changed(v, 0, 3)),
        ("column_of", lambda v: v[:, None]),
        ("slot_range", lambda v: changed(v, 0, [5, 6])),
        ("slot_range", lambda v: changed(v, 0, [-1, 0])),
        ("slot_range", lambda v: changed(v, 0, [0, 2])),
        ("slot_range", lambda v: changed(v, 0, [1, 2])),
        ("slot_range", lambda v: changed(v, 0, [0, PAST_ALL_SLOTS])),
        ("slot_range", lambda v: v[:, :1]),
        ("slot_keys", lambda v: [v[0], v[0]]),
        ("slot_keys", lambda v: None),
        ("n_shared_slots", lambda v: 0),
        ("n_shared_slots", lambda v: 3),
        ("n_shared_slots", lambda v: 2.0),
        ("n_shared_slots", lambda v: True),
        ("column_names", lambda v: v[:1] * 3),
        ("numeric_names", lambda v: ["h", "h"]),
        ("bin_edges", lambda v: changed(v, 0, NAN)),
        ("bin_edges", lambda v: changed(v, 0, INF)),
        ("bin_edges", lambda v: changed(v, 1, v[0])),
        ("bin_edges", lambda v: v.astype(np.float32)),
        ("bin_edge_offsets", lambda v: changed(v, 0, 1)),
        ("bin_edge_offsets", lambda v: changed(v, -1, 2)),
        ("bin_edge_offsets", lambda v: changed(v, 1, -1)),
        ("bin_edge_offsets", lambda v: changed(v, 1, 99)),
        ("bin_edge_offsets", lambda v: v[:-1]),
        ("bin_values", lambda v: changed(v, (0, 3), NAN)),
        ("bin_values", lambda v: changed(v, (0, 3), 1.1e6)),
        ("bin_values", lambda v: changed(v, (0, 3), -1e300)),
        ("bin_values", lambda v: changed(v, (1, 0), 0.5)),
        ("bin_values", lambda v: v[:, :255]),
    ],
)
def test_a_corrupted_state_is_refused(field, corrupt):
    state = learned().to_state()
    state[field] = corrupt(state[field])
    with pytest.raises(ValueError, match=r"^treecrf: model field 'columns\."):
        Columns.from_state(state)


def test_too_many_edges_are_refused():
    state = learned().to_state()
    state["bin_edges"] = np.arange(256.0)
    state["bin_edge_offsets"] = np.array([0, 255, 256])
    with pytest.raises(ValueError, match=r"columns\.bin_edge_offsets"):
        Columns.from_state(state)


@pytest.mark.parametrize("field", learned().to_state())
def test_a_state_without_a_field_is_refused(field):
    state = learned().to_state()
    del state[field]
    with pytest.raises(ValueError, match=f"treecrf: model field 'columns.{field}': "):
        Columns.from_state(state)


@pytest.mark.parametrize("state", [None, [], {"strange": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"^treecrf: model"):
        Columns.from_state(state)


def test_a_state_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match=r"columns\.strange"):
        Columns.from_state(learned().to_state() | {"strange": 1})


def test_blocks_hold_what_encoding_at_once_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = [
        [
            {"w": f"w{rng.integers(5)}", "n": float(rng.integers(9)), "m": None}
            | {f"f{i}": True for i in rng.integers(20, size=rng.integers(12)).tolist()}
            for _ in range(rng.integers(1, 5))
        ]
        for _ in range(30)
    ]
    learned, *_ = fit_columns(X)
    offsets, feature_ids, numeric = learned.encode(X)
    monkeypatch.setattr(columns_module, "BLOCK_BYTES", 200)
    blocks = list(learned.encode_blocks(X))
    assert len(blocks) > 5
    assert np.array_equal(np.diff(offsets), np.concatenate([np.diff(o) for o, *_ in blocks]))
    assert np.array_equal(numeric, np.concatenate([n for *_, n in blocks]))
    rows = [row[row >= 0].tolist() for _, ids, _ in blocks for row in ids]
    assert rows == [row[row >= 0].tolist() for row in feature_ids]
    assert [len(o) for o, *_ in learned.encode_blocks([])] == [1]


def test_hollow_tables_are_refused_with_the_widest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    X: list[list[dict[str, bool]]] = [[{"a": True}] * 2 for _ in range(500)]
    X[7] = [{"a": True}, {f"f{i}": True for i in range(900)}]
    learned, *_ = fit_columns(X)  # as long as it is small
    monkeypatch.setattr(columns_module, "MAX_TABLE_BYTES", 2**20)
    with pytest.raises(ValueError, match=r"^treecrf: X would .*X\[7\]\[1\] .*features, 900: give"):
        fit_columns(X)
    fit_columns(X, min_count=2)
    with pytest.raises(ValueError, match=r"^treecrf: X_dev would .*X_dev\[7\]\[1\] "):
        learned.encode(X, name="X_dev")
    monkeypatch.setattr(columns_module, "BLOCK_BYTES", 2**19)
    assert sum(len(o) - 1 for o, *_ in learned.encode_blocks(X)) == 500


def test_more_keys_than_rows_can_hold_at_once_are_counted_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = [[{f"k{i}": str(j), "k:x": "1", "k": {"x": "2"}} for i in range(j)] for j in range(1, 30)]
    at_once, *_ = fit_columns(X)
    monkeypatch.setattr(tallying, "MAX_EMPTY_CELLS", 0)
    sparsely, *_ = fit_columns(X)
    assert at_once.feature_names == sparsely.feature_names
    assert np.array_equal(at_once.counts, sparsely.counts)
