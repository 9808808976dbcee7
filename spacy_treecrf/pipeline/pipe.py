"""The pipe: nlp.add_pipe("treecrf")."""

# No `from __future__ import annotations` here: spaCy checks [initialize] against the types below.
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from spacy_treecrf.pipeline.calibration import expected_calibration_error
from spacy_treecrf.pipeline.confidence import (
    register_extensions,
    set_span_probabilities,
    set_token_probabilities,
)
from spacy_treecrf.pipeline.label_names import names_of, sequence_labels
from spacy_treecrf.pipeline.presets import allowed_by, rule_out
from spacy_treecrf.pipeline.sequencing import check_mode, cut, starts_of
from spacy_treecrf.pipeline.shim import ModelShim
from spacy_treecrf.pipeline.tasks.biluo import (
    OUTSIDE,
    spans_of,
    well_formed,
    without_cut_spans,
    write_span,
)
from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when the pipe learns or predicts, not before
    from spacy_treecrf.engine.sequences import Sequences
    from spacy_treecrf.features.extractor import FeatureExtractor
    from spacy_treecrf.pipeline.learning import Learner


@dataclass(frozen=True)
class Prediction:
    """What the model says of one doc."""

    labels: list[str]  # of its tokens
    probabilities: npt.NDArray[np.float64] | None  # of these labels; None: not wanted
    span_probabilities: list[float] | None  # of the spans of these labels, in their order


class TreeCRF(TrainablePipe):  # type: ignore[misc]
    """Labels the tokens of docs with a gradient-tree-boosted CRF.

    task: which annotation the labels are. features: what the model sees of a token.
    sequence: "doc", "sentence", or "auto" (sentences where a doc has boundaries).
    rounds_per_step: boosting rounds for each training step.
    probabilities: set token._.treecrf_prob and span._.treecrf_prob.
    min_prob: spans that are less probable than this are not set.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Any, Any],
        name: str = "treecrf",
        *,
        task: Task,
        features: "FeatureExtractor",
        sequence: str = "auto",
        rounds_per_step: int = 5,
        probabilities: bool = True,
        min_prob: float = 0.0,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        if rounds_per_step < 1:
            raise ValueError(
                f"treecrf: setting 'rounds_per_step' is {rounds_per_step}; use 1 or more"
            )
        if not 0.0 <= min_prob <= 1.0:
            raise ValueError(f"treecrf: setting 'min_prob' is {min_prob}; use 0 to 1")
        self.vocab = vocab
        self.model = model
        self.name = name
        self.task = task
        self.features = features
        self.sequence = check_mode(sequence)
        self.rounds_per_step = rounds_per_step
        self.probabilities = probabilities
        self.min_prob = min_prob
        self.scorer = scorer
        self.cfg: dict[str, Any] = {}
        self._learner: Learner | None = None
        self.shim.features = features
        if probabilities:
            register_extensions()

    @property
    def shim(self) -> ModelShim:
        return cast(ModelShim, self.model.shims[0])

    # -- labels

    @property
    def labels(self) -> tuple[str, ...]:
        """As users name them: entity types for entities, tags for tags."""
        return tuple(names_of(self.task, self.shim.labels))

    @property
    def label_data(self) -> list[str]:
        return list(self.labels)

    @property
    def sequence_labels(self) -> tuple[str, ...]:
        """As the model has them: the columns of `marginals`."""
        return tuple(self.shim.labels)

    def add_label(self, label: str) -> int:
        """A label that a trained pipe may still learn. Returns 1 if it is new, 0 if not."""
        _check_label(label)
        if label in self.labels:
            return 0
        self.shim.add_labels(sequence_labels(self.task, [label]))
        self.vocab.strings.add(label)
        return 1

    # -- training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Learn labels and features; the examples should be the whole training data."""
        validate_get_examples(get_examples, "TreeCRF.initialize")
        examples = list(get_examples())
        if labels is None:
            found = {name for e in examples for name in names_of(self.task, self.task.gold(e))}
            labels = sorted(found)
        for label in labels:
            _check_label(label)
        self.shim.learned = None
        for label in labels:
            self.add_label(label)
        if not self.labels:
            raise ValueError(
                f"treecrf: the pipe {self.name!r} has no labels, because no example is annotated "
                f"for its task ({type(self.task).__name__}); pass annotated examples, call "
                "add_label, or give labels in [initialize.components]"
            )
        self.features.check(self.vocab)
        self._learner = None
        self.learner.begin(examples)

    @property
    def learner(self) -> "Learner":
        """Made when first needed: a pipe that only predicts has none."""
        if self._learner is None:
            from spacy_treecrf.pipeline.learning import Learner

            self._learner = Learner(self.shim, self.features, self.task, self.sequence)
        return self._learner

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Take in examples; `finish_update` (or an optimizer given here) boosts on them.

        The loss is -log P(annotation) per token, before that.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "TreeCRF.update")
        losses[self.name] += self.learner.add(examples)
        if sgd:  # nlp.update passes None or False, and calls finish_update itself
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer | None) -> None:
        """Boost `rounds_per_step` rounds on the examples of the updates since the last call."""
        self.learner.step(self.rounds_per_step)

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, float]:
        """The loss of `update` and no gradient: trees are not trained by one."""
        return self._likelihood(list(examples))["treecrf_nll"] or 0.0, 0.0

    # -- prediction

    def predict(self, docs: Iterable[Doc]) -> list[Prediction]:
        from spacy_treecrf.engine.boosting import predict_labels
        from spacy_treecrf.engine.threads import Workers

        docs = list(docs)
        data = self._encode(docs)
        model, names = self.shim.trained, self.shim.labels
        scores = self.model.predict(data)
        rows, kept = self._presets(docs)
        rule_out(scores, rows, kept)
        predictor = self.shim.settings.predictor
        found = None
        with Workers(self.shim.settings.threads) as workers:
            if predictor == "viterbi":
                found = model.search(data, workers, allowed_by(rows, kept, len(scores), len(names)))
            if found is not None:
                ids = found.labels[:, 0]
            else:
                ids = predict_labels(scores, data, model.chain, predictor, workers)
        labels = [names[i] for i in ids.tolist()]
        exact = model.settings.constraints == "biluo" and predictor == "viterbi" and found is None
        if self.task.constraints == "biluo" and not exact:
            labels = well_formed(labels, data.offsets.tolist())
            ids = self.learner.label_ids([labels])
        bounds = list(accumulate(map(len, docs), initial=0))
        by_doc = [labels[a:b] for a, b in pairwise(bounds)]
        if not self.probabilities and not self.min_prob:
            return [Prediction(own, None, None) for own in by_doc]
        nodes = self._marginals(scores, data)
        chosen = nodes[np.arange(len(ids)), ids]
        spans: list[tuple[int, int]] = []
        span_bounds = [0]
        for first, own in zip(bounds, by_doc, strict=False):
            if self.task.constraints == "biluo":
                spans += [(first + start, first + end) for start, end, _ in spans_of(own)]
            span_bounds.append(len(spans))
        of_spans = self._span_probabilities(scores, data, nodes, ids, spans).tolist()
        return [
            Prediction(own, chosen[a:b], of_spans[c:d])
            for own, (a, b), (c, d) in zip(
                by_doc, pairwise(bounds), pairwise(span_bounds), strict=True
            )
        ]

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        for doc, prediction in zip(docs, scores, strict=True):
            if not len(doc):
                self.task.annotate(doc, [])
                continue
            labels, p_of_spans = list(prediction.labels), prediction.span_probabilities
            p_of_token: dict[int, float] = {}
            if p_of_spans:
                for (start, end, _), p in zip(spans_of(labels), p_of_spans, strict=True):
                    if p < self.min_prob:
                        labels[start:end] = [OUTSIDE] * (end - start)
                    p_of_token.update(dict.fromkeys(range(start, end), p))
            made = self.task.annotate(doc, labels)
            if self.probabilities and prediction.probabilities is not None:
                set_token_probabilities(doc, prediction.probabilities)
                # by a token: a span may have lost whitespace at its ends
                known = [span for span in made or [] if span.start in p_of_token]
                set_span_probabilities(known, [p_of_token[span.start] for span in known])

    def marginals(self, doc: Doc) -> npt.NDArray[np.float64]:
        """P(label) of every token: (n_tokens, len(sequence_labels))."""
        data = self._encode([doc])
        return self._marginals(self.model.predict(data), data)

    def nbest(self, doc: Doc, n: int = 5) -> list[tuple[list[str], float]]:
        """The n most probable labellings of the doc, with their probabilities.

        Of a doc of several sequences: the best combinations of their labellings.
        """
        from spacy_treecrf.engine.threads import Workers
        from spacy_treecrf.models.model import Predictor
        from spacy_treecrf.pipeline.combining import best_combinations

        if n < 1:
            raise ValueError(f"treecrf: nbest got n={n}; use 1 or more")
        with Workers(self.shim.settings.threads) as workers:
            found = Predictor(self.shim.trained, workers).nbest(self._encode([doc]), n)
        names = self.shim.labels
        choices = [
            [([names[y] for y in path], log_p) for path, log_p in zip(paths, log_ps, strict=True)]
            for paths, log_ps in found
        ]
        return best_combinations(choices, n)

    def span_probability(self, span: Span, label: str | None = None) -> float:
        """P(the tokens of the span are exactly one span of this label, by default its own)."""
        label = span.label_ if label is None else label
        if self.task.constraints != "biluo":
            raise ValueError("treecrf: only entities and spans have a span's probability")
        starts = starts_of(span.doc, self.sequence).tolist()
        if (
            not len(span)
            or label not in self.labels
            or any(span.start < s < span.end for s in starts)
        ):
            return 0.0
        wanted: list[str | None] = [None] * len(span.doc)
        write_span(wanted, span.start, span.end, label)
        data = self._encode([span.doc])
        scores = self.model.predict(data)
        ids = self.learner.label_ids([wanted])
        nodes = self._marginals(scores, data)
        return float(
            self._span_probabilities(scores, data, nodes, ids, [(span.start, span.end)])[0]
        )

    # -- scoring

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """The task's scores; `treecrf_score` is the main one of them, for any task.

        treecrf_nll: -log P(annotation) per annotated token. treecrf_ece: expected calibration
        error of the tokens' most probable labels.
        """
        examples = list(examples)
        validate_examples(examples, "TreeCRF.score")
        scores = (self.scorer or self.task.score)(examples, **kwargs)
        main = [key for key, weight in self.task.score_weights.items() if weight]
        own = {"treecrf_score": scores.get(main[0]) if main else None}
        own |= self._likelihood(examples)
        if self.name != "treecrf":  # so that several pipes can be told apart
            own |= {f"{self.name}{key.removeprefix('treecrf')}": own[key] for key in tuple(own)}
        return {**scores, **own}

    def _likelihood(self, examples: Sequence[Example]) -> dict[str, float | None]:
        from spacy_treecrf.engine.chain import log_probability_of
        from spacy_treecrf.engine.residuals import allowed_labels

        learner = self.learner
        ids = learner.label_ids(learner.gold(examples))
        known = ids >= 0
        if not known.any():
            return {"treecrf_nll": None, "treecrf_ece": None}
        data = self._encode([example.predicted for example in examples])
        scores = self.model.predict(data)
        allowed = allowed_labels(ids, len(self.shim.labels))
        log_p = log_probability_of(scores, data.offsets, self.shim.trained.chain, allowed)
        # Constraints may forbid a gold annotation: then nothing can be said of the sequence.
        possible = np.isfinite(log_p)
        n_known = np.add.reduceat(known, data.offsets[:-1])[possible].sum()
        nodes = self._marginals(scores, data)[known]
        best = nodes.argmax(axis=1)
        error = expected_calibration_error(nodes.max(axis=1), best == ids[known])
        nll = float(-log_p[possible].sum() / n_known) if n_known else None
        return {"treecrf_nll": nll, "treecrf_ece": error}

    # -- arrays

    def _encode(self, docs: Sequence[Doc]) -> "Sequences":
        from spacy_treecrf.engine.sequences import Sequences

        offsets = cut(docs, self.sequence)
        codes, numeric = self.features.encode(docs, offsets, self.shim.trained.columns)
        nothing = np.zeros(len(codes), np.int32)
        return Sequences(offsets, codes, numeric, nothing, np.ones(len(codes), np.float32))

    def _presets(self, docs: Sequence[Doc]) -> tuple[list[int], list[int]]:
        """Rows whose labels are already on the docs and must stay, and these labels' ids."""
        ids = {label: i for i, label in enumerate(self.shim.labels)}
        rows: list[int] = []
        known: list[int] = []
        row = 0
        for doc in docs:
            preset = self.task.preset(doc)
            if preset is not None:
                fallback = None
                if self.task.constraints == "biluo":
                    fallback = ids.get(OUTSIDE)
                    starts = starts_of(doc, self.sequence).tolist()
                    preset = without_cut_spans(preset, starts, OUTSIDE)
                for i, label in enumerate(preset):
                    kept = ids.get(label, fallback) if label is not None else None
                    if kept is not None:
                        rows.append(row + i)
                        known.append(kept)
            row += len(doc)
        return rows, known

    def _marginals(
        self, scores: npt.NDArray[np.float32], data: "Sequences"
    ) -> npt.NDArray[np.float64]:
        from spacy_treecrf.engine.boosting import predict_marginals
        from spacy_treecrf.engine.threads import Workers

        with Workers(self.shim.settings.threads) as workers:
            return predict_marginals(scores, data, self.shim.trained.chain, workers)

    def _span_probabilities(
        self,
        scores: npt.NDArray[np.float32],
        data: "Sequences",
        nodes: npt.NDArray[np.float64],
        ids: npt.NDArray[np.int32],
        spans: list[tuple[int, int]],
    ) -> npt.NDArray[np.float64]:
        from spacy_treecrf.engine.spans import span_probabilities

        rows = np.array(spans, np.int64).reshape(-1, 2)
        chain = self.shim.trained.chain
        return span_probabilities(scores, data.offsets, chain, nodes, rows, ids)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Docs of a stream, annotated; arrays like larger batches than spaCy's default."""
        yield from super().pipe(stream, batch_size=batch_size)


def _check_label(label: str) -> None:
    if not isinstance(label, str) or not label:
        raise ValueError(f"treecrf: cannot add the label {label!r}; use a text")
