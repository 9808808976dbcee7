"""Any stored model, by its kind."""

from __future__ import annotations

from typing import Any

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.perceptron import Perceptron
from spacy_treecrf.models.secoc import SECOC

KINDS: dict[str, type[SequenceModel]] = {"crf": CRF, "perceptron": Perceptron, "secoc": SECOC}


def model_from_state(state: dict[str, Any]) -> SequenceModel:
    kind = Fields(state).string("kind", choices=tuple(KINDS))
    return KINDS[kind].from_state(state)
