"""The steps of `warmup`, each run by a process of its own: train or apply small models.

It prints the folders where compiled kernels were read or written, as JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANY = 100  # times the texts: large inputs have kernels of their own
TEXTS = [("Ada met Bob", "U-PERSON O U-PERSON"), ("Bob left Rome", "U-PERSON O U-CITY")] * 5


def _items() -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    X = [
        [{"word": word, "title": word.istitle(), "at": float(t)} for t, word in enumerate(words)]
        for words in (text.split() for text, _ in TEXTS)
    ]
    return X, [labels.split() for _, labels in TEXTS]


def train_estimator(folder: Path) -> None:
    from spacy_treecrf import BoostedCRF

    X, y = _items()
    model = BoostedCRF().fit(X, y)
    model.save(folder / "estimator.treecrf")


def predict_estimator(folder: Path) -> None:
    from spacy_treecrf import BoostedCRF

    X, _ = _items()
    model = BoostedCRF.load(folder / "estimator.treecrf")
    for some in (X, X * MANY):
        model.predict(some)
        model.predict_marginals(some)
    model.predict_single(X[0])
    # Dicts with keys of many kinds are read by a kernel of their own.
    model.predict([[{f"column {i}": "Ada"} for i in range(MANY)]])


def train_pipe(folder: Path) -> None:
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf")
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": labels.split()})
        for text, labels in TEXTS
    ]
    nlp.initialize(lambda: examples)
    for _ in range(6):
        nlp.update(examples)
    nlp.to_disk(folder / "pipeline")


def predict_pipe(folder: Path) -> None:
    import spacy

    from spacy_treecrf.engine.limits import QUICK_AFTER

    # Spans that serve F1, as the config of entities has them, have a kernel of their own.
    settings = {"components.treecrf.expected_f1": 0.9}
    nlp = spacy.load(folder / "pipeline", config=settings)
    texts = [text for text, _ in TEXTS]
    for i in range(QUICK_AFTER + 2):
        nlp(f"{texts[0]} {i}")  # new words have a kernel of their own
    list(nlp.pipe(texts * MANY))


STEPS: dict[str, Callable[[Path], None]] = {
    "train-estimator": train_estimator,
    "train-pipe": train_pipe,
    "predict-estimator": predict_estimator,
    "predict-pipe": predict_pipe,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path, help="where the small models are")
    parser.add_argument(
        "--nowhere-else", action="store_true", help="read kernels from NUMBA_CACHE_DIR alone"
    )
    options = parser.parse_args()
    from spacy_treecrf.engine.kernel_cache import KernelCache

    KernelCache.reads_everywhere = not options.nowhere_else
    STEPS[options.step](options.folder)
    print(json.dumps(sorted(KernelCache.folders)))


if __name__ == "__main__":
    main()
