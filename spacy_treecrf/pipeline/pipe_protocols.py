"""What is used of a pipe by the modules that the pipe itself calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_treecrf.pipeline.shim import ModelShim
from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.engine.sequences import Sequences
    from spacy_treecrf.models.predictor import Predictor, ScoredSequences
    from spacy_treecrf.pipeline.learning import Learner


class ScoringPipe(Protocol):
    """A pipe that scores docs, as explanations use it."""

    task: Task
    expected_f1: float

    @property
    def shim(self) -> ModelShim: ...
    def encode(self, docs: Sequence[Doc]) -> Sequences: ...
    def agreed(self, docs: Sequence[Doc], scored: ScoredSequences) -> ScoredSequences: ...


class LearningPipe(ScoringPipe, Protocol):
    """A pipe that also learns from examples, as calibration and scores use it."""

    name: str
    vocab: Vocab
    sequence: str
    rounds_per_step: int
    cfg: dict[str, Any]
    scorer: Callable[..., Any] | None

    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def learner(self) -> Learner: ...
    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, labels: Sequence[str] | None = None
    ) -> Any: ...
    def forget_examples(self) -> None: ...
    def predictor(self) -> AbstractContextManager[Predictor]: ...
    def scored(self, docs: Sequence[Doc]) -> Iterator[ScoredSequences]: ...
