"""Arrays of rows are the same in memory and in mapped files, of which nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding.feature_dicts import new_ids, scan
from spacy_treecrf.engine.encoding.stored_events import scan_into
from spacy_treecrf.engine.row_storage import IN_MEMORY, GrowingArray, RowStorage

TABLES = st.tuples(st.integers(0, 40), st.integers(0, 5), st.integers(0, 2**32 - 1))


def in_files(folder: Path) -> RowStorage:
    """A storage in which every array has a file."""
    return RowStorage(str(folder), least_bytes=1)


def table(shape: tuple[int, int, int]) -> np.ndarray[Any, Any]:
    n_rows, n_columns, seed = shape
    return np.random.default_rng(seed).integers(0, 99, (n_rows, n_columns), dtype=np.int32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spilled")


@settings(max_examples=50, deadline=None)
@given(shape=TABLES, chosen=st.integers(0, 2**32 - 1), n=st.integers(1, 4))
def test_what_is_made_of_an_array_is_the_same_in_files(
    folder: Path, shape: tuple[int, int, int], chosen: int, n: int
) -> None:
    array, storage = table(shape), in_files(folder)
    mask = np.random.default_rng(chosen).random(len(array)) < 0.5
    made = [
        (storage.keep(array), array),
        (storage.select(array, mask), array[mask]),
        (storage.transposed(array), array.T),
        (storage.joined([array, array[::2]]), np.concatenate([array, array[::2]])),
        (storage.repeated(array[:, None], n), np.repeat(array[:, None], n, axis=1)),
        (storage.zeros(array.shape, np.int32), np.zeros_like(array)),
        (IN_MEMORY.select(array, mask), array[mask]),
        (IN_MEMORY.repeated(array[:, None], n), np.repeat(array[:, None], n, axis=1)),
    ]
    for found, expected in made:
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        assert found.flags.c_contiguous
    assert IN_MEMORY.keep(array) is array


@settings(max_examples=50, deadline=None)
@given(pieces=st.lists(st.lists(st.integers(-9, 9), max_size=9), max_size=9))
def test_a_growing_array_holds_all_it_was_given(folder: Path, pieces: list[list[int]]) -> None:
    growing = GrowingArray(in_files(folder), np.int32)
    for piece in pieces:
        growing.extend(np.array(piece, np.int32))
    assert growing.values.tolist() == [value for piece in pieces for value in piece]


def test_files_have_no_names_and_small_arrays_no_files(folder: Path) -> None:
    storage = RowStorage(str(folder), least_bytes=100)
    large, small = storage.zeros(25, np.float32), storage.zeros(24, np.float32)
    large[:] = 7.0
    assert large.base is not None
    assert small.base is None
    assert os.listdir(folder) == []
    assert storage.spills
    assert not IN_MEMORY.spills


def test_events_are_the_same_however_they_are_read(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = [
        [{"w": f"w{rng.integers(9)}", "x": float(rng.integers(3)), "bag": ["a", "b"]}] * length
        for length in rng.integers(1, 3000, 30)
    ]
    found = []
    for storage in (IN_MEMORY, in_files(folder)):
        ids = iter(range(10**6))
        found.append(scan_into(storage, iter(X), new_ids(ids.__next__), "X"))
    ids = iter(range(10**6))
    expected = scan(X, new_ids(ids.__next__), "X")
    for events in found:
        for name in ("offsets", "ends", "ids", "values"):
            np.testing.assert_array_equal(getattr(events, name), getattr(expected, name))


def test_errors_of_spilled_events_name_the_sequence(folder: Path) -> None:
    X = [[{"w": "a"}] * 9000, [{"w": "a"}] * 9000, [{"w": "a"}], [{"w": "a"}, 7]]
    with pytest.raises(TypeError, match=r"^treecrf: X\[3\]\[1\] is of type int"):
        scan_into(in_files(folder), X, new_ids(iter(range(99)).__next__), "X")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    missing = RowStorage(str(tmp_path / "missing"), least_bytes=1)
    with pytest.raises(ValueError, match=r"^treecrf: there is no folder '.*missing' to spill to;"):
        missing.check()
    with pytest.raises(ValueError, match=r"^treecrf: cannot spill 0 MB to '.*missing': No such"):
        missing.zeros(9, np.int32)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is not reserved here")
def test_a_full_disk_is_an_error_and_no_crash(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: cannot spill \d+ MB to .*; make room there"):
        in_files(folder).zeros(2**50, np.uint8)
    assert os.listdir(folder) == []


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, numpy as np\n"
        "from spacy_treecrf.engine.row_storage import RowStorage\n"
        f"array = RowStorage({str(tmp_path)!r}).zeros(2**20, np.uint8)\n"
        "array[:] = 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode != 0
    assert os.listdir(tmp_path) == []
