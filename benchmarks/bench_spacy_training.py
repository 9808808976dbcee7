"""CoNLL-2003 entities: `spacy train` beside the estimator with the same columns and rounds."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpora import PAD, Document, Item, read_conll2003, span_f1
from timing import report, run_python, timed

STEPS, ROUNDS_PER_STEP = 11, 5
QUICK_STEPS = 4
QUICK_DOCUMENTS, QUICK_TEST_DOCUMENTS = 100, 40
WARM_UP = 20  # documents
WINDOW = range(-2, 3)
AFFIXES = range(1, 5)
# Settings of configs/ner.cfg: the columns of `items`, the estimator's defaults, whole documents.
PLAIN = {
    "components.treecrf.features.document": "[]",
    "components.treecrf.features.attrs.ORTH": "[0]",
    "components.treecrf.model.linear_rounds": 5,
    "components.treecrf.model.shrinkage": 0.6,
    "corpora.train.inputs": "[]",
    "corpora.dev.inputs": "[]",
}
LOWER, SHAPE = ([f"{name}[{d}]" for d in WINDOW] for name in ("lower", "shape"))
PREFIX, SUFFIX = ([(n, f"{name}{n}") for n in AFFIXES] for name in ("prefix", "suffix"))


def items(words: Sequence[str]) -> list[Item]:
    """The plain columns of each word, as feature dicts."""
    from spacy.lang.lex_attrs import word_shape

    edge = [PAD] * -min(WINDOW)
    lower = [*edge, *(word.lower() for word in words), *edge]
    shapes = [*edge, *map(word_shape, words), *edge]
    return [
        dict(zip(LOWER, lower[t : t + len(WINDOW)], strict=True))
        | dict(zip(SHAPE, shapes[t : t + len(WINDOW)], strict=True))
        | {"orth": word}
        | {key: word[:n].lower() for n, key in PREFIX if n <= len(word)}
        | {key: word[-n:].lower() for n, key in SUFFIX if n <= len(word)}
        for t, word in enumerate(words)
    ]


def bench_estimator(quick: bool) -> dict[str, Any]:
    """`fit` on feature dicts; a document is a sequence, as it is for the pipe."""
    from spacy.training import biluo_to_iob, iob_to_biluo

    from spacy_treecrf import BoostedCRF

    documents, test = read(quick)
    X, dict_seconds = timed(lambda: [items(d.words) for d in documents])
    y = [iob_to_biluo(d.entities) for d in documents]
    model = BoostedCRF(rounds=rounds(quick), constraints="biluo", verbose=False)
    _, compile_seconds = timed(lambda: model.fit(X[:WARM_UP], y[:WARM_UP]))
    _, seconds = timed(lambda: model.fit(X, y))
    predicted = model.predict([items(d.words) for d in test])
    return {
        "seconds": seconds,
        "warm_up_seconds": compile_seconds,
        "dict_seconds": dict_seconds,
        "rounds": model.rounds_,
        "columns": len(set().union(*X[0])),
        "f1": span_f1([d.entities for d in test], [biluo_to_iob(labels) for labels in predicted]),
    }


def bench_spacy(folder: Path, quick: bool) -> dict[str, Any]:
    """`spacy train` in a process of its own, less what it takes with next to no documents."""
    from spacy_data import CONFIGS, run_spacy, write_docs

    documents, test = read(quick)
    write_docs(folder / "train.spacy", documents)
    write_docs(folder / "dev.spacy", test)
    steps = QUICK_STEPS if quick else STEPS

    def train(output: str, **settings: Any) -> float:
        return timed(
            lambda: run_spacy(
                *("train", CONFIGS / "ner.cfg", "-o", folder / output),
                **PLAIN,
                **{
                    "paths.train": folder / "train.spacy",
                    "paths.dev": folder / "dev.spacy",
                    "components.treecrf.rounds_per_step": ROUNDS_PER_STEP,
                    "training.max_steps": steps - 1,  # spaCy makes one more
                    "training.patience": 0,
                    **settings,
                },
            )
        )[1]

    one_dev = {"corpora.dev.limit": 1, "training.eval_frequency": steps - 1}
    tiny = {**one_dev, "training.max_steps": 1}
    train("tiny", **tiny, **{"corpora.train.limit": WARM_UP})  # kernels are compiled
    start_seconds = train("tiny", **tiny, **{"corpora.train.limit": 1})
    seconds = train("one_dev", **one_dev)
    with_evaluation = train("all_dev")
    meta = json.loads((folder / "all_dev" / "model-last" / "meta.json").read_text("utf8"))
    return {
        "seconds": seconds - start_seconds,
        "start_seconds": start_seconds,
        "evaluation_seconds": with_evaluation - seconds,
        "evaluations": steps,
        "rounds": rounds(quick),
        "f1": 100.0 * meta["performance"]["ents_f"],
    }


def read(quick: bool) -> tuple[list[Document], list[Document]]:
    limits = (QUICK_DOCUMENTS, QUICK_TEST_DOCUMENTS) if quick else (None, None)
    return read_conll2003("eng.train", limits[0]), read_conll2003("eng.testa", limits[1])


def rounds(quick: bool) -> int:
    return ROUNDS_PER_STEP * (QUICK_STEPS if quick else STEPS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data, fewer rounds")
    parser.add_argument("--estimator", action="store_true", help="only this, in this process")
    options = parser.parse_args()
    if options.estimator:
        print(json.dumps(bench_estimator(options.quick)))
        return
    quick = ["--quick"] if options.quick else []
    estimator = run_python(__file__, "--estimator", *quick)
    with tempfile.TemporaryDirectory() as folder:
        spacy_train = bench_spacy(Path(folder), options.quick)
    from_words = estimator["seconds"] + estimator["dict_seconds"]
    report(
        "spacy_training",
        spacy_train=spacy_train,
        estimator=estimator,
        ratio=spacy_train["seconds"] / estimator["seconds"],
        ratio_from_words=spacy_train["seconds"] / from_words,
    )


if __name__ == "__main__":
    main()
