"""kill -9 while a process saves: the target always loads, and the next save cleans up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spacy_treecrf.storage import container
from spacy_treecrf.storage.files import replacing

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and locks")
KILLS = 20
SAVE_FOR_EVER = """
import sys
import numpy as np
from spacy_treecrf.storage import container
n = 0
while True:
    container.save(sys.argv[1], {"n": n, "values": np.full(200_000, n)})
    n += 1
    if n == 1:
        print("saved", flush=True)
"""
WRITE_HALF = """
import sys
from spacy_treecrf.storage.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def started(code: str, path: Path) -> subprocess.Popen[str]:
    """A child that runs the code on the path, after it has printed its first line."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    return child


def killed(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL


def temporaries(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


def test_the_target_loads_whenever_its_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "model.treecrf"
    rng = random.Random(0)
    seen = 0
    for _ in range(KILLS):
        child = started(SAVE_FOR_EVER, path)
        # The child's first save has removed what the one before it left.
        time.sleep(rng.uniform(0.0, 0.03))
        killed(child)
        state = container.read(path)
        assert np.all(state["values"] == state["n"])
        left = temporaries(tmp_path)
        assert len(left) <= 1
        assert sorted(os.listdir(tmp_path)) == sorted([*left, "model.treecrf"])
        seen += len(left)
    assert seen, "no kill hit a write: this test shows nothing"
    container.save(path, {"n": -1})
    assert os.listdir(tmp_path) == ["model.treecrf"]


def test_only_what_a_dead_writer_of_the_same_target_left_is_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "model", tmp_path / "other"
    killed(started(WRITE_HALF, path))
    (stale,) = temporaries(tmp_path)
    killed(started(WRITE_HALF, other))
    live = started(WRITE_HALF, path)  # it has removed the stale one
    assert stale not in temporaries(tmp_path)
    kept = temporaries(tmp_path)
    assert len(kept) == 2  # the other target's, and the one that is being written
    mine = tmp_path / ".treecrf-mine.tmp"
    mine.write_bytes(b"mine")
    container.save(path, {"n": 1})
    assert temporaries(tmp_path) == sorted([*kept, mine.name])
    live.communicate("", timeout=60)
    assert live.returncode == 0
    assert path.read_bytes() == b"half"
    container.save(other, {"n": 2})
    assert temporaries(tmp_path) == [mine.name]
    assert mine.read_bytes() == b"mine"


def test_writers_of_one_target_do_not_hinder_each_other(tmp_path: Path) -> None:
    path = tmp_path / "model"
    children = [started(SAVE_FOR_EVER, path) for _ in range(3)]
    for n in range(30):
        container.save(path, {"n": n, "values": np.full(10, n)})
        state = container.read(path)
        assert np.all(state["values"] == state["n"])
    assert all(child.poll() is None for child in children)
    for child in children:
        killed(child)
    container.save(path, {"n": -1})
    assert os.listdir(tmp_path) == ["model"]


def test_nested_writes_of_one_target_in_one_process_work(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as outer:
        outer.write(b"outer")
        with replacing(path) as inner:
            inner.write(b"inner")
        assert path.read_bytes() == b"inner"
    assert path.read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["file"]
