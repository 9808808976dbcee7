"""CRFsuite with the calls of our estimators, as a rival."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

from scripts.reproduce.windows import Items

ITERATIONS = 200


class CRFsuite:
    """A linear CRF, trained by L-BFGS.

    penalty: The weight of the squared weights.
    """

    def __init__(self, penalty: float = 1.0) -> None:
        self.penalty = penalty
        self.iterations = 0
        self._model = b""

    def fit(self, X: list[Items], y: list[list[str]]) -> CRFsuite:
        trainer = _require().Trainer(verbose=False)
        trainer.select("lbfgs")
        trainer.set_params({"c1": 0.0, "c2": self.penalty, "max_iterations": ITERATIONS})
        for items, labels in zip(X, y, strict=True):
            trainer.append(items, labels)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            trainer.train(str(path))
            self._model = path.read_bytes()
        self.iterations = trainer.logparser.last_iteration["num"]
        return self

    def predict(self, X: list[Items]) -> list[list[str]]:
        tagger = _require().Tagger()
        tagger.open_inmemory(self._model)
        return [tagger.tag(items) for items in X]


def _require() -> Any:
    try:
        return importlib.import_module("pycrfsuite")
    except ImportError as error:
        raise ValueError(
            'treecrf: this comparison needs python-crfsuite; install it by: pip install ".[bench]"'
        ) from error
