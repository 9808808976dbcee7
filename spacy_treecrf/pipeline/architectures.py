"""The models of the pipe: thinc Models around learned ones, made from a config."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from typing import Any

from spacy.util import registry
from thinc.api import Model

from spacy_treecrf.pipeline.shim import ModelShim


def boosted_crf(
    family: str = "auto",
    order: int = 1,
    step: str = "newton",
    gamma: str = "local",
    rounds: int | None = None,
    linear_rounds: int = 5,
    pseudo_rounds: int = 0,
    leaves: int = 64,
    depth: int = 0,
    min_rows: int = 3,
    min_count: int = 2,
    max_bins: int = 255,
    penalty: float = 1.0,
    min_gain: float = 0.0,
    ridge: float = 1.0,
    shrinkage: float = 0.6,
    max_step: float = 3.0,
    trim: float = 0.1,
    subsample: float = 1.0,
    colsample: float = 1.0,
    node_colsample: float = 1.0,
    line_search: bool = False,
    beam: int | None = None,
    unbiased: bool = False,
    unbiased_rate: float = 0.007,
    unbiased_exponent: float = 2.0,
    missing: str = "absent",
    constraints: str | None = None,
    predictor: str = "viterbi",
    threads: int = 0,
    seed: int = 0,
) -> Model[Any, Any]:
    """A boosted CRF; `BoostedCRF` documents the settings, except for two.

    rounds: boosting goes no further than this; None: as far as training goes.
    constraints: None takes those of the task: BILUO for entities and spans, none for tags.
    """
    # numba comes with it: not when spaCy imports this module, through the entry point, for others
    from spacy_treecrf.engine.settings import Settings
    from spacy_treecrf.models.crf import CRFRecipe

    settings = Settings(
        family=family,
        order=order,
        step=step,
        gamma=gamma,
        rounds=rounds,
        linear_rounds=linear_rounds,
        pseudo_rounds=pseudo_rounds,
        leaves=leaves,
        depth=depth,
        min_rows=min_rows,
        min_count=min_count,
        max_bins=max_bins,
        penalty=penalty,
        min_gain=min_gain,
        ridge=ridge,
        shrinkage=shrinkage,
        max_step=max_step,
        trim=trim,
        subsample=subsample,
        colsample=colsample,
        node_colsample=node_colsample,
        line_search=line_search,
        beam=beam,
        unbiased=unbiased,
        unbiased_rate=unbiased_rate,
        unbiased_exponent=unbiased_exponent,
        missing=missing,
        constraints=constraints or "none",
        predictor=predictor,
        threads=threads,
        seed=seed,
    )
    return _wrapped("boosted_crf", CRFRecipe(settings), constraints_of_task=constraints is None)


def perceptron(
    method: str = "averaged",
    order: int = 1,
    rounds: int | None = None,
    voters: int = 2,
    beam: int | None = None,
    min_count: int = 1,
    max_bins: int = 255,
    constraints: str | None = None,
    predictor: str = "viterbi",
    threads: int = 0,
    seed: int = 0,
) -> Model[Any, Any]:
    """An averaged or voted perceptron; `PerceptronTagger` documents the settings, except for two.

    rounds, constraints: as of the boosted CRF.
    """
    from spacy_treecrf.models.perceptron import PerceptronRecipe
    from spacy_treecrf.models.perceptron_settings import PerceptronSettings

    settings = PerceptronSettings(
        method=method,
        order=order,
        rounds=rounds,
        voters=voters,
        beam=beam,
        min_count=min_count,
        max_bins=max_bins,
        constraints=constraints or "none",
        predictor=predictor,
        threads=threads,
        seed=seed,
    )
    recipe = PerceptronRecipe(settings)
    return _wrapped("perceptron", recipe, constraints_of_task=constraints is None)


def secoc(
    base: Model[Any, Any],
    bits: int | None = None,
    history: int | str = 0,
    code: str = "random",
    training: str = "auto",
    cascade: str = "cross_fitted",
    decoding: str = "joint",
    folds: int = 5,
    beam: int | str | None = "auto",
    constraints: str | None = None,
    predictor: str = "viterbi",
    threads: int = 0,
    seed: int = 0,
) -> Model[Any, Any]:
    """Labels as code words, whose bits the base learns; `SECOCCRF` documents the settings.

    base: a boosted CRF or a perceptron. Where columns are learned one by one, a training step of
    the pipe learns `rounds_per_step` of them; else it trains so many rounds.
    constraints: None takes those of the task, where the decoding has transitions.
    """
    from spacy_treecrf.engine.settings import Settings
    from spacy_treecrf.models.perceptron_settings import PerceptronSettings
    from spacy_treecrf.models.secoc import SECOCRecipe
    from spacy_treecrf.models.secoc_settings import SECOCSettings

    shim = base.shims[0] if base.shims else None
    settings = shim.settings if isinstance(shim, ModelShim) else None
    if not isinstance(settings, (Settings, PerceptronSettings)):
        raise ValueError(
            f"treecrf: setting 'base' of spacy_treecrf.SECOC.v1 is the model {base.name!r}; use "
            "spacy_treecrf.BoostedCRF.v1 or spacy_treecrf.Perceptron.v1"
        )
    recipe = SECOCRecipe(
        SECOCSettings(
            bits=bits,
            history=history,
            code=code,
            training=training,
            cascade=cascade,
            decoding=decoding,
            folds=folds,
            beam=beam,
            constraints=constraints or "none",
            predictor=predictor,
            threads=threads,
            seed=seed,
            base=settings,
        )
    )
    return _wrapped("secoc", recipe, constraints_of_task=constraints is None)


registry.architectures("spacy_treecrf.BoostedCRF.v1", func=boosted_crf)
registry.architectures("spacy_treecrf.Perceptron.v1", func=perceptron)
registry.architectures("spacy_treecrf.SECOC.v1", func=secoc)


def memm(
    order: int = 1,
    right_to_left: bool = False,
    search: str = "auto",
    beam_width: int = 8,
    step: str = "newton",
    rounds: int | None = None,
    linear_rounds: int = 5,
    leaves: int = 64,
    depth: int = 0,
    min_rows: int = 3,
    min_count: int = 2,
    max_bins: int = 255,
    penalty: float = 1.0,
    min_gain: float = 0.0,
    ridge: float = 1.0,
    shrinkage: float = 0.6,
    max_step: float = 3.0,
    trim: float = 0.1,
    subsample: float = 1.0,
    colsample: float = 1.0,
    node_colsample: float = 1.0,
    line_search: bool = False,
    constraints: str | None = None,
    predictor: str = "viterbi",
    threads: int = 0,
    seed: int = 0,
) -> Model[Any, Any]:
    """A MEMM by boosted trees; `BoostedMEMM` documents the settings, two as in boosted_crf.

    Nothing is held out: spaCy evaluates by itself.
    """
    from spacy_treecrf.models.local_settings import MEMMSettings
    from spacy_treecrf.models.memm import MEMMRecipe

    settings = MEMMSettings(
        order=order,
        right_to_left=right_to_left,
        search=search,
        beam_width=beam_width,
        step=step,
        rounds=rounds,
        linear_rounds=linear_rounds,
        leaves=leaves,
        depth=depth,
        min_rows=min_rows,
        min_count=min_count,
        max_bins=max_bins,
        penalty=penalty,
        min_gain=min_gain,
        ridge=ridge,
        shrinkage=shrinkage,
        max_step=max_step,
        trim=trim,
        subsample=subsample,
        colsample=colsample,
        node_colsample=node_colsample,
        line_search=line_search,
        constraints=constraints or "none",
        predictor=predictor,
        threads=threads,
        seed=seed,
    )
    return _wrapped("memm", MEMMRecipe(settings), constraints_of_task=constraints is None)


def future_feature_memm(
    order: int = 1,
    bag: int | None = None,
    right_to_left: bool = False,
    search: str = "auto",
    beam_width: int = 8,
    detector_start: float = -5.0,
    detector_rounds: int = 10,
    max_alpha: float = 40.0,
    max_beta: float = 1e4,
    max_eta: float = 10.0,
    step: str = "gradient",
    rounds: int | None = None,
    leaves: int = 10,
    depth: int = 0,
    min_rows: int = 3,
    min_count: int = 2,
    max_bins: int = 255,
    penalty: float = 1.0,
    min_gain: float = 0.0,
    max_step: float = 3.0,
    trim: float = 0.0,
    subsample: float = 1.0,
    colsample: float = 1.0,
    node_colsample: float = 1.0,
    constraints: str | None = None,
    predictor: str = "viterbi",
    patience: int = 3,
    dev_share: float = 0.2,
    threads: int = 0,
    seed: int = 0,
) -> Model[Any, Any]:
    """A MEMM with future features; `FutureFeatureMEMM` documents the settings, two as above.

    dev_share: of each batch, held out to decide when detectors are learned. A step of few docs
    leaves little to hold out: train it on the whole corpus (spacy_treecrf.WholeCorpus.v1).
    """
    from spacy_treecrf.models.future_features import FutureRecipe
    from spacy_treecrf.models.local_settings import FutureSettings

    settings = FutureSettings(
        order=order,
        bag=bag,
        right_to_left=right_to_left,
        search=search,
        beam_width=beam_width,
        detector_start=detector_start,
        detector_rounds=detector_rounds,
        max_alpha=max_alpha,
        max_beta=max_beta,
        max_eta=max_eta,
        step=step,
        rounds=rounds,
        leaves=leaves,
        depth=depth,
        min_rows=min_rows,
        min_count=min_count,
        max_bins=max_bins,
        penalty=penalty,
        min_gain=min_gain,
        max_step=max_step,
        trim=trim,
        subsample=subsample,
        colsample=colsample,
        node_colsample=node_colsample,
        constraints=constraints or "none",
        predictor=predictor,
        patience=patience,
        dev_share=dev_share,
        threads=threads,
        seed=seed,
    )
    name = "future_feature_memm"
    return _wrapped(name, FutureRecipe(settings), constraints_of_task=constraints is None)


registry.architectures("spacy_treecrf.MEMM.v1", func=memm)
registry.architectures("spacy_treecrf.FutureFeatureMEMM.v1", func=future_feature_memm)


def _wrapped(name: str, recipe: Any, constraints_of_task: bool) -> Model[Any, Any]:
    return Model(name, _forward, shims=[ModelShim(recipe, constraints_of_task)])


def _forward(model: Model[Any, Any], sequences: Any, is_train: bool) -> tuple[Any, Any]:
    """Sequences in, scores (n_rows, n_contexts, n_labels) out."""
    return model.shims[0](sequences, is_train)
