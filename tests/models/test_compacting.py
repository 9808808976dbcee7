"""Compact CRFs: the same predictions bit for bit, without what only training needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.models.compacting import COARSE_STEP
from spacy_treecrf.models.crf import CRF
from tests.tiny import new, tiny_data

X, Y = tiny_data(40)
NEW_X, _ = tiny_data(30, seed=1)
UNKNOWN = [[{}], [{"word": "new", "size": -1e300}, {"size": float("nan")}], [{"word": None}]]
KINDS: dict[str, dict[str, Any]] = {
    "separate": {},
    "joint": {"family": "joint", "order": 2},
    "large trees": {"leaves": 80, "family": "joint"},
    "linear": {"rounds": 2},
    "conjugate": {"step": "conjugate", "linear_rounds": 0},
    "trees alone": {"linear_rounds": 0, "rounds": 2, "leaves": 3},
    "untrained": {"rounds": 0},
    "bio": {"constraints": "observed", "predictor": "marginal"},
    **{m: {"missing": m} for m in ("instance_weighting", "surrogate", "imputation", "indicator")},
}


def saved_sizes(model: Any, folder: Path) -> tuple[int, int]:
    model.save(folder / "whole")
    model.save(folder / "compact", compact=True)
    return (folder / "whole").stat().st_size, (folder / "compact").stat().st_size


@pytest.mark.parametrize("kind", KINDS)
def test_compact_model_predicts_the_same_bits(kind: str, tmp_path: Path) -> None:
    model = new(threads=1, **KINDS[kind]).fit(X, Y)
    whole, compact = saved_sizes(model, tmp_path)
    assert compact < whole / 2
    loaded = BoostedCRF.load(tmp_path / "compact")
    for few in (X, NEW_X, UNKNOWN):
        assert loaded.predict(few) == model.predict(few)
        assert loaded.predict_marginals(few) == model.predict_marginals(few)
        assert loaded.predict_nbest(few, n=3) == model.predict_nbest(few, n=3)
    assert (loaded.classes_, loaded.rounds_) == (model.classes_, model.rounds_)
    saved_sizes(loaded, tmp_path)  # a compact model is stored as it is
    assert BoostedCRF.load(tmp_path / "whole").predict_marginals(X) == loaded.predict_marginals(X)


@pytest.mark.parametrize(
    "model",
    [
        BoostedMEMM(rounds=3, threads=1),
        FutureFeatureMEMM(rounds=6, threads=1),
        PerceptronTagger(rounds=2),
        SECOCCRF(base=BoostedCRF(rounds=3, linear_rounds=2), threads=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_packed_and_can_go_on(model: Any, tmp_path: Path) -> None:
    y = Y
    if isinstance(model, FutureFeatureMEMM):  # which are quick for two labels
        y = [["A" if label == "A" else "B" for label in labels] for labels in Y]
    model.fit(X, y)
    whole, compact = saved_sizes(model, tmp_path)
    assert compact < whole
    loaded = type(model).load(tmp_path / "compact")
    assert loaded.predict_marginals(NEW_X) == model.predict_marginals(NEW_X)
    loaded.set_params(warm_start=True).fit(X, y)


def test_compact_model_cannot_learn_and_says_what_to_do(tmp_path: Path) -> None:
    new(threads=1).fit(X, Y).save(tmp_path / "model", compact=True)
    loaded = BoostedCRF.load(tmp_path / "model").set_params(warm_start=True, rounds=9)
    with pytest.raises(ValueError, match=r"^treecrf: this model is compact .*without compact"):
        loaded.fit(X, Y)
    with pytest.raises(ValueError, match=r"^treecrf: this model is compact"):
        loaded.model_.with_labels(["new"])
    assert loaded.model_.with_labels(loaded.classes_) is loaded.model_
    loaded.set_params(warm_start=False).fit(X, Y)
    assert loaded.rounds_ == 9


def test_only_features_with_a_weight_or_a_split_are_kept() -> None:
    whole = new(threads=1, linear_rounds=0, rounds=1, leaves=3).fit(X, Y).model_
    assert isinstance(whole, CRF)
    forest = whole.potentials.forest
    tested = {whole.columns.feature_names[f] for f in forest.feature[forest.kind == 1].tolist()}
    compact = whole.compacted()
    assert set(compact.columns.feature_names) == tested
    assert len(tested) < len(whole.columns.feature_names)
    assert compact.compacted() is compact


def test_small_weights_are_dropped_and_others_rounded() -> None:
    whole = new(threads=1).fit(X, Y).model_
    assert isinstance(whole, CRF)
    before = whole.potentials.linear.categorical
    threshold = float(np.median(np.abs(before)))
    smaller = whole.without_small_weights(threshold)
    after = smaller.potentials.linear.categorical
    np.testing.assert_array_equal(after[np.abs(before) < threshold], 0.0)
    kept = np.abs(before) >= threshold
    np.testing.assert_allclose(after[kept], before[kept], atol=COARSE_STEP / 2)
    for values in (after, smaller.potentials.forest.value):
        np.testing.assert_array_equal(values, np.rint(values / COARSE_STEP) * COARSE_STEP)
        np.testing.assert_array_equal(values, to_grid(values))
    nothing = whole.without_small_weights(1e6).compacted()
    assert not nothing.potentials.linear.categorical.any()
    assert len(nothing.columns.feature_names) <= len(whole.columns.feature_names)
