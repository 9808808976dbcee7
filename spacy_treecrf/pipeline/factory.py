"""The factory that spaCy finds through our entry points; every spaCy pipeline imports it: light."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from collections.abc import Callable
from typing import Any

from spacy.language import Language
from thinc.api import Model

from spacy_treecrf.pipeline.architectures import DEFAULT_ARCHITECTURE
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.pipeline.tasks import Task, make_task

DEFAULT_CONFIG = {
    "task": "ents",
    "model": {"@architectures": DEFAULT_ARCHITECTURE},
    "features": {"@misc": "spacy_treecrf.TokenFeatures.v2"},
    "sequence": None,
    "rounds_per_step": 5,
    "probabilities": True,
    "min_prob": 0.0,
    "expected_f1": 0.0,
    "grow_features": False,
    "agreement": None,
    "parallels": None,
    "scorer": None,
}


# Many parameters: spaCy reads them from the block of a config.
@Language.factory(
    "treecrf",
    default_config=DEFAULT_CONFIG,
    default_score_weights={
        "treecrf_score": 1.0,
        "treecrf_nll": None,
        "treecrf_ece": None,
        "ents_f": None,
        "ents_p": None,
        "ents_r": None,
        "ents_per_type": None,
        "tag_acc": None,
        "pos_acc": None,
    },
)
def make_treecrf(
    nlp: Language,
    name: str,
    task: str | Task,
    model: Model[Any, Any],
    features: Any,
    sequence: str | None,
    rounds_per_step: int,
    probabilities: bool,
    min_prob: float,
    expected_f1: float,
    grow_features: bool,
    agreement: float | None,
    parallels: float | None,
    scorer: Callable[..., Any] | None,
) -> TreeCRF:
    return TreeCRF(
        nlp.vocab,
        model,
        name,
        task=make_task(task),
        features=features,
        sequence=sequence,
        rounds_per_step=rounds_per_step,
        probabilities=probabilities,
        min_prob=min_prob,
        expected_f1=expected_f1,
        grow_features=grow_features,
        agreement=agreement,
        parallels=parallels,
        scorer=scorer,
    )
