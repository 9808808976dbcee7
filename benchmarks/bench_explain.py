"""Explanations of the NER model: milliseconds for one token, seconds for all entities of testa."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import spacy

from spacy_treecrf.pipeline.pipe import TreeCRF

from corpora import read_conll2003
from spacy_data import CONFIGS, docs_of, run_spacy, write_docs
from timing import report

QUICK_DOCUMENTS, QUICK_TEST_DOCUMENTS = 100, 40
WARM_UP = 5  # documents
TOKENS = 200  # that are explained one by one


def train(folder: Path, quick: bool) -> str:
    write_docs(
        folder / "train.spacy", read_conll2003("eng.train", QUICK_DOCUMENTS if quick else None)
    )
    write_docs(folder / "dev.spacy", read_conll2003("eng.testa", QUICK_TEST_DOCUMENTS))
    data = {"paths.train": folder / "train.spacy", "paths.dev": folder / "dev.spacy"}
    run_spacy("train", CONFIGS / "ner.cfg", "-o", folder / "treecrf", **data)
    return str(folder / "treecrf" / "model-last")


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall seconds and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def measure(path: str, quick: bool) -> dict[str, Any]:
    nlp = spacy.load(path)
    pipe = nlp.get_pipe("treecrf")
    assert isinstance(pipe, TreeCRF)
    for doc in docs_of(nlp.vocab, read_conll2003("eng.train", WARM_UP)):
        pipe.explain(doc)
    documents = read_conll2003("eng.testa", QUICK_TEST_DOCUMENTS if quick else None)
    docs = docs_of(nlp.vocab, documents)

    def all_entities() -> tuple[int, int]:
        explained = [pipe.explain(doc) for doc in docs]
        return sum(len(one.spans) for one in explained), sum(len(one.tokens) for one in explained)

    (n_entities, n_tokens), wall, cpu = timed(all_entities)
    sentences = [sentence.as_doc() for doc in docs for sentence in doc.sents]
    every = max(1, len(sentences) // TOKENS)
    single = [
        timed(lambda: pipe.explain(sentence, [len(sentence) // 2]))  # noqa: B023
        for sentence in sentences[::every]
    ]
    return {
        "documents": len(docs),
        "entities": n_entities,
        "tokens": n_tokens,
        "seconds": wall,
        "cpu_seconds": cpu,
        "one_token_ms": 1e3 * median(wall for _, wall, _ in single),
        "one_token_cpu_ms": 1e3 * median(cpu for _, _, cpu in single),
        "one_token_cpu_ms_max": 1e3 * max(cpu for _, _, cpu in single),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a trained pipeline; otherwise one is trained")
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or train(Path(folder), options.quick)
        values = measure(path, options.quick)
    report("explain", **values)


if __name__ == "__main__":
    main()
