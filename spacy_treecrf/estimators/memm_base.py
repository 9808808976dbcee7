"""What estimators of locally normalised models share."""

from __future__ import annotations

from typing import Any, ClassVar

from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.models.memm.base import MEMMBase, MEMMBaseRecipe
from spacy_treecrf.models.memm.holding_out import hold_out
from spacy_treecrf.models.memm.settings import LocalSettings
from spacy_treecrf.models.model import SequenceModel


class LocalEstimator(SequenceEstimator):
    _settings_type: ClassVar[type[LocalSettings]]
    _recipe_type: ClassVar[type[MEMMBaseRecipe]]

    def _recipe(self) -> MEMMBaseRecipe:
        return self._recipe_type(self._settings_type.of(self))

    def _continued(self, model: SequenceModel) -> SequenceModel:
        assert isinstance(model, MEMMBase)
        for name in model.settings.KEPT:
            if name != "constraints":  # which bind decoding only
                _refuse_other(name, getattr(self, name), getattr(model.settings, name))
        return super()._continued(model)

    def _hold_out(self, data: Sequences, n_labels: int) -> tuple[Sequences, Sequences | None]:
        settings = self._recipe().settings
        return hold_out(data, settings.dev_share, n_labels, settings.seed)

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        return model.settings.to_dict()


def _refuse_other(name: str, asked: object, found: object) -> None:
    if asked != found:
        raise ValueError(
            f"treecrf: warm_start goes on with a model of {name}={found!r}; set the same, or "
            "warm_start=False"
        )
