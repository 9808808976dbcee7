"""Two checkouts by turns in one run: is this tree as fast as that one?

    python benchmarks/compare_checkouts.py ../before [--repeats 3] [--only predict]

The work is our side of bench_crfsuite.py and of bench_lightgbm.py by public calls alone, so that
trees of any version take part. Each tree has a process of its own, in which it has compiled; the
processes take turns, and the best of the repeats counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpora import read_conll2000
from timing import report, timed

QUICK_SENTENCES = 500
HERE = Path(__file__).resolve().parents[1]


def works(quick: bool) -> dict[str, Callable[[], Any]]:
    """Named pieces of work of the package that this process imports; all is compiled."""
    from spacy_treecrf import BoostedCRF

    limit = QUICK_SENTENCES if quick else None
    X, y = read_conll2000("train", limit)
    X_test, _ = read_conll2000("test", limit)
    order_0 = {"order": 0, "linear_rounds": 0, "leaves": 31, "rounds": 40, "threads": 2}
    model = BoostedCRF(rounds=40).fit(X[:500], y[:500])
    model.predict(X_test[:100])
    BoostedCRF(**{**order_0, "rounds": 2}).fit(X[:100], y[:100])
    return {
        "fit (bench_crfsuite)": lambda: BoostedCRF().fit(X, y),
        "fit of order 0 (bench_lightgbm)": lambda: BoostedCRF(**order_0).fit(X, y),
        "predict": lambda: model.predict(X_test),
    }


def serve(quick: bool) -> None:
    """Do the work that each line of the standard input names, and print its seconds."""
    work = works(quick)
    print(json.dumps(sorted(work)), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(work[line.rstrip("\n")])[1]), flush=True)


class Tree:
    """A checkout, and the process that works with it."""

    def __init__(self, root: Path, quick: bool) -> None:
        command = [sys.executable, __file__, "--serve", *(["--quick"] if quick else [])]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(root.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._answer())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="the other checkout's folder")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="the work whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.quick)
        return
    if options.other is None:
        parser.error("name the folder of the other checkout")
    theirs, ours = Tree(options.other, options.quick), Tree(HERE, options.quick)
    results = {}
    for name in ours.names:
        if options.only and options.only not in name:
            continue
        runs = [(theirs.seconds(name), ours.seconds(name)) for _ in range(options.repeats)]
        other, this = (min(side) for side in zip(*runs, strict=True))
        results[name] = {"other": other, "this": this, "ratio": this / other, "runs": runs}
    report("checkouts", **results)


if __name__ == "__main__":
    main()
