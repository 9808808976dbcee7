"""A learned model as thinc sees it: an opaque part that can be stored as bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, lru_cache
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import ref

from thinc.api import Shim

if TYPE_CHECKING:  # numba is loaded when a model is made or read, not before
    from spacy_treecrf.engine.sequences import Sequences
    from spacy_treecrf.features.extractor import FeatureExtractor
    from spacy_treecrf.models.model import ModelSettings, Recipe, SequenceModel
    from spacy_treecrf.models.predictor import Predictor


@cache
def _parts_of_predictors() -> tuple[Any, Any, Any]:
    """Predictors, their workers, and what finds their rules, loaded once, and numba with them."""
    from spacy_treecrf.engine.threads import Workers
    from spacy_treecrf.models.predictor import Predictor
    from spacy_treecrf.models.ruled import rules_of

    return Predictor, Workers, rules_of


class ModelShim(Shim):
    """What the pipe has learned: the labels, the model, and what its features loaded or learned.

    recipe: How models are made here.
    learned: The model; None until the pipe is initialized.
    known: The same without what is owed.
    owed: Training on examples that were gathered; done when someone asks for the model.
    labels: The labels of sequences, BILUO where the task has spans; equal to the model's labels as
        soon as there is a model.
    """

    def __init__(self, recipe: Recipe, constraints_of_task: bool) -> None:
        super().__init__(None)
        self.recipe = recipe
        self.constraints_of_task = constraints_of_task
        self.known: SequenceModel | None = None
        self.owed: Callable[[], None] | None = None
        self._turn = [True]
        self._settled: tuple[int, SequenceModel | None] | None = None
        self.labels: list[str] = []
        self.features: FeatureExtractor | None = None

    def __call__(self, inputs: Sequences, is_train: bool) -> tuple[Any, Callable[[Any], Any]]:
        from spacy_treecrf.engine.threads import Workers

        with Workers(self.settings.threads) as workers:
            return self.trained.scores(inputs, workers), _no_backprop

    @property
    def learned(self) -> SequenceModel | None:
        settled = self._settled
        if settled is not None and settled[0] != get_ident():
            return settled[1]
        if self.owed is not None:
            self._settle()
        return self.known

    @learned.setter
    def learned(self, model: SequenceModel | None) -> None:
        self.known = model

    def owe(self, train: Callable[[], None]) -> None:
        """Let training wait until someone asks for the model, or until the process forks."""
        self.owed = train
        _note_owing(self)

    def _settle(self) -> None:
        """Do the training that is owed; one thread does, others have the model of before."""
        try:
            self._turn.pop()  # a list, whose methods no other thread interrupts
        except IndexError:
            return
        try:
            train, self.owed = self.owed, None
            if train is not None:
                train()
        finally:
            self._turn.append(True)

    @contextmanager
    def settling(self) -> Iterator[SequenceModel | None]:
        """Within it, this thread changes the model; others have the one of before, which it gives.

        No lock, which another thread could hold while this one forks.
        """
        before = self.known
        self._settled = get_ident(), before
        try:
            yield before
        finally:
            self._settled = None

    @contextmanager
    def owing_nothing(self) -> Iterator[None]:
        """Within it, the model is as it is: what is owed waits."""
        owed, self.owed = self.owed, None
        try:
            yield
        finally:
            self.owed = owed

    def new_predictor(self) -> Predictor:
        """A predictor of the model, whose workers are to be closed."""
        new, workers, rules_of = _parts_of_predictors()
        settings = self.settings
        own: Predictor = new(
            self.trained, workers(settings.threads), settings.predictor, rules_of(settings)
        )
        return own

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
        from spacy_treecrf.storage import container

        state: dict[str, Any] = {"kind": "pipe", "labels": self.labels}
        state["model"] = {} if self.learned is None else self.learned.to_state()
        state["features"] = {} if self.features is None else self.features.to_state()
        return container.dump(state, small=self.learned is not None and self.learned.is_compact)

    def from_bytes(self, data: bytes) -> ModelShim:
        """Take over a stored model; everything is checked before anything is changed."""
        from spacy_treecrf.models.model_kinds import model_from_state
        from spacy_treecrf.storage import container
        from spacy_treecrf.storage.state_reader import StateReader

        reader = StateReader(container.parse(data, source="the treecrf model"))
        reader.string("kind", choices=("pipe",))
        labels = reader.strings("labels", unique=True)
        model_state, features_state = reader.table("model"), reader.table("features")
        reader.done()
        learned = model_from_state(model_state) if model_state else None
        if learned is not None:
            _import_what_predicts()
        if learned is not None and learned.labels != labels:
            reader.fail("labels", "those of the model", "others")
        if self.features is not None and (features_state or learned is not None):
            self.features.from_state(features_state)
        self.learned, self.labels = learned, labels
        return self

    def copy(self) -> ModelShim:
        """Another shim with the same model: models never change, they are replaced."""
        twin = ModelShim(self.recipe, self.constraints_of_task)
        twin.learned, twin.labels, twin.features = self.learned, list(self.labels), self.features
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelShim:
        twin = self.copy()
        # With the memo, this is the copy that the copied pipe has.
        twin.features = deepcopy(self.features, memo)
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


# Shims that may owe training. A child that is forked would do it for itself alone, and each anew,
# as with nlp.pipe(n_process=2); so it is done before.
_owing: dict[int, ref[ModelShim]] = {}


def _note_owing(shim: ModelShim) -> None:
    _settle_before_forks()
    for key, known in list(_owing.items()):
        if known() is None:
            del _owing[key]
    _owing[id(shim)] = ref(shim)


@lru_cache
def _settle_before_forks() -> None:
    """See to it from now on.

    Not on import: of what is to be done before a fork, the last registered comes first, and
    training must come before locks are taken, as those of the compiler.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=_settle_all)


def _settle_all() -> None:
    for known in list(_owing.values()):
        shim = known()
        if shim is not None and shim.owed is not None:
            _ = shim.learned


# What the first prediction would import. A thread that does so while another one forks would leave
# the child with modules that are never finished, and it would wait for them for ever.
_PREDICTING = (
    "models.predictor",
    "features.kernels.bins",
    "features.kernels.capital_runs",
    "features.kernels.document_keys",
    "features.kernels.key_table",
    "features.kernels.new_words",
    "features.kernels.phrases",
    "features.kernels.repeats",
    "features.kernels.small_batches",
    "features.kernels.text_values",
    "features.kernels.windows",
)


def _import_what_predicts() -> None:
    for name in _PREDICTING:
        import_module(f"spacy_treecrf.{name}")
