"""What a new user waits for: first training, first prediction and start-up, in fresh processes.

"Cold" is a copy of the package without any compiled kernel, "warm" the same after `warmup`.
Each side's process measures itself, from before its first import: CPU and wall seconds.
"""

from __future__ import annotations

import argparse
import compileall
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import peak_megabytes, report, run_python

X = [[{"word": "Ada", "title": True}, {"word": "wrote", "title": False}]] * 10
Y = [["NAME", "O"]] * 10
TEXTS = [("Ada met Bob", "U-PERSON O U-PERSON"), ("Bob left Rome", "U-PERSON O U-CITY")] * 5


def fit(path: str) -> None:
    """README's first example."""
    from spacy_treecrf import BoostedCRF

    BoostedCRF().fit(X, Y).save(path)


def predict(path: str) -> None:
    from spacy_treecrf import BoostedCRF

    assert BoostedCRF.load(path).predict(X[:1]) == Y[:1]


def fit_pipe(path: str) -> None:
    """README's second example."""
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf")
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": tags.split()}) for text, tags in TEXTS
    ]
    nlp.initialize(lambda: examples)
    for _ in range(6):
        nlp.update(examples)
    nlp.to_disk(path)


def predict_pipe(path: str) -> None:
    import spacy

    assert len(spacy.load(path)("Eve left Rome").ents) == 2


def import_spacy(path: str) -> None:
    """What of `predict_pipe` is spaCy's."""
    import spacy

    spacy.blank("en")("Eve left Rome")


def crfsuite_features(items: list[dict[str, Any]]) -> list[list[str]]:
    return [[f"{name}={value}" for name, value in item.items()] for item in items]


def crfsuite_fit(path: str) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for items, labels in zip(X, Y, strict=True):
        trainer.append(crfsuite_features(items), labels)
    trainer.train(path)


def crfsuite_predict(path: str) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    assert tagger.tag(crfsuite_features(X[0])) == Y[0]


STEPS: dict[str, Callable[[str], None]] = {
    step.__name__: step
    for step in (
        fit,
        predict,
        fit_pipe,
        predict_pipe,
        import_spacy,
        crfsuite_fit,
        crfsuite_predict,
    )
}


def measure(step: str, path: str) -> dict[str, float]:
    """The seconds of a step in this process, with its imports."""
    before, began = cpu_seconds(), time.perf_counter()
    STEPS[step](path)
    return {
        "cpu_seconds": cpu_seconds() - before,
        "wall_seconds": time.perf_counter() - began,
        "peak_mb": peak_megabytes(),
    }


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def copy_of_package(folder: Path) -> Path:
    """A folder to import the package from, as if it had just been installed."""
    package = Path(__file__).parents[1] / "spacy_treecrf"
    shutil.copytree(
        package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    compileall.compile_dir(folder / package.name, quiet=2)  # as pip does
    return folder


def run_step(step: str, path: Path, cache: Path, package: Path) -> dict[str, float]:
    found: dict[str, float] = run_python(
        __file__,
        "--step",
        step,
        str(path),
        NUMBA_CACHE_DIR=str(cache),
        PYTHONPATH=str(package),
        XDG_CACHE_HOME=str(cache),
        TREECRF_QUIET="1",
    )
    return found


def compare_starts(folder: Path, repeats: int) -> None:
    package = copy_of_package(folder / "package")
    model, pipeline, rival = folder / "model.treecrf", folder / "pipeline", folder / "crfsuite"
    ours = (("fit", model), ("predict", model), ("fit_pipe", pipeline), ("predict_pipe", pipeline))
    for step, path in ours:
        report("cold", step=step, **run_step(step, path, folder / f"cold_{step}", package))
    for step in ("crfsuite_fit", "crfsuite_predict"):
        report("cold", step=step, **run_step(step, rival, folder / "none", package))
    for step, path in (*ours, ("import_spacy", pipeline), ("crfsuite_predict", rival)):
        runs = [run_step(step, path, folder / f"cold_{step}", package) for _ in range(repeats)]
        report("warm", step=step, **min(runs, key=lambda run: run["cpu_seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=STEPS, help="only this step, in this process")
    parser.add_argument("--repeats", type=int, default=5, help="of warm starts; the best counts")
    parser.add_argument("path", nargs="?", help="of the model, for a step")
    options = parser.parse_args()
    if options.step:
        print(json.dumps(measure(options.step, options.path)))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare_starts(Path(folder), options.repeats)


if __name__ == "__main__":
    main()
