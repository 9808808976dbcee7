"""The pipe: nlp.add_pipe("treecrf")."""

# No `from __future__ import annotations` here: spaCy checks [initialize] against the types below.
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from spacy_treecrf.engine.limits import QUICK_AFTER, check_nbest, check_nbest_labels
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.pipeline.annotation.annotating import annotate
from spacy_treecrf.pipeline.annotation.confidence import register_extensions
from spacy_treecrf.pipeline.annotation.predictions import (
    Prediction,
    predictions_of,
    with_probabilities,
)
from spacy_treecrf.pipeline.checked_setting import share, share_of_spans, weight
from spacy_treecrf.pipeline.description import description_of
from spacy_treecrf.pipeline.evidence.document_evidence import Weights, with_document_evidence
from spacy_treecrf.pipeline.gold.weights import register_weights
from spacy_treecrf.pipeline.history import History
from spacy_treecrf.pipeline.label_names import (
    check_label,
    names_of,
    sequence_labels,
)
from spacy_treecrf.pipeline.likelihood import likelihood_of_examples, probability_of_span
from spacy_treecrf.pipeline.mean_loss import MeanLoss
from spacy_treecrf.pipeline.presets import allowed_labels_on
from spacy_treecrf.pipeline.scoring import scores_of, warn_of_shared_score
from spacy_treecrf.pipeline.sequencing import BLOCK_TOKENS, by_tokens, cut, mode_of
from spacy_treecrf.pipeline.shim import ModelShim
from spacy_treecrf.pipeline.stored_pipe import StoredPipe
from spacy_treecrf.pipeline.tasks import place_of
from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when the pipe learns or predicts, not before
    from spacy_treecrf.explain.explanation import SequenceExplanation
    from spacy_treecrf.features.extractor import FeatureExtractor
    from spacy_treecrf.models.predictor import Best, Predictor, ScoredSequences
    from spacy_treecrf.pipeline.calibrating import CrossCalibration
    from spacy_treecrf.pipeline.learning import Learner


class TreeCRF(StoredPipe):
    """Labels the tokens of docs with a gradient-tree-boosted CRF.

    task: which annotation the labels are. features: what the model sees of a token.
    sequence: "doc", "sentence", "auto" (sentences where a doc has boundaries, else the doc) or
    "punctuation" (sentences by punctuation where a doc has no boundaries). None: "punctuation" for
    entities, else "auto".
    rounds_per_step: boosting rounds for each training step.
    probabilities: set token._.treecrf_prob and span._.treecrf_prob.
    min_prob: spans that are less probable than this are not set.
    expected_f1: F1 of spans that is expected, from 0 to 1. The spans are set that serve it best:
    their probabilities, less half of it, have the highest sum. 0: the spans of the most probable
    labelling.
    grow_features: let a pipe that has learned take in features, such as words, that are new in
    further training examples; without it they count as unknown.
    agreement: weight, from 0 to 1, of what the model says of a capitalised word wherever the doc
    has it, when it labels spans; 0: each place is labelled by itself. None: the weight that the
    pipe was initialized with, which `initialize` chooses by the task.
    parallels: the same weight of what it says at places of the doc that look alike, as in lists.
    """

    min_prob = share()
    expected_f1 = share_of_spans()
    agreement = weight()
    parallels = weight()

    # Many parameters: those of the factory, which come from the block of a config.
    def __init__(
        self,
        vocab: Vocab,
        model: Model[Any, Any],
        name: str = "treecrf",
        *,
        task: Task,
        features: "FeatureExtractor",
        sequence: str | None = None,
        rounds_per_step: int = 5,
        probabilities: bool = True,
        min_prob: float = 0.0,
        expected_f1: float = 0.0,
        grow_features: bool = False,
        agreement: float | None = None,
        parallels: float | None = None,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        if rounds_per_step < 1:
            raise ValueError(
                f"treecrf: setting 'rounds_per_step' is {rounds_per_step}; use 1 or more"
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.task = task
        self.features = features
        self.sequence = mode_of(sequence, task)
        self.rounds_per_step = rounds_per_step
        self.probabilities = probabilities
        self.min_prob = min_prob
        self.expected_f1 = expected_f1
        self.grow_features = grow_features
        self.agreement = agreement
        self.parallels = parallels
        self.scorer = scorer
        self.cfg: dict[str, Any] = {}
        self.make_learner: type[Learner] | Callable[..., Learner] | None = None  # if not here
        self._learner: Learner | None = None
        self._n_calls = 0
        self._mean_loss = MeanLoss()
        self._history = History(self.cfg)
        self.shim.features = features
        register_weights()
        if probabilities:
            register_extensions()

    def __repr__(self) -> str:
        return description_of(self.name, self.task, self.labels, self.shim.known)

    @property
    def shim(self) -> ModelShim:
        return cast(ModelShim, self.model.shims[0])

    # -- labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels as users name them: entity types for entities, tags for tags."""
        return tuple(names_of(self.task, self.shim.labels))

    @property
    def label_data(self) -> list[str]:
        return list(self.labels)

    @property
    def sequence_labels(self) -> tuple[str, ...]:
        """The labels as the model has them, in the order of the columns of `marginals`."""
        return tuple(self.shim.labels)

    def add_label(self, label: str) -> int:
        """A label that a trained pipe may still learn. Returns 1 if it is new, 0 if not."""
        check_label(label)
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
        if nlp is not None:
            warn_of_shared_score(nlp, TreeCRF)
        examples = list(get_examples())
        learner = self._new_learner()
        found = learner.label_names(self.name, examples)
        labels = found if labels is None else labels
        for label in labels:
            check_label(label)
        self.shim.learned = None
        for label in labels:
            self.add_label(label)
        if not self.labels:
            raise ValueError(
                f"treecrf: the pipe {self.name!r} has no labels, because no example is annotated "
                f"for its task, which reads {place_of(self.task)}; pass examples that have it, "
                "choose another task, call add_label, or give labels in [initialize.components]"
            )
        self.features.check(self.vocab)
        self._learner = learner
        self._history.clear()
        self.cfg |= Weights(self.agreement, self.parallels).initial(self.task)
        learner.begin(examples)

    @property
    def learner(self) -> "Learner":
        """Made when first needed: a pipe that only predicts has none."""
        if self._learner is None:
            self._learner = self._new_learner()
        self._learner.grows, self._learner.pipe = self.grow_features, self.name
        return self._learner

    def forget_examples(self) -> None:
        """Let go what is kept of examples for further steps, which are as possible without it."""
        self._learner = None

    def _new_learner(self) -> "Learner":
        from spacy_treecrf.pipeline.learning import Learner

        make = self.make_learner or Learner
        return make(self.shim, self.features, self.task, self.sequence)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Take in examples; `finish_update` (or an optimizer given here) boosts on them.

        The loss is -log P(annotation) per token, before that: the mean of steps with one `losses`.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "TreeCRF.update")
        loss = self.learner.add(examples)
        if loss and self.shim.known is not None:  # 0: nothing was annotated
            self._history.add(self.shim.known.rounds, loss)
        losses[self.name] = self._mean_loss.after(losses[self.name], loss)
        if sgd:  # nlp.update passes None or False, and calls finish_update itself
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer | None) -> None:
        """Boost `rounds_per_step` rounds on the examples that came since the last call."""
        self._mean_loss.end_step()
        self.learner.step(self.rounds_per_step)

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, float]:
        """The loss of `update` and no gradient: trees are not trained by one."""
        return likelihood_of_examples(self, list(examples))["treecrf_nll"] or 0.0, 0.0

    def calibrate(
        self, examples: Iterable[Example], outside: bool = False, curve: bool = False
    ) -> float:
        """Divide all scores by the temperature that makes probabilities honest.

        There the labels of held-out examples are right as often as the model says, in the mean.
        The most probable labels stay as they are; probabilities of labels, spans and n-best lists
        still agree with each other. Entities that are chosen by their probabilities may change:
        by expected_f1, agreement, parallels, min_prob. Pipes before this one must have run on the
        predicted docs.
        outside: Whether the score of O is lowered as well, as in `BoostedCRF.calibrate`.
        curve: Whether scores of a token are also divided by a number that depends on how unsure
        the model is of it, so that labels of every probability are right as often as they say;
        predictions are slower then. With each of them some labels change. Returns the temperature.
        """
        from spacy_treecrf.pipeline.calibrating import calibrate

        examples = list(examples)
        validate_examples(examples, "TreeCRF.calibrate")
        return calibrate(self, examples, outside, curve)

    def cross_calibrate(
        self,
        examples: Iterable[Example],
        folds: int = 5,
        new_names: bool = False,
        outside: bool | None = None,
        report: Callable[[int, int], None] | None = None,
    ) -> "CrossCalibration":
        """Calibrate a trained pipe by its own training examples, without any held-out data.

        Their texts are cut into folds, each of which is judged by a twin of the pipe that has
        learned from the others in as many rounds: so this takes `folds` trainings. What makes the
        twins honest is applied to this pipe. Pipes before it must have run on predicted docs.
        new_names: For text of another kind, whose names are new: twins have learned from no text
        that shares a name with those they judge. outside: As in `calibrate`; None: where labels
        are spans. report: A function that is told how many rounds are done, and of how many.
        """
        from spacy_treecrf.pipeline.calibrating import cross_calibrate

        examples = list(examples)
        validate_examples(examples, "TreeCRF.cross_calibrate")
        return cross_calibrate(self, examples, folds, new_names, outside, report)

    # -- prediction

    def predict(self, docs: Iterable[Doc]) -> list[Prediction]:
        found: list[Prediction] = []
        docs = list(docs)
        predictor = self.shim.new_predictor()
        try:
            if len(docs) == 1:
                return self.decode(docs, self._scored(predictor, docs))
            for some in by_tokens(docs, BLOCK_TOKENS * predictor.workers.threads):
                found += self.decode(some, self._scored(predictor, some))
        finally:
            predictor.workers.close()
        return found

    def _scored(self, predictor: "Predictor", docs: Sequence[Doc]) -> "ScoredSequences":
        allowed = self.allowed(docs)
        self._n_calls += 1
        if allowed is not None:
            return self.agreed(docs, predictor.apply(self.encode(docs), allowed))
        if self._n_calls <= QUICK_AFTER:
            return self.agreed(docs, predictor.apply_at_first(self.encode(docs)))
        marginals = bool(self.probabilities or self.min_prob or self.expected_f1)
        return self.agreed(docs, predictor.apply_quickly(self.encode(docs), marginals))

    @property
    def evidence_weights(self) -> Weights:
        """Settings `agreement` and `parallels`, or what the pipe was initialized with.

        Models that search by beams cannot take evidence: there they are 0 unless they are set.
        """
        cfg = {} if self.shim.trained.searches else self.cfg
        return Weights(self.agreement, self.parallels).decided(cfg)

    def agreed(self, docs: Sequence[Doc], scored: "ScoredSequences") -> "ScoredSequences":
        """Scored sequences of docs with the evidence that `evidence_weights` asks for."""
        return with_document_evidence(docs, scored, self.shim.labels, self.evidence_weights)

    def _applied(self, predictor: "Predictor", doc: Doc) -> "ScoredSequences":
        """The sequences of a doc, scored without regard to what it is annotated with."""
        return self.agreed([doc], predictor.apply(self.encode([doc])))

    def scored(self, docs: Sequence[Doc]) -> "Iterator[ScoredSequences]":
        """The sequences of docs, some after others, scored without regard to annotation."""
        with self.predictor() as predictor:
            for some in by_tokens(docs, BLOCK_TOKENS * predictor.workers.threads):
                yield self.agreed(some, predictor.apply(self.encode(some)))

    def f1_expected_of(self, docs: Iterable[Doc]) -> float:
        """The F1 that the pipe expects of the spans of docs that serve it best.

        It follows from the probabilities alone, which must be honest. As the setting
        `expected_f1`, it makes the pipe choose these spans.
        """
        from spacy_treecrf.pipeline.calibrating import f1_expected_of

        return f1_expected_of(self, list(docs))

    def decode(self, docs: Sequence[Doc], scored: "ScoredSequences") -> list[Prediction]:
        """What `predict` says of docs whose sequences are scored already."""
        has_spans = self.task.constraints == "biluo"
        labels = self.shim.labels
        found, ids = predictions_of(docs, scored, labels, has_spans, self.expected_f1)
        if self.probabilities or self.min_prob:
            return with_probabilities(found, ids, scored)
        return found

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        for doc, prediction in zip(docs, scores, strict=True):
            if not len(doc):
                self.task.annotate(doc, [])
                continue
            annotate(
                doc,
                prediction,
                self.task,
                min_prob=self.min_prob,
                probabilities=self.probabilities,
            )

    def marginals(self, doc: Doc) -> npt.NDArray[np.float64]:
        """P(label) of every token: (n_tokens, len(sequence_labels))."""
        with self.predictor() as predictor:
            return self._applied(predictor, doc).marginals()

    def teach(self, docs: Iterable[Doc]) -> None:
        """Store on docs what the model says of all labels and edges, for a student to learn from.

        It lies in doc.user_data; `spacy-treecrf distill` trains on such docs. Rules and beams
        do not count.
        """
        from spacy_treecrf.pipeline.gold.soft_gold import store_lattice

        with self.predictor() as predictor:
            free = predictor.without_rules()
            for some in by_tokens(list(docs), BLOCK_TOKENS * predictor.workers.threads):
                (nodes, pairs), first = free.apply(self.encode(some)).lattice(), 0
                for doc in some:
                    rows = slice(first, first + len(doc))
                    store_lattice(doc, self.shim.labels, nodes[rows], pairs[rows])
                    first = rows.stop

    def nbest(self, doc: Doc, n: int = 5) -> list[tuple[list[str], float]]:
        """The n most probable labellings of the doc, up to 100,000, with their probabilities.

        Of a doc of several sequences: the best combinations of their labellings.
        """
        from spacy_treecrf.pipeline.annotation.combining import best_labellings

        n = min(check_nbest(n), len(self.shim.labels) ** min(len(doc), 64))
        check_nbest_labels(n, len(doc))
        with self.predictor() as predictor:
            found = self._applied(predictor, doc).nbest(n)
        return best_labellings(found, self.shim.labels, n)

    def nbest_of_sequences(self, docs: Sequence[Doc], n: int) -> "list[Best]":
        """The n best labellings of each sequence of all docs in a row, or as many as there are.

        Each is a pair: ids of labels (n, length), see `sequence_labels`, and log probabilities.
        They are those without a temperature curve.
        """
        found: list[Best] = []
        with self.predictor() as predictor:
            uncurved = predictor.uncurved()
            for some in by_tokens(docs, BLOCK_TOKENS * predictor.workers.threads):
                found += uncurved.apply(self.encode(some)).nbest(check_nbest(n))
        return found

    def span_probability(self, span: Span, label: str | None = None) -> float:
        """P(the tokens of the span are exactly one span of this label, by default its own).

        0 for an empty span and for one that runs over the end of a sequence.
        """
        return probability_of_span(self, span, span.label_ if label is None else label)

    def explain(
        self,
        doc: Doc,
        tokens: Sequence[int] | None = None,
        *,
        label: str | None = None,
        against: str | None = None,
        interactions: bool = False,
        effects: int = 10,
        words: Sequence[str] = (),
        nbest: int = 5,
    ) -> "SequenceExplanation":
        """Why tokens of a doc get their labels; labels are those in `sequence_labels`.

        tokens: Those to explain, by default those of all predicted spans, or all tokens where
        labels are no spans. label: The label to explain, by default the predicted one. against: A
        label to compare it to. interactions: Whether to find what pairs of features add together.
        effects: How many features to list by their effect on the probability. words: Words that
        are tried in the place of each token. nbest: How many labellings of the doc to list.
        """
        from spacy_treecrf.explain.sequence import question_of
        from spacy_treecrf.pipeline.explaining import DocExplainer

        question = question_of(self.shim.labels, label, against, interactions, effects)
        if nbest:
            check_nbest_labels(check_nbest(nbest), len(doc))
        with self.predictor() as predictor:
            explained = DocExplainer.of(self, doc, predictor)
            found = explained.tokens(explained.chosen(tokens), question, words)
            return explained.sequence(found, nbest)

    # -- scoring

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """The task's scores; `treecrf_score` is the main one of them, for any task.

        treecrf_nll: -log P(annotation) per annotated token. treecrf_ece: expected calibration
        error of the tokens' most probable labels.
        """
        examples = list(examples)
        validate_examples(examples, "TreeCRF.score")
        return scores_of(self, examples, **kwargs)

    # -- arrays

    def encode(self, docs: Sequence[Doc]) -> Sequences:
        """The rows of the docs' tokens as the model sees them."""
        offsets = cut(docs, self.sequence)
        columns = self.shim.trained.columns
        return Sequences.unlabelled(offsets, *self.features.encode(docs, offsets, columns))

    def allowed(self, docs: Sequence[Doc]) -> npt.NDArray[np.uint8] | None:
        """A mask (n_tokens, n_labels) of what the docs' present annotation allows; None: all."""
        return allowed_labels_on(docs, self.task, self.sequence, self.shim.labels)

    @contextmanager
    def predictor(self) -> "Iterator[Predictor]":
        """A predictor of the model; its threads end with the block."""
        predictor = self.shim.new_predictor()
        with predictor.workers:
            yield predictor

    @contextmanager
    def memory_zone(self, mem: Any = None) -> "Iterator[Any]":
        """Within `nlp.memory_zone()`: at its end, drop what is kept of the words of its docs.

        mem: The zone's memory, a pool of cymem; nothing of the pipe lies in it.
        """
        try:
            yield mem
        finally:
            # Features of one's own may keep nothing.
            getattr(self.features, "forget", lambda: None)()

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Docs of a stream, annotated; arrays like larger batches than spaCy's default."""
        yield from super().pipe(stream, batch_size=batch_size)
