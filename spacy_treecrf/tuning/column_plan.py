"""Tuning of models for column files: as `spacy-treecrf train` trains them, for their score."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from spacy_treecrf.columnar.files import ColumnFile
from spacy_treecrf.columnar.model import ColumnModel, features_of
from spacy_treecrf.columnar.template import Template
from spacy_treecrf.columnar.training import fit
from spacy_treecrf.columnar.word_features import WordFeatures
from spacy_treecrf.engine.boosting.settings import Settings as ModelSettings
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.spans import span_scores, total_score
from spacy_treecrf.labels.biluo import Label
from spacy_treecrf.labels.schemes import are_span_labels
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from spacy_treecrf.tuning.folds import held_out_rule
from spacy_treecrf.tuning.journal import Result
from spacy_treecrf.tuning.search import Training, digest
from spacy_treecrf.tuning.space import Settings, unknown_setting


@dataclass(frozen=True)
class ColumnData:
    """The sequences of a column file: their words, feature dicts and labels."""

    texts: list[str]  # by which sequences are held out
    features: list[list[dict[str, Any]]]
    labels: list[list[Label]]

    @classmethod
    def of(
        cls, file: ColumnFile, template: Template, words: WordFeatures | None = None
    ) -> ColumnData:
        sequences, labels = template.split(file, need_labels=True)
        assert labels is not None
        texts = ["\n".join("\t".join(row) for row in rows) for rows in sequences]
        return cls(texts, list(features_of(template, words, sequences, file.place)), labels)

    def where(self, chosen: Sequence[bool]) -> ColumnData:
        """The chosen sequences."""
        parts = zip(self.texts, self.features, self.labels, chosen, strict=True)
        kept = [part[:3] for part in parts if part[3]]
        return ColumnData([a for a, _, _ in kept], [b for _, b, _ in kept], [c for *_, c in kept])

    def digest(self) -> str:
        """The digest of all that results depend on."""
        return digest(repr((self.texts, self.labels)).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class ColumnPlan:
    """A plan to tune the settings of models for column files."""

    template: Template
    trials: list[Settings]
    train: ColumnData
    dev: ColumnData | None  # held-out data; None: a part of the training data
    folds: int  # 0: no cross-validation
    hold_out: float
    seed: int
    threads: int = 0
    words: WordFeatures | None = None

    def about(self) -> dict[str, object]:
        return {
            "template": self.template.to_state(),
            "words": self.words and digest(container.dump(self.words.to_state())),
            "train": self.train.digest(),
            "dev": None if self.dev is None else self.dev.digest(),
            "folds": self.folds,
            "hold_out": self.hold_out if self.dev is None and not self.folds else None,
            "seed": self.seed if self.dev is None else None,
        }

    @contextmanager
    def trainings(self) -> Iterator[Sequence[Training]]:
        if self.dev is not None:
            yield [self._training(self.train, self.dev)]
            return
        trainings = []
        for fold in range(max(self.folds, 1)):
            is_held_out = held_out_rule(fold, self.folds, self.hold_out, self.seed)
            held_out = [is_held_out(text) for text in self.train.texts]
            if all(held_out) or not any(held_out):
                raise ValueError(
                    f"treecrf: the training file has {len(held_out)} sequences, too few to hold "
                    "out a part; use more, or name held-out data by --dev"
                )
            kept = self.train.where([not own for own in held_out])
            trainings.append(self._training(kept, self.train.where(held_out)))
        yield trainings

    def best_model(self, settings: Settings) -> ColumnModel:
        """A model of these settings, trained on all training data."""
        given = {**settings, "threads": self.threads}
        dev = None if self.dev is None else (self.dev.features, self.dev.labels)
        training = self.train.features, self.train.labels
        return fit(self.template, training, dev, given, words=self.words)

    def _training(self, train: ColumnData, dev: ColumnData) -> Training:
        return ColumnTraining(self.template, train, dev, self.threads)


@dataclass(frozen=True)
class ColumnTraining:
    """A training on some sequences, scored on others."""

    template: Template
    train: ColumnData
    dev: ColumnData
    threads: int

    def __call__(self, settings: Settings, fold: int) -> Result:
        began = time.monotonic()
        scores: dict[str, float] = {}
        error = rounds = None
        try:
            training, held_out = ((data.features, data.labels) for data in (self.train, self.dev))
            given = {**settings, "threads": self.threads}
            model = fit(self.template, training, held_out, given)
            scores = scores_of(model.crf, self.dev, self.threads)
            rounds = model.crf.rounds
        except ValueError as refused:
            error = str(refused)
        seconds = round(time.monotonic() - began, 3)
        return Result(settings, fold, main_score(scores), scores, rounds, seconds, error)

    def packed(self) -> ColumnTraining:
        return replace(self, threads=self.threads or 1)


def check_settings(names: Sequence[str]) -> None:
    """Refuse settings that models for column files do not have."""
    known = sorted(ModelSettings.names())
    for name in names:
        if name not in known:
            raise unknown_setting(name, "the model", known)


def scores_of(crf: CRF, data: ColumnData, threads: int) -> dict[str, float]:
    """The accuracy of predicted labels and, where labels are those of spans, their F1."""
    encoded = Sequences.unlabelled(*crf.columns.encode(data.features))
    with Workers(threads) as workers:
        ids = Predictor(crf, workers).labels(encoded).tolist()
    bounds = pairwise(encoded.offsets.tolist())
    predicted: list[list[Label]] = [[crf.labels[i] for i in ids[a:b]] for a, b in bounds]
    pairs = [
        (gold, found)
        for own, others in zip(data.labels, predicted, strict=True)
        for gold, found in zip(own, others, strict=True)
        if gold is not None
    ]
    scores = {"accuracy": sum(a == b for a, b in pairs) / max(1, len(pairs))}
    if are_span_labels(label for own in data.labels for label in own):
        scores["f1"] = total_score(span_scores(data.labels, predicted)).f1
    return scores


def main_score(scores: dict[str, float]) -> float | None:
    return scores.get("f1", scores.get("accuracy"))
