"""Memory: what is small on disk or in lists stays small, or is refused before it grows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hardening.memory_limit import run_limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of address space")

TRAINED = """
from spacy_treecrf import BoostedCRF
X = [[{"w": f"w{i % 7}", "f": True}, {"w": "x"}] for i in range(500)]
y = [["A", "B"] if i % 2 else ["B", "A"] for i in range(500)]
settings = {"rounds": 2, "threads": 1, "min_count": 1}
crf = BoostedCRF(**settings).fit(X, y)
crf.predict(X), crf.predict_marginals(X)
"""


WIDE = """
X, y = [[{{"w": "a"}}] for _ in range({rows})], [["A"] if i % 2 else ["B"] for i in range({rows})]
X[3] = [{{{entry} for i in range({n})}}]
limit_memory({megabytes})
try:
    crf = BoostedCRF(**settings, {more}).fit(X, y)
    print(len(crf.model_.columns.feature_names), len(crf.predict(X)))
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("entry", "n"),
    [
        pytest.param("f'f{i}': True", 1_000_000, id="flag", marks=pytest.mark.slow),
        pytest.param("f'f{i}': True", 200_000, id="flag"),
        pytest.param("f'k{i}': 'v'", 200_000, id="text"),
    ],
)
def test_row_with_a_million_features_trains_and_widens_no_other(entry: str, n: int) -> None:
    """A table as wide as the row would take 8.4 GB; flags and keys of texts cost what is held."""
    code = WIDE.format(entry=entry, n=n, rows=1_001, megabytes=200 + n // 500, more="")
    assert run_limited(TRAINED + code) == f"{n + 1} 1001\n"


@pytest.mark.parametrize(
    ("entry", "n", "more"),
    [
        pytest.param("f'n{i}': 0.5 + i", 200_000, "", id="number"),
        pytest.param("f'f{i}': True", 200_000, "missing='surrogate'", id="missing values"),
    ],
)
def test_row_that_would_widen_all_others_is_refused_by_name(entry: str, n: int, more: str) -> None:
    """Numbers are columns of all rows, and trees that decide about missing values need a table."""
    code = WIDE.format(entry=entry, n=n, rows=8_000, megabytes=1000, more=more)
    printed = run_limited(TRAINED + code)
    assert printed.startswith("treecrf: X would take a table of 8000 rows and 200")
    assert f"X[3][0] has the most features, {n}" in printed


def test_wide_row_among_many_trains_in_what_rows_hold() -> None:
    """A table as wide as the widest row would take 2 GB, and a transposed copy as much."""
    printed = run_limited(
        TRAINED
        + """
n = 100_000
X = [[{f"f{(7 * i + j * j) % 5000}": True for j in range(20)}] for i in range(n)]
y = [["A"] if i % 2 else ["B"] for i in range(n)]
X[3] = [{f"f{j}": True for j in range(5000)}]
limit_memory(300)
crf = BoostedCRF(**settings).fit(X, y)
print(len(crf.predict(X)), crf.model_.columns.n_shared_slots)
"""
    )
    assert printed == "100000 5000\n"


def test_wide_row_that_training_did_not_see_widens_no_other_in_prediction() -> None:
    printed = run_limited(
        """
from spacy_treecrf import BoostedCRF
n = 50_000
X = [[{f"f{i}": True, "w": "a"}, {"w": "b"}] for i in range(n)]
y = [["A", "B"] if i % 2 else ["B", "A"] for i in range(n)]
crf = BoostedCRF(rounds=1, threads=1, min_count=1).fit(X, y)
wide = [*X[:10_000], [{f"f{i}": True for i in range(n)}], *X[10_000:20_000]]
crf.predict(X[:100])
limit_memory(1500)
labels = crf.predict(wide)
print(len(labels), labels[:10_000] + labels[10_001:] == crf.predict(X[:20_000]))
"""
    )
    assert printed == "20001 True\n"


def test_secoc_of_many_bits_and_features_is_small_or_refused(tmp_path: Path) -> None:
    printed = run_limited(
        f"""
import numpy as np
from spacy_treecrf import SECOCCRF, BoostedCRF
from spacy_treecrf.storage import container
X, y = [[{{"a": f"x{{i % 50}}"}}] for i in range(260)], [[f"L{{i % 13}}"] for i in range(260)]
base = BoostedCRF(rounds=1, min_rows=1, min_count=1)
secoc = SECOCCRF(bits=8, training="columns", base=base, threads=1, folds=2).fit(X, y)
secoc.predict(X[:10])
state = secoc.model_.to_state()
columns, n, n_bits = state["columns"], 60_000, 4095
columns["feature_names"] += [f"a=z{{i}}" for i in range(n)]
columns["counts"] = np.append(columns["counts"], np.ones(n, np.int64))
columns["column_of"] = np.append(columns["column_of"], np.zeros(n, np.int32))
one_slot = np.tile(np.array([[0, 1]], np.int32), (n, 1))
columns["slot_range"] = np.concatenate([columns["slot_range"], one_slot])
words = [[(bit >> label) & 1 for bit in range(1, n_bits + 1)] for label in range(13)]
numeric, edges = np.zeros((0, 2 * n_bits), np.float32), np.zeros((n_bits, 3, 2), np.float32)
linear = {{"where": np.empty(0, np.int64), "value": np.empty(0, np.float32), "numeric": numeric}}
state |= {{"code": np.array(words, np.uint8), "bit_edges": edges, "linear": linear}}
state |= {{"rounds": n_bits, "settings": state["settings"] | {{"bits": n_bits}}}}
path = {str(tmp_path / "secoc")!r}
container.save(path, state)
limit_memory(400)
print(len(SECOCCRF.load(path).predict([X[0] * 10])[0]))
for every in (10**9, 4096):
    where = np.arange(0, (n + 50) * 2 * n_bits, every, dtype=np.int64)
    linear |= {{"where": where, "value": np.ones(len(where), np.float32)}}
    container.save(path, state)
    try:
        SECOCCRF.load(path)
    except ValueError as error:
        print(error)
state["rounds"] = 2000
container.save(path, state)
try:
    SECOCCRF.load(path)
except ValueError as error:
    print(error)
"""
    )
    n, *sparse, unlearned = printed.splitlines()
    assert n == "10"
    for error in sparse:
        assert error.startswith("treecrf: model field 'linear.where': expected weights that take")
    assert "expected weights of the 4000 classes that are learned" in unlearned


def test_slot_keys_without_features_are_refused(tmp_path: Path) -> None:
    printed = run_limited(
        TRAINED
        + f"""
from spacy_treecrf.storage import container
state = crf.model_.to_state()
columns = state["columns"]
n_old = len(columns["slot_keys"])
keys = [f"k{{i}}" for i in range(1_000_000)]
shared = columns["slot_range"][:, 0] >= n_old
columns["slot_keys"] += keys
columns["slot_range"][shared, 0] = n_old + len(keys)
path = {str(tmp_path / "keys")!r}
container.save(path, state)
limit_memory(400)
try:
    BoostedCRF.load(path)
except ValueError as error:
    print(error)
"""
    )
    assert printed.startswith("treecrf: model field 'columns.slot_keys'")


def test_list_of_millions_of_empty_tables_is_refused() -> None:
    printed = run_limited(
        """
import hashlib, struct
from spacy_treecrf.storage import container
body = b"\\x81\\xa1a\\xdd" + struct.pack(">I", 19_000_000) + b"\\x80" * 19_000_000
start = b"\\x89TREECRF\\r\\n" + struct.pack("<IQ", 1, len(body))
data = start + hashlib.sha256(start + body).digest() + body
limit_memory(600)
try:
    container.parse(data)
except ValueError as error:
    print(error)
"""
    )
    assert "lists and tables" in printed


@pytest.mark.parametrize("ask", ["predict", "predict_marginals"])
def test_high_orders_are_scored_in_blocks(ask: str) -> None:
    printed = run_limited(
        f"""
from spacy_treecrf import BoostedCRF
labels = [f"L{{i}}" for i in range(16)]
X = [[{{"w": str(i)}} for i in range(16)] for _ in range(2)]
y = [labels, labels[::-1]]
crf = BoostedCRF(rounds=0, order=4, family="joint", threads=1, min_count=1).fit(X, y)
short = [[{{"w": "1"}}] * 5] * 100
crf.{ask}(short[:1])
limit_memory(1000)  # the scores of all are 2 GB
print(len(crf.{ask}(short)))
try:
    crf.{ask}([[{{"w": "1"}}] * 600])
except ValueError as error:
    print(error)
"""
    )
    count, error = printed.splitlines()
    assert count == "100"
    assert error.startswith("treecrf: sequence 0 has 600 positions")
    assert "limit" in error
