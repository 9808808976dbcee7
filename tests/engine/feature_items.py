"""Random items of all kinds, and their features as a naive reading gives them."""

import math

import numpy as np
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding.learned_columns import fit_columns

NAN, INF = math.nan, math.inf


def fit(*items, **settings):
    """Columns of one sequence with these items, its feature_ids and its numeric bins."""
    columns, _, feature_ids, numeric = fit_columns([list(items)], **settings)
    return columns, feature_ids, numeric


def names_of(columns, feature_ids):
    """The names of the features of each row, sorted; a feature twice in a row shows."""
    return [sorted(columns.feature_names[c] for c in row if c >= 0) for row in feature_ids.tolist()]


def encoded_names(columns, *items):
    return names_of(columns, columns.encode([list(items)])[1])


def naive_names(item, numeric_names=(), prefix=""):
    """The names of the indicators of an item, as python-crfsuite spells them."""
    if not isinstance(item, dict):
        return {prefix + name for name in item}
    names = set()
    for key, value in item.items():
        path = prefix + key
        if isinstance(value, str):
            names.add(f"{path}={value}")
        elif isinstance(value, (dict, list, set)):
            names |= naive_names(value, numeric_names, f"{path}:")
        elif value is True or (value == 1 and value is not False and path not in numeric_names):
            names.add(path)
    return names


def assert_same_columns(first, second):
    for name, value in first.to_state().items():
        np.testing.assert_array_equal(value, second.to_state()[name])


# few letters, so that "a" with value "b", flag "a=b" and nested "a:b" meet
KEYS = st.sampled_from(["a", "b", "a=b", "a:b", "b:a=b", ""])
STRINGS = st.sampled_from(["a", "b", "b=b", "a=b", "b:a", ""])
NUMBERS = st.sampled_from([1, 1.0, np.float32(1), 0, -2.5, 3, NAN, np.int64(7), 1e308, 5e-324])
SIMPLE = st.one_of(
    STRINGS, STRINGS, st.booleans(), st.none(), st.lists(STRINGS, max_size=3), st.sets(STRINGS)
)
VALUES = st.recursive(
    SIMPLE | NUMBERS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
ITEMS = st.dictionaries(KEYS, VALUES, max_size=5) | st.lists(STRINGS | KEYS, max_size=4)
LETTERS = st.sampled_from(["u", "v", "w"])
PLAIN_VALUES = st.recursive(
    LETTERS | st.booleans() | st.lists(LETTERS) | st.sets(LETTERS),
    lambda inner: st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=5,
)
PLAIN_ITEMS = st.dictionaries(LETTERS, PLAIN_VALUES) | st.lists(LETTERS)


def training(items):
    return st.lists(st.lists(items, min_size=1, max_size=5), min_size=1, max_size=5)
