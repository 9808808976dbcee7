"""A learned model as thinc sees it: an opaque part of its own that can be stored as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from thinc.api import Shim

if TYPE_CHECKING:  # numba is loaded when a model is made or read, not before
    from spacy_treecrf.engine.sequences import Sequences
    from spacy_treecrf.features.extractor import FeatureExtractor
    from spacy_treecrf.models.model import ModelSettings, Recipe, SequenceModel


class ModelShim(Shim):
    """What the pipe has learned: the labels, the model, and what its features loaded or learned.

    recipe: how models are made here. learned: None until the pipe is initialized. labels: those of
    sequences (BILUO where the task has spans); equal to the model's as soon as there is one.
    """

    def __init__(self, recipe: Recipe, constraints_of_task: bool) -> None:
        super().__init__(None)
        self.recipe = recipe
        self.constraints_of_task = constraints_of_task
        self.learned: SequenceModel | None = None
        self.labels: list[str] = []
        self.features: FeatureExtractor | None = None

    def __call__(self, inputs: Sequences, is_train: bool) -> tuple[Any, Callable[[Any], Any]]:
        from spacy_treecrf.engine.threads import Workers

        with Workers(self.settings.threads) as workers:
            return self.trained.scores(inputs, workers), _no_backprop

    @property
    def settings(self) -> ModelSettings:
        return self.recipe.settings

    @property
    def trained(self) -> SequenceModel:
        if self.learned is None:
            raise ValueError(
                "treecrf: the pipe has learned nothing yet; call nlp.initialize with training "
                "examples, or load a trained pipeline"
            )
        return self.learned

    def add_labels(self, labels: Sequence[str]) -> None:
        labels = list(dict.fromkeys([*self.labels, *labels]))
        if self.learned is not None:
            self.learned = self.learned.with_labels(labels)
        self.labels = labels

    def to_bytes(self) -> bytes:
        from spacy_treecrf.models import storage

        state: dict[str, Any] = {"kind": "pipe", "labels": self.labels}
        state["model"] = {} if self.learned is None else self.learned.to_state()
        state["features"] = {} if self.features is None else self.features.to_state()
        return storage.dump(state)

    def from_bytes(self, data: bytes) -> ModelShim:
        """Take over a stored model; everything is checked before anything is changed."""
        from spacy_treecrf.engine.fields import Fields
        from spacy_treecrf.models import storage
        from spacy_treecrf.models.files import model_from_state

        fields = Fields(storage.parse(data, source="the treecrf model"))
        fields.string("kind", choices=("pipe",))
        labels = fields.strings("labels", unique=True)
        model_state, features_state = fields.table("model"), fields.table("features")
        fields.done()
        learned = model_from_state(model_state) if model_state else None
        if learned is not None and learned.labels != labels:
            fields.fail("labels", "those of the model", "others")
        if self.features is not None and (features_state or learned is not None):
            self.features.from_state(features_state)
        self.learned, self.labels = learned, labels
        return self

    def copy(self) -> ModelShim:
        """A shim of its own with the same model: models never change, they are replaced."""
        twin = ModelShim(self.recipe, self.constraints_of_task)
        twin.learned, twin.labels, twin.features = self.learned, list(self.labels), self.features
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelShim:
        twin = self.copy()
        twin.features = deepcopy(self.features, memo)  # those of the pipe that is copied with it
        return twin

    def finish_update(self, optimizer: Any) -> None:
        """Nothing to do: the pipe trains in its own finish_update."""

    def to_device(self, device_type: str, device_id: int) -> None:
        """Nothing to move: models stay on the CPU."""


def _no_backprop(gradient: Any) -> Any:
    raise ValueError(
        "treecrf: the model has no gradient to pass on; train the pipe with nlp.update, and let no "
        "other component listen to it"
    )
