"""The boosted CRF as thinc sees it: an opaque part of a model that can be stored as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from thinc.api import Shim

if TYPE_CHECKING:  # numba is loaded when a model is made or read, not before
    from spacy_treecrf.engine.sequences import Sequences
    from spacy_treecrf.engine.settings import Settings
    from spacy_treecrf.features.extractor import FeatureExtractor
    from spacy_treecrf.models.crf import CRF


class CRFShim(Shim):
    """What the pipe has learned: the labels, the model, and what its features loaded or learned.

    crf: None until the pipe is initialized. labels: those of sequences (BILUO where the task has
    spans); equal to the model's as soon as there is one.
    """

    def __init__(self, settings: Settings, constraints_of_task: bool) -> None:
        super().__init__(None)
        self.settings = settings
        self.constraints_of_task = constraints_of_task
        self.crf: CRF | None = None
        self.labels: list[str] = []
        self.features: FeatureExtractor | None = None

    def __call__(self, inputs: Sequences, is_train: bool) -> tuple[Any, Callable[[Any], Any]]:
        from spacy_treecrf.engine.threads import Workers
        from spacy_treecrf.models.crf import Predictor

        with Workers(self.settings.threads) as workers:
            return Predictor(self.trained, workers).scores(inputs), _no_backprop

    @property
    def trained(self) -> CRF:
        if self.crf is None:
            raise ValueError(
                "treecrf: the pipe has learned nothing yet; call nlp.initialize with training "
                "examples, or load a trained pipeline"
            )
        return self.crf

    def add_labels(self, labels: Sequence[str]) -> None:
        labels = list(dict.fromkeys([*self.labels, *labels]))
        if self.crf is not None:
            from spacy_treecrf.models.new_labels import add_labels

            self.crf = add_labels(self.crf, labels)
        self.labels = labels

    def to_bytes(self) -> bytes:
        from spacy_treecrf.models import storage

        state: dict[str, Any] = {"kind": "pipe", "labels": self.labels}
        state["crf"] = {} if self.crf is None else self.crf.to_state()
        state["features"] = {} if self.features is None else self.features.to_state()
        return storage.dump(state)

    def from_bytes(self, data: bytes) -> CRFShim:
        """Take over a stored model; everything is checked before anything is changed."""
        from spacy_treecrf.engine.fields import Fields
        from spacy_treecrf.models import storage
        from spacy_treecrf.models.crf import CRF

        fields = Fields(storage.parse(data, source="the treecrf model"))
        fields.string("kind", choices=("pipe",))
        labels = fields.strings("labels", unique=True)
        crf_state, features_state = fields.table("crf"), fields.table("features")
        fields.done()
        crf = CRF.from_state(crf_state) if crf_state else None
        if crf is not None and crf.labels != labels:
            fields.fail("labels", "those of the model", "others")
        if self.features is not None and (features_state or crf is not None):
            self.features.from_state(features_state)
        self.crf, self.labels = crf, labels
        return self

    def copy(self) -> CRFShim:
        """A shim of its own with the same model: models never change, they are replaced."""
        twin = CRFShim(self.settings, self.constraints_of_task)
        twin.crf, twin.labels, twin.features = self.crf, list(self.labels), self.features
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> CRFShim:
        twin = self.copy()
        twin.features = deepcopy(self.features, memo)  # those of the pipe that is copied with it
        return twin

    def finish_update(self, optimizer: Any) -> None:
        """Nothing to do: the pipe boosts in its own finish_update."""

    def to_device(self, device_type: str, device_id: int) -> None:
        """Nothing to move: trees stay on the CPU."""


def _no_backprop(gradient: Any) -> Any:
    raise ValueError(
        "treecrf: trees have no gradient to pass on; train the pipe with nlp.update, and let no "
        "other component listen to it"
    )
