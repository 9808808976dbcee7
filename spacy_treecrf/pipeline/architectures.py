"""The models of the pipe: thinc Models around learned ones, made from a config."""

# No `from __future__ import annotations` here: configs are checked against the types below.
# Recipes are imported when a model is made: numba comes with them, and spaCy imports this module,
# through the entry points, also for pipelines that have nothing to do with it.
import functools
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, get_type_hints

from spacy.util import registry
from thinc.api import Model

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.setting import SettingsBase
from spacy_treecrf.models.memm.settings import FutureSettings, MEMMSettings
from spacy_treecrf.models.perceptron_settings import PerceptronSettings
from spacy_treecrf.models.secoc.settings import SECOCSettings
from spacy_treecrf.pipeline.shim import ModelShim

Architecture = Callable[..., Model[Any, Any]]
# spaCy evaluates and keeps the best step by itself, so most models hold nothing out.
HELD_OUT = ("patience", "monitor", "dev_share")
# Of a pipe whose config names no model; its settings are those of the ready config of entities.
DEFAULT_ARCHITECTURE = "spacy_treecrf.BoostedCRF.v2"
FOR_ENTITIES = {"linear_rounds": 20, "shrinkage": 0.3}
NO_OTHERS: Mapping[str, Any] = {}


def _architecture(
    name: str,
    settings_type: type[SettingsBase],
    without: tuple[str, ...] = (),
    own_defaults: Mapping[str, Any] = NO_OTHERS,
    **others: Any,
) -> Callable[[Callable[..., Any]], Architecture]:
    """Register an architecture whose arguments are settings; the function makes their recipe.

    Configs are checked against, and filled from, the signature: all settings of the type but
    those in `without`, with their types and defaults, and `others`, a type for each name.
    own_defaults: Those that differ from the settings' own.
    constraints: None, the default, takes those of the task: BILUO for entities and spans, none
    for tags.
    """
    types = {**get_type_hints(settings_type), "constraints": str | None, **others}
    required = dict.fromkeys(others, Parameter.empty)
    defaults = {**settings_type.defaults(), "constraints": None, **own_defaults, **required}
    names = [*others, *(n for n in settings_type.names() if n not in (*without, *others))]
    parameters = [
        Parameter(n, Parameter.KEYWORD_ONLY, default=defaults[n], annotation=types[n])
        for n in names
    ]

    def register(make_recipe: Callable[..., Any]) -> Architecture:
        @functools.wraps(make_recipe)
        def architecture(**values: Any) -> Model[Any, Any]:
            values = {**own_defaults, **values}
            constraints = values.pop("constraints", None)
            recipe = make_recipe(**values, constraints=constraints or "none")
            shim = ModelShim(recipe, constraints_of_task=constraints is None)
            return Model(make_recipe.__name__, _forward, shims=[shim])

        architecture.__annotations__ = {n: types[n] for n in names} | {"return": Model[Any, Any]}
        architecture.__signature__ = Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=Model[Any, Any]
        )
        registry.architectures(f"spacy_treecrf.{name}", func=architecture)
        return architecture

    return register


@_architecture("BoostedCRF.v1", Settings, without=HELD_OUT)
def boosted_crf(**settings: Any) -> Any:
    """A boosted CRF; `BoostedCRF` documents the settings, except for two.

    rounds: boosting goes no further than this; None: as far as training goes, or, where batches are
        small parts of the corpus, so far as the estimator would go.
    constraints: None takes those of the task: BILUO for entities and spans, none for tags.
    """
    from spacy_treecrf.models.crf import CRFRecipe

    return CRFRecipe(Settings(**settings))


@_architecture("BoostedCRF.v2", Settings, without=HELD_OUT, own_defaults=FOR_ENTITIES)
def boosted_crf_v2(**settings: Any) -> Any:
    """The model of version 1, but for two defaults: linear_rounds = 20 and shrinkage = 0.3.

    A pipe has it whose config names no model, so that it learns about what the ready config of
    entities does.
    """
    from spacy_treecrf.models.crf import CRFRecipe

    return CRFRecipe(Settings(**settings))


@_architecture("Perceptron.v1", PerceptronSettings, without=HELD_OUT)
def perceptron(**settings: Any) -> Any:
    """An averaged or voted perceptron; `PerceptronTagger` documents the settings, except for two.

    rounds, constraints: as of the boosted CRF.
    """
    from spacy_treecrf.models.perceptron import PerceptronRecipe

    return PerceptronRecipe(PerceptronSettings(**settings))


@_architecture("MEMM.v1", MEMMSettings, without=HELD_OUT)
def memm(**settings: Any) -> Any:
    """A MEMM by boosted trees; `BoostedMEMM` documents the settings, two as in boosted_crf."""
    from spacy_treecrf.models.memm.memm import MEMMRecipe

    return MEMMRecipe(MEMMSettings(**settings))


@_architecture("FutureFeatureMEMM.v1", FutureSettings)
def future_feature_memm(**settings: Any) -> Any:
    """A MEMM with future features; `FutureFeatureMEMM` documents the settings, two as above.

    dev_share: of each batch, held out to decide when detectors are learned. A step of few docs
    leaves little to hold out: train it on the whole corpus (spacy_treecrf.WholeCorpus.v1).
    """
    from spacy_treecrf.models.memm.future_features import FutureRecipe

    return FutureRecipe(FutureSettings(**settings))


@_architecture("SECOC.v1", SECOCSettings, base=Model[Any, Any])
def secoc(base: Model[Any, Any], **settings: Any) -> Any:
    """Labels as code words, whose bits the base learns; `SECOCCRF` documents the settings.

    base: a boosted CRF or a perceptron. Where bits are learned one by one, a training step of
    the pipe learns `rounds_per_step` of them; else it trains so many rounds.
    constraints: None takes those of the task, where the decoding has transitions.
    """
    from spacy_treecrf.models.secoc.recipe import SECOCRecipe

    shim = base.shims[0] if base.shims else None
    learner = shim.settings if isinstance(shim, ModelShim) else None
    if not isinstance(learner, (Settings, PerceptronSettings)):
        raise ValueError(
            f"treecrf: setting 'base' of spacy_treecrf.SECOC.v1 is the model {base.name!r}; use "
            "spacy_treecrf.BoostedCRF.v1 or spacy_treecrf.Perceptron.v1"
        )
    return SECOCRecipe(SECOCSettings(**settings, base=learner))


def _forward(model: Model[Any, Any], sequences: Any, is_train: bool) -> tuple[Any, Any]:
    """Sequences in, scores (n_rows, n_contexts, n_labels) out."""
    return model.shims[0](sequences, is_train)
