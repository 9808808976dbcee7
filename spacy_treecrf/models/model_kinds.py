"""The kinds of models by name, and the reading of a stored model of any kind."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.storage.state_reader import StateReader

# The module and class of each kind; modules are imported when needed, as each import takes time.
KINDS = {
    "crf": ("crf", "CRF"),
    "memm": ("memm.memm", "MEMM"),
    "future_memm": ("memm.future_features", "FutureMEMM"),
    "perceptron": ("perceptron", "Perceptron"),
    "secoc": ("secoc.recipe", "SECOC"),
}


# Of the files of estimators: whether labels, which models have as texts, were integers.
INTEGER_LABELS = "integer_labels"


def model_from_state(state: dict[str, Any]) -> SequenceModel:
    """The model that a state holds, whatever its kind."""
    state = {name: value for name, value in state.items() if name != INTEGER_LABELS}
    module, name = KINDS[StateReader(state).string("kind", choices=tuple(KINDS))]
    model: type[SequenceModel] = getattr(import_module(f"spacy_treecrf.models.{module}"), name)
    return model.from_state(state)
