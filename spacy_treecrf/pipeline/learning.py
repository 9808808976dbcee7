"""Training through spaCy: examples come in batches, rounds are trained on what has come.

A batch that comes again (the whole corpus in every step) keeps its encoded rows and its scores,
so that a step costs what its rounds cost. Small batches are gathered: see `gathering`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.freed_memory import return_freed_memory
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.features.extractor import FeatureExtractor
from spacy_treecrf.labels.biluo import Label, biluo_spans, without_cut_spans
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.model import SequenceModel, Trainer
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.pipeline.doc_table import DocTable
from spacy_treecrf.pipeline.gold.gathering import Content, Gathering, Identity, Item, n_tokens
from spacy_treecrf.pipeline.gold.soft_gold import doc_weights, refuse_gaps, soft_content, soft_gold
from spacy_treecrf.pipeline.gold.training_data import describe_training_data
from spacy_treecrf.pipeline.label_names import names_of
from spacy_treecrf.pipeline.sequencing import cut, starts_of
from spacy_treecrf.pipeline.shim import ModelShim
from spacy_treecrf.pipeline.tasks.task import Task, token_values

# A batch of at least this share of the corpus is kept as a whole and gets rounds of its own; of
# others, rows of docs are kept, and rounds are trained on all that has been gathered.
BIG_BATCH = 0.5
GATHERS = (
    "treecrf: batches are parts of the corpus: they are gathered, and each epoch is worth "
    "rounds_per_step rounds on all of it; `spacy-treecrf init` writes configs without the detour"
)


@dataclass(frozen=True)
class EncodedExample:
    """The encoded rows of one doc."""

    words: int  # hash of the words
    lengths: npt.NDArray[np.int64]  # the lengths of its sequences
    feature_ids: npt.NDArray[np.int32]
    numeric: npt.NDArray[np.uint8]


def _words_of(example: Example) -> int:
    return hash(token_values(example.predicted, "ORTH").tobytes())


class Learner:
    """The training of a shim's model on examples."""

    def __init__(
        self, shim: ModelShim, features: FeatureExtractor, task: Task, sequence: str
    ) -> None:
        self.shim = shim
        self.features = features
        self.task = task
        self.sequence = sequence
        self.pipe = "treecrf"  # the name of the pipe
        self.grows = False  # whether examples may add features to a model that has learned
        self._workers = Workers(shim.settings.threads, shim.recipe.storage)
        # Tokens and sequences that `begin` fitted the columns on; None: a loaded model has them.
        self._fitted: tuple[int, int] | None = None
        # Whether columns were fitted before other pipes wrote on the docs.
        self._provisional = False
        self._serials = count()
        self._serial_of = DocTable[int]()
        self._encoded = DocTable[EncodedExample]()
        self._encoded_columns: Columns | None = None
        self._unseen: set[str] = set()  # labels that were warned of
        self._counted = (0.0, 0)  # loss and annotated tokens of the pending examples
        self._pending: list[Item] = []
        self._gathering: Gathering | None = None
        self._said_gathering = False
        self._rounds = 1  # for each epoch of gathered examples
        self._trainer: Trainer | None = None
        self._trainer_key: list[Identity] = []
        self._trainer_offsets = np.zeros(0, np.int64)
        self._trainer_model: SequenceModel | None = None

    def __reduce__(self) -> tuple[type[Learner], tuple[Any, ...]]:
        """Copy or pickle the learner without what it keeps between steps."""
        return Learner, (self.shim, self.features, self.task, self.sequence)

    def label_names(self, pipe: str, examples: Sequence[Example]) -> list[str]:
        """The labels that examples have, as users name them; what else they hold is told."""
        gold = [self.task.gold(example) for example in examples]
        learned = self.gold(examples, self.sequence_before_pipes)
        describe_training_data(pipe, self.task, gold, learned)
        return sorted({name for tokens in gold for name in names_of(self.task, tokens)})

    def begin(self, examples: Sequence[Example]) -> None:
        """Start a new model for the shim's labels, with the features of the examples."""
        self.shim.recipe.storage.check()
        docs = [example.predicted for example in examples]
        self._provisional = self.features.reads_annotations
        if self._provisional:
            # The gold annotation shows about the values that other pipes will write.
            docs = [example.reference for example in examples]
        self._fit(docs, examples, self.sequence_before_pipes)

    @property
    def sequence_before_pipes(self) -> str:
        """How docs are cut that no pipe has seen: boundaries which one will set may be missing."""
        return "auto" if self.sequence == "sentence" else self.sequence

    def add(self, examples: Sequence[Example]) -> float:
        """Keep examples for the next step; returns their loss now: -log P(annotation) per token."""
        new = [(self._identity(example), example) for example in examples]
        # Epochs shuffle their examples; in one order, they are the same batch.
        self._pending = sorted([*self._pending, *new], key=lambda item: item[0])
        before = self._counted
        with self.shim.owing_nothing():
            if self._is_part(self._pending):
                loss, n_annotated = self._loss(examples)
                self._counted = before[0] + loss, before[1] + n_annotated
            elif (trainer := self._prepare(self._pending)) is not None:
                n_annotated = trainer.n_annotated
                self._counted = -trainer.log_likelihood * n_annotated, n_annotated
        self._workers.close()  # threads do not survive the fork of nlp.pipe(n_process=2)
        loss, n_annotated = self._counted
        return (loss - before[0]) / max(1, n_annotated - before[1])

    def step(self, rounds: int) -> None:
        """Train so many rounds on the examples added since the last step.

        A batch that is a small part of the training data is gathered: rounds are trained on all
        that was gathered when an epoch is over, or when someone asks for the model before.
        """
        batch, self._pending = self._pending, []
        self._counted = (0.0, 0)
        self._rounds = rounds
        if not batch:
            return
        if self._is_part(batch):
            assert self._gathering is not None
            if self._gathering.knows(batch) or not self._gathering.complete:
                self._gather(self._gathering, batch)
                return
            self._catch_up()
        start = self.shim.learned
        prepared = [identity for identity, _ in batch] == self._trainer_key
        if not prepared or start is not self._trainer_model:  # replaced since `add`
            self._prepare(batch)
        if self._fitted and n_tokens(batch) >= self._big_batch:
            batch.clear()  # the trainer has what it needs, and these docs take memory
        if self._trainer is not None:
            self._train(self._trainer, rounds)
        self._gathering = Gathering(start, self.shim.learned)
        if batch:
            self._gathering.add(batch)
            self._gathering.owes, self._gathering.passed = False, 0
            self._gathering.loosen()

    def _is_part(self, batch: Sequence[Item]) -> bool:
        """Whether a batch is a part of an epoch that has begun: small, with examples before it."""
        gathering, learned = self._gathering, self.shim.known
        if gathering is None or not gathering.by_number or gathering.model is not learned:
            return False
        if self._fitted and n_tokens(batch) >= self._big_batch:
            return False
        return not gathering.is_covered_by(batch)

    def _gather(self, gathering: Gathering, batch: Sequence[Item]) -> None:
        """Add a part of an epoch; train after the first epoch, and bit by bit in those that follow.

        Within the first one, training waits until the model is asked for.
        """
        if not self._said_gathering:
            self._said_gathering = True
            logger.info(GATHERS)
        was_complete = gathering.complete
        gathering.add(batch)
        if gathering.complete and not was_complete:
            gathering.passed = n_tokens(batch)  # the second epoch begins with it
            self._learn_gathered(gathering, self._rounds, restart=True)
        if gathering.complete and (due := gathering.rounds_due(self._rounds)):
            self._learn_gathered(gathering, due)
        elif gathering.owes:
            self.shim.owe(self._catch_up)

    def _catch_up(self) -> None:
        """Train on gathered examples that the model does not know yet."""
        gathering = self._gathering
        if gathering and gathering.owes and gathering.model is self.shim.known:
            self._learn_gathered(gathering, self._rounds, restart=not gathering.complete)

    def _learn_gathered(self, gathering: Gathering, rounds: int, restart: bool = False) -> None:
        """Train rounds on all that was gathered.

        restart: Forget rounds on a part of it: then an epoch in parts teaches the same as one in
        a single batch.
        """
        self.shim.owed = None
        with self.shim.settling() as before:
            try:
                if restart and not gathering.lost_some:
                    self.shim.learned = gathering.start
                trainer = self._prepare_gathered(gathering)
                if trainer is not None:
                    self._train(trainer, rounds, most=self._most_rounds(gathering))
                gathering.owes = False
                gathering.loosen()
            except BaseException:
                if restart:  # rather many rounds on a part than few on all
                    self.shim.learned = before
                gathering.owes = True
                self.shim.owe(self._catch_up)
                raise
            finally:
                gathering.model = self.shim.known

    def _prepare_gathered(self, gathering: Gathering) -> Trainer | None:
        """A trainer on all that was gathered: that of before, if nothing new has come.

        It holds what it learns from, also of examples whose docs are gone.
        """
        known = self._trainer is not None and gathering.key == self._trainer_key
        if known and self.shim.known is self._trainer_model and not self.features.reads_annotations:
            return self._trainer
        return self._prepare(gathering.items)

    def _most_rounds(self, gathering: Gathering) -> int:
        """How many rounds gathered examples get in all: spaCy's loop would go on for very long."""
        model = self.shim.recipe.continued(self.shim.trained)
        assert model.settings.rounds is not None  # a model's are decided
        return model.settings.rounds + (gathering.start.rounds if gathering.start else 0)

    def _train(self, trainer: Trainer, rounds: int, most: int | None = None) -> None:
        goal = trainer.model.rounds + rounds
        if self.shim.settings.rounds is not None:
            goal = min(goal, self.shim.settings.rounds)
        elif most is not None:
            goal = min(goal, most)
        done = False
        try:
            trainer.train(goal)
            done = True
        finally:  # also on Ctrl-C: the rounds that were finished stay
            self._workers.close()
            self.shim.learned = self._trainer_model = trainer.model
            if not done:
                self._trainer = None

    def gold(self, examples: Sequence[Example], sequence: str | None = None) -> list[list[Label]]:
        """Labels of the examples' tokens; None where none is known, or none that can be learned."""
        sequence = sequence or self.sequence
        golds = map(self.task.gold, examples)
        if self.task.constraints != "biluo":
            return list(golds)
        return [
            without_cut_spans(gold, starts_of(example.predicted, sequence).tolist(), None)
            for gold, example in zip(golds, examples, strict=True)
        ]

    def label_ids(self, gold: Sequence[Sequence[Label]]) -> npt.NDArray[np.int32]:
        """The ids of all labels, laid end to end; unknown labels count as not annotated."""
        ids: dict[Label, int] = {label: i for i, label in enumerate(self.shim.labels)}
        return np.array([ids.get(y, UNKNOWN_LABEL) for labels in gold for y in labels], np.int32)

    def _warn_of_unseen(self, gold: Sequence[Sequence[Label]]) -> None:
        """Warn, once for each, of labels in training examples that the pipe does not have."""
        unknown = {y for labels in gold for y in labels if y is not None} - set(self.shim.labels)
        for name in names_of(self.task, sorted(unknown)):
            if name not in self._unseen:
                self._unseen.add(name)
                warnings.warn(
                    f"treecrf: training examples have the label {name!r}, which the pipe does not "
                    f"have: their tokens count as not annotated; call add_label({name!r}) before "
                    "training to learn it",
                    stacklevel=2,
                )

    def _fit(self, docs: Sequence[Doc], examples: Sequence[Example], sequence: str) -> None:
        recipe, settings = self.shim.recipe, self.shim.settings
        if self.shim.constraints_of_task and settings.order:
            recipe = recipe.changed(constraints=self.task.constraints)
        gold = self.gold(examples, sequence)
        predicted = [example.predicted for example in examples]
        has_spans = self.task.constraints == "biluo"
        self.features.learn(predicted, list(map(biluo_spans, gold)) if has_spans else None)
        offsets = cut(docs, sequence)
        columns = self.features.fit(
            docs,
            offsets,
            min_count=settings.min_count,
            max_bins=settings.max_bins,
            missing=settings.missing,
        )
        ids = self.label_ids(gold)
        labels_only = Sequences(
            offsets=cut(predicted, sequence),
            feature_ids=np.zeros((len(ids), 0), np.int32),
            numeric=np.zeros((len(ids), 0), np.uint8),
            labels=ids,
            weights=np.ones(len(ids), np.float32),
        )
        self.shim.learned = recipe.new(self.shim.labels, columns, labels_only)
        self._fitted = (len(ids), len(offsets) - 1)

    def _loss(self, examples: Sequence[Example]) -> tuple[float, int]:
        """-log P(annotation) of examples under the model of now, and their annotated tokens."""
        data = self._rows(examples)
        if data is None:
            return 0.0, 0
        predictor = Predictor(self.shim.trained, self._workers, rules=())
        log_p = predictor.apply(data).log_probability_of(data.labels)
        return -float(log_p[np.isfinite(log_p)].sum()), data.n_annotated

    def _prepare(self, items: Sequence[Item]) -> Trainer | None:
        """A trainer on these examples; None if none of them is annotated."""
        if not items:
            return None
        key = [identity for identity, _ in items]
        examples = [example for _, example in items]
        offsets = cut([example.predicted for example in examples], self.sequence)
        self._fit_again(examples, offsets)
        known = self._trainer is not None and key == self._trainer_key
        known = known and self.shim.learned is self._trainer_model
        known = known and np.array_equal(offsets, self._trainer_offsets)
        if known and not self.features.reads_annotations:
            return self._trainer
        if self.grows and self.shim.trained.rounds:
            self._grow(examples, offsets)
        data = self._rows(examples)
        if known and data is not None and self._trainer is not None:
            before = self._trainer.data
            if np.array_equal(before.feature_ids, data.feature_ids) and np.array_equal(
                before.numeric, data.numeric
            ):
                return self._trainer
        self._trainer_key, self._trainer_offsets = key, offsets
        self._trainer_model = self.shim.learned
        self._trainer = None
        if data is not None:
            # Settings may have changed since the model began.
            model = self.shim.recipe.continued(self.shim.trained)
            return_freed_memory()  # docs of `begin`, and what encoding took
            self._trainer = model.trainer(data, self._workers)
        return self._trainer

    def _identity(self, example: Example) -> Identity:
        """A key that tells examples apart, and an example from itself with a corrected annotation.

        Spans and extension attributes but for weights are not looked at.
        """
        gold = example.reference.to_array(["ENT_IOB", "ENT_TYPE", "TAG", "POS", "SENT_START"])
        content = _words_of(example), hash((gold.tobytes(), soft_content(example.reference)))
        serial = self._serial_of.get(example.reference)
        if serial is None:
            serial = self._number_again(content)
            serial = next(self._serials) if serial is None else serial
            self._serial_of[example.reference] = serial
        return serial, *content

    def _number_again(self, content: Content) -> int | None:
        """The number of an example that is made anew in each epoch, once all of them have come."""
        gathering = self._gathering
        if gathering is None or not self._fitted or gathering.size < self._fitted[0]:
            return None
        return gathering.number_like(content)

    def _fit_again(self, examples: Sequence[Example], offsets: npt.NDArray[np.int64]) -> None:
        """Fit the columns on a batch that tells more than `begin` saw, before the first round."""
        if self._fitted is None or self.shim.trained.rounds:
            return
        size = (int(offsets[-1]), len(offsets) - 1)
        seen_again = self._provisional and size[0] == self._fitted[0]
        if size > self._fitted or seen_again:
            before = self.shim.trained
            self._fit([example.predicted for example in examples], examples, self.sequence)
            # A pipe that learns at the same time has written next to nothing yet.
            known_better = len(before.columns.counts) > len(self.shim.trained.columns.counts)
            if seen_again and known_better:
                self.shim.learned = before
            self._provisional = False

    def _grow(self, examples: Sequence[Example], offsets: npt.NDArray[np.int64]) -> None:
        """Let the model know the features of the examples that it does not know."""
        model, settings = self.shim.trained, self.shim.settings
        if not hasattr(self.features, "grow"):
            raise ValueError(
                "treecrf: grow_features is set, but the features of the pipe cannot grow: their "
                f"class {type(self.features).__name__} has no method 'grow'"
            )
        docs = [example.predicted for example in examples]
        columns = self.features.grow(
            docs,
            offsets,
            model.columns,
            min_count=settings.min_count,
            max_bins=settings.max_bins,
        )
        self.shim.learned = model.with_columns(columns)

    def _rows(self, examples: Sequence[Example]) -> Sequences | None:
        """The sequences of the examples that hold at least one known label."""
        _ = self.shim.trained  # before any warning of labels: there must be a model
        gold = self.gold(examples)
        self._warn_of_unseen(gold)
        ids = self.label_ids(gold)
        if not len(ids):
            return None
        parts = self._encode(examples)
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ids, soft = soft_gold(examples, ids, self.shim.labels, offsets, self.pipe)
        if soft is not None and not isinstance(self.shim.trained, CRF):
            raise ValueError(
                "treecrf: docs of the training data have weights of labels, which only the "
                "architecture spacy_treecrf.BoostedCRF.v1 learns from; use it, or docs without"
            )
        if soft is not None and getattr(self.shim.settings, "soft_labels", None) == "distill":
            refuse_gaps(examples, ids, soft, offsets)
        data = Sequences(
            offsets=offsets,
            feature_ids=np.concatenate([part.feature_ids for part in parts]),
            numeric=np.concatenate([part.numeric for part in parts]),
            labels=ids,
            weights=doc_weights(examples),
            soft=soft,
        )
        known = ids != UNKNOWN_LABEL if soft is None else (ids != UNKNOWN_LABEL) | soft.is_soft
        annotated = np.add.reduceat(known, data.offsets[:-1]) > 0
        if annotated.all():
            return data
        return data.subset(np.flatnonzero(annotated)) if annotated.any() else None

    def _encode(self, examples: Sequence[Example]) -> list[EncodedExample]:
        """The rows of the examples, in their order; encoded in one piece if none is kept."""
        keep = not self.features.reads_annotations
        if self._encoded_columns is not self.shim.trained.columns:
            self._encoded.clear()
            self._encoded_columns = self.shim.trained.columns
        kept = [self._kept(example) if keep else None for example in examples]
        lacking = [e for e, part in zip(examples, kept, strict=True) if part is None]
        docs = [example.predicted for example in lacking]
        offsets = cut(docs, self.sequence)
        feature_ids, numeric = self.features.encode(
            docs, offsets, self.shim.trained.columns, training=True
        )
        if len(lacking) == len(examples) and offsets[-1] >= self._big_batch:
            return [EncodedExample(0, np.diff(offsets), feature_ids, numeric)]
        parts: list[EncodedExample] = []
        fresh = 0
        for example, part in zip(examples, kept, strict=True):
            if part is None:
                rows = slice(fresh, fresh + len(example.predicted))
                fresh = rows.stop
                lengths = np.diff(cut([example.predicted], self.sequence))
                part = EncodedExample(_words_of(example), lengths, feature_ids[rows], numeric[rows])
                if keep:
                    self._encoded[example.reference] = part
            parts.append(part)
        return parts

    @property
    def _big_batch(self) -> float:
        return BIG_BATCH * self._fitted[0] if self._fitted else 0.0

    def _kept(self, example: Example) -> EncodedExample | None:
        """The rows of an earlier batch, if the doc has the same words and sequences as then."""
        part = self._encoded.get(example.reference)
        if part is None or part.words != _words_of(example):
            return None
        lengths = np.diff(cut([example.predicted], self.sequence))
        return part if np.array_equal(part.lengths, lengths) else None
