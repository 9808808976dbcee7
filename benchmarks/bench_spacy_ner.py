"""CoNLL-2003 entities through nlp.pipe on one thread: treecrf beside spaCy's own NER (a CNN)."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_treecrf.pipeline.pipe import TreeCRF

from corpora import Document, read_conll2003
from spacy_data import CONFIGS, docs_of, run_spacy, write_docs, write_glove
from timing import report, run_python, timed

CNN_STEPS = 200
STEPS = 10
QUICK_DOCUMENTS, QUICK_TEST_DOCUMENTS = 100, 40
QUICK_CNN_STEPS, QUICK_STEPS = 40, 3
WARM_UP = 20  # documents
REPEATS = 5
CLUSTERS = "[4, 6, 10, 0]"
VECTOR_BINS = 255
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}


def train(folder: Path, features: str, quick: bool) -> dict[str, str]:
    """Train both on the same docs with `spacy train`; returns the folders of the pipelines."""
    limit = QUICK_DOCUMENTS if quick else None
    test_limit = QUICK_TEST_DOCUMENTS if quick else None
    write_docs(folder / "train.spacy", read_conll2003("eng.train", limit))
    write_docs(folder / "dev.spacy", read_conll2003("eng.testa", test_limit))
    data = {"paths.train": folder / "train.spacy", "paths.dev": folder / "dev.spacy"}

    steps = QUICK_STEPS if quick else STEPS
    settings: dict[str, Any] = {"training.max_steps": steps, "training.eval_frequency": steps}
    settings["training.patience"] = 0  # it counts steps that are not evaluated, too
    if features != "plain":
        settings["components.treecrf.features.clusters"] = CLUSTERS
    if features == "vectors":
        write_glove(folder / "glove")
        settings["paths.vectors"] = folder / "glove"
        settings["components.treecrf.features.vectors"] = VECTOR_BINS
    run_spacy("train", CONFIGS / "ner.cfg", "-o", folder / "treecrf", **data, **settings)

    config = folder / "cnn.cfg"
    run_spacy("init", "config", config, "-l", "en", "-p", "ner", "-o", "efficiency")
    steps = QUICK_CNN_STEPS if quick else CNN_STEPS
    settings = {"training.max_steps": steps, "training.eval_frequency": steps}
    run_spacy("train", config, "-o", folder / "cnn", **data, **settings)
    return {name: str(folder / name / "model-last") for name in ("treecrf", "cnn")}


def measure(treecrf: str, cnn: str, quick: bool) -> dict[str, Any]:
    """Speed and F1 of both, their passes over the test documents taking turns."""
    documents = read_conll2003("eng.testa", QUICK_TEST_DOCUMENTS if quick else None)
    pipelines = {"treecrf": spacy.load(treecrf), "cnn": spacy.load(cnn)}
    pipe = pipelines["treecrf"].get_pipe("treecrf")
    assert isinstance(pipe, TreeCRF)
    pipe.shim.recipe = pipe.shim.recipe.changed(threads=1)
    features, prediction = Stopwatch(pipe.features.encode), Stopwatch(pipe.predict)
    pipe.features.encode, pipe.predict = features, prediction  # type: ignore[method-assign]

    for nlp in pipelines.values():
        one_pass(nlp, read_conll2003("eng.train", WARM_UP))
    passes: dict[str, list[Pass]] = {name: [] for name in (*pipelines, "labels_only")}
    shares = []
    for _ in range(1 + REPEATS):
        features.seconds = prediction.seconds = 0.0
        passes["treecrf"].append(one_pass(pipelines["treecrf"], documents))
        total = passes["treecrf"][-1].seconds
        shares.append((features.seconds / total, prediction.seconds / total))
        passes["cnn"].append(one_pass(pipelines["cnn"], documents))
        pipe.probabilities = False
        passes["labels_only"].append(one_pass(pipelines["treecrf"], documents))
        pipe.probabilities = True
    of_features, of_prediction = (median(values) for values in zip(*shares[1:], strict=True))

    n_words = sum(len(d.words) for d in documents)
    best = {name: min(p.seconds for p in of_name) for name, of_name in passes.items()}
    cpu = {name: min(p.cpu_seconds for p in of_name) for name, of_name in passes.items()}
    first = {name: of_name[0].seconds for name, of_name in passes.items()}
    return {
        "words": n_words,
        "documents": len(documents),
        "treecrf_words_per_second": n_words / best["treecrf"],
        "cnn_words_per_second": n_words / best["cnn"],
        "speed_up": best["cnn"] / best["treecrf"],
        "cpu_speed_up": cpu["cnn"] / cpu["treecrf"],
        "first_pass": {
            "treecrf_words_per_second": n_words / first["treecrf"],
            "cnn_words_per_second": n_words / first["cnn"],
            "speed_up": first["cnn"] / first["treecrf"],
        },
        "without_probabilities": {
            "treecrf_words_per_second": n_words / best["labels_only"],
            "speed_up": best["cnn"] / best["labels_only"],
        },
        "share_of_features": of_features,
        "share_of_model": of_prediction - of_features,
        "share_of_annotation": 1.0 - of_prediction,
        "rounds": pipe.shim.trained.rounds,
        "treecrf_f1": entity_f1(pipelines["treecrf"], documents),
        "cnn_f1": entity_f1(pipelines["cnn"], documents),
    }


class Stopwatch:
    """A function and the seconds that its calls have taken."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work = work
        self.seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result, seconds = timed(lambda: self.work(*args, **kwargs))
        self.seconds += seconds
        return result


@dataclass(frozen=True)
class Pass:
    """The wall and processor time of annotating the documents once."""

    seconds: float
    cpu_seconds: float


def one_pass(nlp: Language, documents: Sequence[Document]) -> Pass:
    docs = docs_of(nlp.vocab, documents)
    began = time.process_time()
    _, seconds = timed(lambda: deque(nlp.pipe(docs), maxlen=0))
    return Pass(seconds, time.process_time() - began)


def entity_f1(nlp: Language, documents: Sequence[Document]) -> float:
    gold = docs_of(nlp.vocab, documents, entities=True)
    predicted = docs_of(nlp.vocab, documents)
    scores = nlp.evaluate([Example(p, g) for p, g in zip(predicted, gold, strict=True)])
    return float(100.0 * scores["ents_f"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", choices=("plain", "clusters", "vectors"), default="plain")
    parser.add_argument("--quick", action="store_true", help="a part of the data, fewer rounds")
    parser.add_argument("--measure", nargs=2, metavar="PIPELINE", help="only this, in this process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure, options.quick)))
        return
    quick = ["--quick"] if options.quick else []
    with tempfile.TemporaryDirectory() as folder:
        trained = train(Path(folder), options.features, options.quick)
        pipelines = (trained["treecrf"], trained["cnn"])
        values = run_python(__file__, *quick, "--measure", *pipelines, **ONE_THREAD)
    report("spacy_ner", features=options.features, threads=1, **values)


if __name__ == "__main__":
    main()
