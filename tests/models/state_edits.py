"""Random edits of the state of a model: what a hand, a tool or a bug could do to a file."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def put(array: np.ndarray[Any, Any], index: int, value: Any) -> None:
    array.flat[index] = value


# Where something can be changed: the table or list that holds it, and its key or index there.
Place = tuple[Any, Any]


def places(table: Any) -> Iterator[Place]:
    for key, value in table.items():
        yield table, key
        for nested in value if isinstance(value, list) else [value]:
            if isinstance(nested, dict):
                yield from places(nested)


def all_places(state: dict[str, Any], wanted: type) -> list[Place]:
    return [(table, key) for table, key in places(state) if isinstance(table[key], wanted)]


STRANGE_INTS = [-1, -2, 0, 1, 2, 3, 255, 256, 2**15, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
STRANGE_FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e6, -1e6, 1e30, 1.7e308, 0.5]
STRANGE_TEXTS = ["", "\0", "a" * 10_000, "é😀", "joint", "separate", "gradient", "size", "="]
STRANGE: list[Any] = [None, True, False, [], {}, [[]], *STRANGE_TEXTS]


def strange_number(rng: random.Random, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        value = rng.choice([*STRANGE_FLOATS, rng.uniform(-5, 5)])
        limit = float(np.finfo(dtype).max)
        return value if not math.isfinite(value) else max(-limit, min(limit, value))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    value = rng.choice([*STRANGE_INTS, rng.randrange(10), rng.randrange(1000)])
    return max(int(limits.min), min(int(limits.max), value))


def change_elements(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key] = table[key].copy()
    if not array.size:
        return f"{key} is empty"
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(array.size)
        if rng.random() < 0.3:  # an offset by one or two: the most plausible wrong index
            near = float(array.flat[at]) + rng.choice([-2, -1, 1, 2])
            with np.errstate(all="ignore"):
                array.flat[at] = np.array(near).astype(array.dtype)
        else:
            array.flat[at] = strange_number(rng, array.dtype)
    return f"elements of {key}"


def swap_elements(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key] = table[key].copy()
    if array.size > 1:
        i, j = rng.sample(range(array.size), 2)
        array.flat[i], array.flat[j] = array.flat[j], array.flat[i]
    return f"two elements of {key}"


def fill_array(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    table[key] = np.full_like(table[key], strange_number(rng, table[key].dtype))
    return f"{key} filled"


def change_type(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    dtype = rng.choice(["f4", "f8", "i4", "i8", "u1", "u2", "u4", "u8", "b1"])
    with np.errstate(all="ignore"):
        table[key] = table[key].astype(dtype)
    return f"{key} as {dtype}"


def change_shape(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key]
    how = rng.randrange(6)
    if how == 0:
        table[key] = array[: rng.randrange(len(array) + 1)]
    elif how == 1:
        table[key] = np.concatenate([array, array[: rng.randint(1, 3)]])
    elif how == 2:
        table[key] = array.T.copy()
    elif how == 3:
        table[key] = array.reshape(-1)
    elif how == 4:
        table[key] = array[None]
    else:
        table[key] = np.zeros([rng.randrange(4) for _ in range(rng.randrange(4))], array.dtype)
    return f"shape of {key}"


def drop_field(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(list(places(state)))
    del table[key]
    return f"no {key}"


def add_field(state: dict[str, Any], rng: random.Random) -> str:
    table, _ = rng.choice(list(places(state)))
    table["extra"] = rng.choice([1, np.zeros(3), *STRANGE])
    return "an extra field"


def swap_fields(state: dict[str, Any], rng: random.Random) -> str:
    kind = rng.choice([np.ndarray, np.ndarray, list, object])
    (one, a), (other, b) = rng.sample(all_places(state, kind), 2)
    if isinstance(one[a], dict) or isinstance(other[b], dict):
        return change_elements(state, rng)  # a table must not end up inside itself
    one[a], other[b] = other[b], one[a]
    return f"{a} and {b} swapped"


def replace_field(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(list(places(state)))
    table[key] = rng.choice([*STRANGE, *STRANGE_INTS, *STRANGE_FLOATS, np.zeros(2), 2**64 - 1])
    return f"{key} = {str(table[key])[:40]}"


def change_setting(state: dict[str, Any], rng: random.Random) -> str:
    table = rng.choice([state["settings"], state["settings"], state, state["columns"]])
    key = rng.choice([key for key, value in table.items() if isinstance(value, str | int | float)])
    choices = [*STRANGE_INTS] if isinstance(table[key], int) else [*STRANGE_FLOATS]
    table[key] = rng.choice([*choices, *choices, "joint", "gradient", "marginal", 4, 1.0])
    return f"{key} = {table[key]!r}"


def change_list(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, list))
    values = table[key] = list(table[key])
    how = rng.randrange(5)
    at = rng.randrange(len(values) + 1)
    if how == 0:
        values.insert(at, rng.choice(["new", "", *values]))
    elif how == 1:
        del values[at : at + rng.randint(1, 3)]
    elif how == 2:
        rng.shuffle(values)
    elif values and how == 3:
        values[at % len(values)] = rng.choice(STRANGE)
    else:
        values[at:at] = [f"new{i}" for i in range(rng.choice([1, 100, 5000]))]
    return f"list {key}"


def set_labels(state: dict[str, Any], n: int, order: int) -> str:
    """More labels in every field that depends on them, and another family and order."""
    n_old = len(state["labels"])
    state["labels"] = [*state["labels"], *(f"more{i}" for i in range(n - n_old))]
    state["masks"] = {"start": np.ones(n, bool), "trans": np.ones((n, n), bool)}
    state["masks"]["end"] = np.ones(n, bool)
    if "edges" in state:
        state["edges"] = np.zeros((n + 1, n), np.float32)
    for name in {"linear", "previous_linear"} & set(state):
        table = state[name]
        table["where"] = table["where"] // n_old * n + table["where"] % n_old
        table["numeric"] = np.zeros((len(table["numeric"]), n), np.float32)
    state["settings"].update(order=order)
    if "family" in state["settings"]:
        state["settings"]["family"] = "joint"
    return f"{n} labels, order {order}"


def add_labels(state: dict[str, Any], rng: random.Random) -> str:
    return set_labels(state, len(state["labels"]) + rng.choice([1, 4]), rng.randrange(5))


def forbid(state: dict[str, Any], rng: random.Random) -> str:
    name = rng.choice(["start", "trans", "end"])
    state["masks"][name] = np.zeros_like(state["masks"][name])
    return f"nothing allowed by {name}"


EDITS: list[Callable[[dict[str, Any], random.Random], str]] = [
    *[change_elements] * 8,
    *[swap_elements] * 3,
    *[change_setting] * 3,
    *[change_list] * 2,
    fill_array,
    change_type,
    change_shape,
    drop_field,
    add_field,
    swap_fields,
    replace_field,
    add_labels,
    forbid,
]


def copied(state: Any) -> Any:
    """The same with tables and lists of its own, and shared arrays: no edit changes those."""
    if isinstance(state, dict):
        return {key: copied(value) for key, value in state.items()}
    return [copied(value) for value in state] if isinstance(state, list) else state


def edit(state: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], str]:
    state = copied(state)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            done.append(rng.choice(EDITS)(state, rng))
        except (KeyError, TypeError, IndexError, ValueError, AttributeError):
            done.append("(not applicable after the edits before)")
    return state, ", ".join(done)
