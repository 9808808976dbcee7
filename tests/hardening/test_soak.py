"""benchmarks/bench_soak.py, with a few hundred docs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_soak.py"


def test_the_soak_measures_every_side_and_draws_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "soak.png"
    arguments = ["--docs", "300", "--zone", "50", "--plot", str(picture)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    found = {line["side"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {"vocab", "vocab, zones", "pipe", "pipe, zones"}
    assert all(line["new_words"] == 3000 for line in found.values())
    assert all(line["start_megabytes"] > 10.0 for line in found.values())
    assert picture.read_bytes().startswith(b"\x89PNG")
