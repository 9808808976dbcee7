"""CoNLL-2003 entities on one thread, through nlp.pipe and nlp(doc): treecrf beside spaCy's CNN."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
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
TURN = 50  # sentences of a pipeline, before the other one has its turn
PROCESSES = 3  # each sees the test documents once; the middle one counts
CLUSTERS = "[4, 6, 10, 0]"
VECTOR_BINS = 255
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}


def train(folder: Path, features: str, quick: bool) -> None:
    """Train both on the same docs with `spacy train`, in folders of their names."""
    folder.mkdir(parents=True, exist_ok=True)
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


def measure(treecrf: str, cnn: str, quick: bool) -> dict[str, Any]:
    """Speed of both on documents that the process has not seen, each going through a pipe once.

    Words that were seen before are about 1.4 times faster, so the test documents are cut into
    three parts: one for nlp.pipe, one for it without probabilities, one for single sentences.
    """
    documents = read_conll2003("eng.testa", QUICK_TEST_DOCUMENTS if quick else None)
    pipelines = {"treecrf": spacy.load(treecrf), "cnn": spacy.load(cnn)}
    pipe = pipelines["treecrf"].get_pipe("treecrf")
    assert isinstance(pipe, TreeCRF)
    pipe.shim.recipe = pipe.shim.recipe.changed(threads=1)
    features, prediction = Stopwatch(pipe.features.encode), Stopwatch(pipe.predict)
    for nlp in pipelines.values():
        warm_up = read_conll2003("eng.train", WARM_UP)
        one_pass(nlp, warm_up)
        single_calls({"": nlp}, sentences_of(warm_up))

    of_sentences = single_calls(pipelines, sentences_of(documents[2::3]))
    pipe.features.encode, pipe.predict = features, prediction  # type: ignore[method-assign]
    whole = {name: one_pass(nlp, documents[0::3]) for name, nlp in pipelines.items()}
    of_features = features.seconds / whole["treecrf"].seconds
    of_prediction = prediction.seconds / whole["treecrf"].seconds
    pipe.probabilities = False
    labels_only = {name: one_pass(nlp, documents[1::3]) for name, nlp in pipelines.items()}
    pipe.probabilities = True

    n_words = sum(len(d.words) for d in documents[0::3])
    n_words_of_labels = sum(len(d.words) for d in documents[1::3])
    return {
        "words": n_words,
        "documents": len(documents[0::3]),
        "treecrf_words_per_second": n_words / whole["treecrf"].seconds,
        "cnn_words_per_second": n_words / whole["cnn"].seconds,
        "speed_up": whole["cnn"].seconds / whole["treecrf"].seconds,
        "cpu_speed_up": whole["cnn"].cpu_seconds / whole["treecrf"].cpu_seconds,
        "without_probabilities": {
            "treecrf_words_per_second": n_words_of_labels / labels_only["treecrf"].seconds,
            "speed_up": labels_only["cnn"].seconds / labels_only["treecrf"].seconds,
            "cpu_speed_up": labels_only["cnn"].cpu_seconds / labels_only["treecrf"].cpu_seconds,
        },
        "one_sentence": of_sentences,
        "share_of_features": of_features,
        "share_of_model": of_prediction - of_features,
        "share_of_annotation": 1.0 - of_prediction,
        "rounds": pipe.shim.trained.rounds,
        "treecrf_f1": entity_f1(pipelines["treecrf"], documents),
        "cnn_f1": entity_f1(pipelines["cnn"], documents),
    }


def sentences_of(documents: Sequence[Document]) -> list[list[str]]:
    found = []
    for document in documents:
        starts = [i for i, is_start in enumerate(document.starts) if is_start]
        found += [document.words[a:b] for a, b in pairwise([*starts, len(document.words)])]
    return found


def single_calls(
    pipelines: dict[str, Language], sentences: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Microseconds of nlp(doc), the pipelines taking turns every few sentences.

    Not with each sentence: nobody runs two pipelines on the same text by turns, and each would
    find the processor's caches full of what the other one needs.
    """
    wall: dict[str, list[float]] = {name: [] for name in pipelines}
    cpu: dict[str, list[float]] = {name: [] for name in pipelines}
    for first in range(0, len(sentences), TURN):
        for name, nlp in pipelines.items():
            for words in sentences[first : first + TURN]:
                doc = Doc(nlp.vocab, words=words)
                began = time.process_time()
                _, seconds = timed(lambda: nlp(doc))  # noqa: B023
                cpu[name].append(1e6 * (time.process_time() - began))
                wall[name].append(1e6 * seconds)
    found = {"sentences": float(len(sentences))}
    for name in pipelines:
        found[f"{name}_p50"], found[f"{name}_p99"] = np.percentile(wall[name], (50, 99)).tolist()
        found[f"{name}_cpu_p50"] = median(cpu[name])
    if {"treecrf", "cnn"} <= set(pipelines):
        found["speed_up"] = found["cnn_p50"] / found["treecrf_p50"]
        found["cpu_speed_up"] = found["cnn_cpu_p50"] / found["treecrf_cpu_p50"]
    return found


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
    parser.add_argument("--models", type=Path, help="folder of trained pipelines, to keep them")
    parser.add_argument("--measure", nargs=2, metavar="PIPELINE", help="only this, in this process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure, options.quick)))
        return
    quick = ["--quick"] if options.quick else []
    with tempfile.TemporaryDirectory() as passing:
        folder = options.models or Path(passing)
        pipelines = (folder / "treecrf" / "model-last", folder / "cnn" / "model-last")
        if not all(pipeline.exists() for pipeline in pipelines):
            train(folder, options.features, options.quick)
        runs = [
            run_python(__file__, *quick, "--measure", *pipelines, **ONE_THREAD)
            for _ in range(1 if options.quick else PROCESSES)
        ]
    values = sorted(runs, key=lambda run: float(run["speed_up"]))[len(runs) // 2]
    report("spacy_ner", features=options.features, threads=1, **values)


if __name__ == "__main__":
    main()
