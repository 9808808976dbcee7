"""Feature dicts encoded entry by entry and event by event: the naive twin of `Columns.encode`."""

import math
from itertools import pairwise

import numpy as np

from spacy_treecrf.engine.encoding.feature_dicts import Ids, as_string_values, plain, scan
from spacy_treecrf.engine.encoding.missing_methods import IN_TREES, INDICATOR, MISSING_VALUE
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN


def naive_encode(columns, X):
    """Offsets, feature ids and numeric bins of X."""
    ids = known_ids(
        columns.feature_names,
        columns.slot_range[:, 0].tolist(),
        columns.slot_keys,
        columns.numeric_names,
        columns.column_names,
        columns.missing == INDICATOR,
    )
    return place(columns, scan(X, ids, "X"), columns.n_shared_slots)


def known_ids(feature_names, slots, slot_keys, numeric_names, column_names, indicator):
    """Tables with the ids of features, then numeric columns, missing columns, and all else.

    A feature whose slot is that of a key is the string value of this key.
    """
    n_features, n_numeric = len(feature_names), len(numeric_names)
    nothing = n_features + n_numeric + len(column_names)
    own = [{} for _ in slot_keys]
    shared = {}
    for feature, (name, slot) in enumerate(zip(feature_names, slots, strict=True)):
        if slot < len(own):
            own[slot][name[len(slot_keys[slot]) + 1 :]] = feature
        else:
            shared[name] = feature

    def by_name(name):
        feature = shared.get(name)
        if feature is None and own:
            feature = next(as_string_values(name, strings), None)
        return nothing if feature is None else feature

    strings = KnownTables("=", by_name)
    for key, table in zip(slot_keys, own, strict=True):
        strings[key] = KnownIds(table, f"{key}=", by_name)
    names = KnownIds(shared, "", by_name)
    numbers = {name: n_features + d for d, name in enumerate(numeric_names)}
    missing = {key: n_features + n_numeric + c for c, key in enumerate(column_names)}
    return Ids(
        strings=strings,
        bags=KnownTables(":", by_name),
        flags=names,
        bare=names,
        numbers=KnownIds(shared | numbers, "", by_name) if numbers else names,
        missing=AsValue(strings) if indicator else KnownIds(missing, "", lambda _: nothing),
        first_number=n_features,
    )


def place(columns, events, n_shared_slots):
    """Offsets, feature ids and numeric bins, row by row."""
    n_features, n_numeric = len(columns.feature_names), len(columns.numeric_names)
    n_keys, n_columns = len(columns.slot_keys), len(columns.column_names)
    own, shared, numeric = [], [], []
    values = iter(events.values.tolist())
    for first, last in pairwise(events.ends.tolist()):
        given = [(~i, next(values)) if i < 0 else (i, 1.0) for i in events.ids[first:last].tolist()]
        missing = [i - n_features - n_numeric for i, _ in given if i >= n_features + n_numeric]
        missing = [column for column in missing if column < n_columns]
        cells, bag, bins = [ABSENT] * n_keys, set(), [MISSING_BIN] * n_numeric
        for column in missing:
            name = columns.column_names[column]
            if name in columns.slot_keys:
                slot = columns.slot_keys.index(name)
                cells[slot] = int(columns.missing_ids[slot])
            elif columns.missing in IN_TREES:
                bag.add(n_features + column)
            bag |= {i for i in columns.imputed.tolist() if columns.column_of[i] == column}
        bag = {i for i in bag if i >= n_features or columns.slot_range[i, 0] >= n_keys}
        for i, value in given:
            if i < n_features and columns.slot_range[i, 0] < n_keys:
                cells[columns.slot_range[i, 0]] = i
            elif i < n_features:
                bag.add(i)
            elif i < n_features + n_numeric:
                d = i - n_features
                bins[d] = 1 + int(np.searchsorted(columns.bin_edges[d], value, side="left"))
                bins[d] = MISSING_BIN if math.isnan(value) else bins[d]
        own.append(cells)
        shared.append(
            [i if i < n_features else MISSING - 1 - (i - n_features) for i in sorted(bag)]
        )
        numeric.append(bins)
    width = max([n_shared_slots, *map(len, shared)])
    rows = [a + b + [ABSENT] * (width - len(b)) for a, b in zip(own, shared, strict=True)]
    feature_ids = np.array(rows, np.int32).reshape(len(rows), n_keys + width)
    bins = np.array(numeric, np.uint8).reshape(len(rows), n_numeric)
    columns.impute_bins(bins)
    return events.offsets, feature_ids, bins


class KnownIds(dict):
    """Ids by name; unknown names are looked up by their full name, and never added."""

    __slots__ = ("by_name", "prefix")

    def __init__(self, known, prefix, by_name):
        super().__init__(known)
        self.prefix, self.by_name = prefix, by_name

    def __missing__(self, name):
        return self.by_name(self.prefix + plain(name))


class KnownTables(dict):
    """Ids by key and value; unknown ones are looked up by their full name, and never added."""

    def __init__(self, separator, by_name):
        self.separator, self.by_name = separator, by_name

    def __missing__(self, key):
        return KnownIds({}, plain(key) + self.separator, self.by_name)


class AsValue(dict):
    """Ids of missing values by key: each is the id of a string value of the key."""

    def __init__(self, strings):
        self.strings = strings

    def __missing__(self, key):
        return self.strings[key][MISSING_VALUE]
