"""Time to the first prediction: importing the package, compiling, and starting with a cache."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import report, run_python, timed

REPEATS = 3


def import_package() -> dict[str, Any]:
    def work() -> None:
        import spacy_treecrf  # noqa: F401

    _, seconds = timed(work)
    return {"seconds": seconds, "numba": "numba" in sys.modules}


def items(text: str) -> list[dict[str, str | float]]:
    return [{"letter": letter, "position": float(t)} for t, letter in enumerate(text)]


def save_model(path: str) -> dict[str, Any]:
    from spacy_treecrf import BoostedCRF

    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefgh", k=8)) for _ in range(300)]
    labels = [["V" if letter in "ae" else "C" for letter in word] for word in words]
    model = BoostedCRF(rounds=8, linear_rounds=4).fit([items(word) for word in words], labels)
    model.save(path)
    return {"rounds": model.rounds_}


def first_prediction(path: str) -> dict[str, Any]:
    """The seconds from before the first import to the first labels and probabilities."""

    def work() -> None:
        from spacy_treecrf import BoostedCRF

        model = BoostedCRF.load(path)
        model.predict([items("abcdefgh")])
        model.predict_marginals([items("abcdefgh")])

    return {"seconds": timed(work)[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=STEPS, help="only this step, in this process")
    parser.add_argument("path", nargs="*", help="of the model, for a step")
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](*options.path)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        run_python(__file__, "--step", "save", path)
        predict = (__file__, "--step", "predict", path)
        cache = str(Path(folder) / "cache")
        imports = [run_python(__file__, "--step", "import") for _ in range(REPEATS)]
        cold = run_python(*predict, NUMBA_CACHE_DIR=cache)["seconds"]
        warm = min(run_python(*predict, NUMBA_CACHE_DIR=cache)["seconds"] for _ in range(REPEATS))
    report(
        "startup",
        import_seconds=min(i["seconds"] for i in imports),
        import_loads_numba=any(i["numba"] for i in imports),
        cold_seconds=cold,
        compile_seconds=cold - warm,
        warm_seconds=warm,
    )


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "import": import_package,
    "save": save_model,
    "predict": first_prediction,
}

if __name__ == "__main__":
    main()
