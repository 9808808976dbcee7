"""Any stored model, by its kind."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.models.model import SequenceModel

# Module and class: imported when a model of the kind is read, because each takes its time.
KINDS = {
    "crf": ("crf", "CRF"),
    "memm": ("memm", "MEMM"),
    "future_memm": ("future_features", "FutureMEMM"),
    "perceptron": ("perceptron", "Perceptron"),
    "secoc": ("secoc", "SECOC"),
}


def model_from_state(state: dict[str, Any]) -> SequenceModel:
    module, name = KINDS[Fields(state).string("kind", choices=tuple(KINDS))]
    model: type[SequenceModel] = getattr(import_module(f"spacy_treecrf.models.{module}"), name)
    return model.from_state(state)
