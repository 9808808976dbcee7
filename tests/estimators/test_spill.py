"""A training whose arrays are files learns the same model, also if they do not fit into memory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.models.model import TrainingInterrupted
from spacy_treecrf.storage import container

SMALL = {"rounds": 5, "linear_rounds": 2, "leaves": 6, "seed": 1}
KINDS: dict[str, dict[str, Any]] = {
    "joint": {"family": "joint"},
    "separate": {"family": "separate"},
    "order 0": {"order": 0},
    "drawn": {"subsample": 0.7, "colsample": 0.7, "trim": 0.0},
    "conjugate": {"step": "conjugate"},
    "pseudo": {"pseudo_rounds": 3},
    "unbiased": {"unbiased": True},
    "surrogate": {"missing": "surrogate"},
    "imputation": {"missing": "imputation"},
    "marginal": {"predictor": "marginal"},
}
Data = tuple[list[list[dict[str, Any]]], list[list[str | None]]]
# Arrays of at least LEAST_BYTES are files: so many rows make files of their columns and scores.
N_SEQUENCES = 1200


def made(n: int, seed: int = 0) -> Iterator[tuple[list[dict[str, Any]], list[str | None]]]:
    rng = random.Random(seed)
    for _ in range(n):
        words = [rng.randrange(200) for _ in range(rng.randrange(1, 40))]
        items = [
            {"w": f"w{w}", "s": f"{w % 7}", "x": None if w % 9 == 0 else w / 3 + rng.random()}
            for w in words
        ]
        yield items, [None if rng.random() < 0.05 else f"L{w * 7 % 5}" for w in words]


@pytest.fixture(scope="module")
def data() -> Data:
    pairs = list(made(N_SEQUENCES))
    return [items for items, _ in pairs], [labels for _, labels in pairs]


def stored(estimator: BoostedCRF) -> bytes:
    return container.dump(estimator.model_.to_state())


@pytest.mark.parametrize("kind", KINDS)
def test_spilled_trainings_learn_the_same_model(data: Data, tmp_path: Path, kind: str) -> None:
    X, y = data
    settings, dev = {**SMALL, **KINDS[kind]}, (X[:300], y[:300])
    local = BoostedCRF(**settings).fit(X, y, *dev)
    spilled = BoostedCRF(**settings, spill=tmp_path).fit(X, y, *dev)
    assert stored(spilled) == stored(local)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("soft_labels", ["evidence", "distill"])
def test_soft_labels_spill(data: Data, tmp_path: Path, soft_labels: str) -> None:
    X, plain = data
    y = [
        [{label: 0.8, "L0": 0.2} if label not in (None, "L0") else "L0" for label in own]
        if s % 2
        else [label or "L1" for label in own]
        for s, own in enumerate(plain)
    ]
    local = BoostedCRF(**SMALL, soft_labels=soft_labels).fit(X, y)
    spilled = BoostedCRF(**SMALL, soft_labels=soft_labels, spill=tmp_path).fit(X, y)
    assert stored(spilled) == stored(local)


@pytest.mark.parametrize("spills", [False, True])
def test_iterators_are_read_in_step_and_learned_as_lists_are(
    data: Data, tmp_path: Path, spills: bool
) -> None:
    ahead: list[int] = []

    def labels() -> Iterator[list[str | None]]:
        for s, (_, own) in enumerate(made(N_SEQUENCES)):
            ahead.append(s - n_read)
            yield own

    n_read = 0

    def sequences() -> Iterator[list[dict[str, Any]]]:
        nonlocal n_read
        for items, _ in made(N_SEQUENCES):
            yield items
            n_read += 1

    spill = tmp_path if spills else None
    found = BoostedCRF(**SMALL, spill=spill).fit(sequences(), labels())
    assert stored(found) == stored(BoostedCRF(**SMALL).fit(*data))
    assert set(ahead) == {0}


def test_warm_starts_spill(data: Data, tmp_path: Path) -> None:
    expected = BoostedCRF(**SMALL).fit(*data)
    begun = BoostedCRF(**{**SMALL, "rounds": 3}, spill=tmp_path, warm_start=True).fit(*data)
    begun.set_params(rounds=SMALL["rounds"])
    X, y = data
    assert stored(begun.fit(iter(X), iter(y))) == stored(expected)


@pytest.mark.parametrize(
    ("X", "y", "problem"),
    [
        ([[{"a": "b"}]] * 2, [["L"]], "X holds more sequences than y, which has 1"),
        ([[{"a": "b"}]], [["L"]] * 2, "y holds more sequences than X, which has 1"),
        ([[{"a": "b"}]], [["L", "M"]], r"X\[0\] has 1 positions, y\[0\] has 2 labels"),
        ([[]], [[]], r"X\[0\] is an empty sequence"),
        ([], [], "X holds no sequences"),
        ([[{"a": "b"}]], [[3.5]], r"y\[0\]\[0\] is 3.5, a float"),
        ([[{"a": "b"}]], [[None]], "y holds no label at all"),
    ],
)
def test_wrong_iterators_are_refused(X: list[Any], y: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^treecrf: {problem}"):
        BoostedCRF(rounds=1).fit(iter(X), iter(y))  # type: ignore[arg-type]


def test_nothing_is_left_after_an_error_or_ctrl_c(data: Data, tmp_path: Path) -> None:
    for error, raised in ((KeyError, KeyError), (KeyboardInterrupt, TrainingInterrupted)):

        def fail(info: RoundInfo, error: type[BaseException] = error) -> None:
            raise error

        with pytest.raises(raised):
            BoostedCRF(**SMALL, spill=tmp_path, callback=fail).fit(*data)
        assert os.listdir(tmp_path) == []


def test_a_folder_to_spill_to_is_no_part_of_a_model(data: Data, tmp_path: Path) -> None:
    crf = BoostedCRF(**SMALL, spill=tmp_path).fit(*data)
    assert "spill" not in crf.model_.to_state()["settings"]
    crf.save(tmp_path / "model")
    assert BoostedCRF.load(tmp_path / "model").spill is None
    missing = BoostedCRF(**SMALL, spill=tmp_path / "missing")
    with pytest.raises(ValueError, match=r"^treecrf: there is no folder '.*missing' to spill to"):
        missing.fit(*data)


# What the process below may have beside mapped files; its arrays are more than four times that.
LIMIT = 256 << 20
CHILD = """
import hashlib, json, random, resource, sys
from spacy_treecrf import BoostedCRF
from spacy_treecrf.storage import container

limit, spill, n_sequences = json.loads(sys.argv[1])

def made():
    rng = random.Random(0)
    for _ in range(n_sequences):
        yield [rng.randrange(500) for _ in range(20)]

def address_space():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmPeak"))

X = ([{"w": f"w{w}", "a": str(w % 41), "b": str(w % 9)} for w in words] for words in made())
y = ([f"L{w * 7 % 20}" for w in words] for words in made())
before = address_space()
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
crf = BoostedCRF(family="joint", rounds=1, linear_rounds=0, leaves=4, threads=1, spill=spill)
try:
    crf.fit(X, y)
    digest = hashlib.sha256(container.dump(crf.model_.to_state())).hexdigest()
except MemoryError:
    digest = None
print(json.dumps([digest, address_space() - before]))
"""


def trained(limit: int, spill: Path | None, n_sequences: int) -> tuple[str | None, int]:
    """The digest of a model (None: the memory did not suffice), and the bytes of its arrays."""
    given = json.dumps([limit, None if spill is None else str(spill), n_sequences])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, given],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    digest, n_bytes = json.loads(done.stdout)
    return digest, n_bytes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_arrays_of_four_times_the_memory_are_learned_all_the_same(tmp_path: Path) -> None:
    # The limit is on memory that the system cannot take back: what is neither a file nor shared.
    trained(0, tmp_path, 20)  # compiling takes more memory than there will be
    assert trained(LIMIT, None, 18_000)[0] is None
    spilled, n_bytes = trained(LIMIT, tmp_path, 18_000)
    assert n_bytes > 4 * LIMIT
    assert spilled is not None
    assert spilled == trained(0, None, 18_000)[0]
    assert os.listdir(tmp_path) == []
