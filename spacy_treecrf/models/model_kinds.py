"""The kinds of models by name, and the reading of a stored model of any kind."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.storage.state_reader import StateReader

# The module and class of each kind; modules are imported when needed, as each import takes time.
KINDS = {
    "crf": ("crf", "CRF"),
    "memm": ("memm", "MEMM"),
    "future_memm": ("future_features", "FutureMEMM"),
    "perceptron": ("perceptron", "Perceptron"),
    "secoc": ("secoc", "SECOC"),
}


def model_from_state(state: dict[str, Any]) -> SequenceModel:
    module, name = KINDS[StateReader(state).string("kind", choices=tuple(KINDS))]
    model: type[SequenceModel] = getattr(import_module(f"spacy_treecrf.models.{module}"), name)
    return model.from_state(state)
