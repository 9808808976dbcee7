"""Models that judge what they have not seen: documents, or sequences, are dealt out into folds.

Each fold is judged by models of the other folds: by one, or by the average of several, each of
which has learned from another draw of their documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.averaging import pooled
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor, ScoredSequences

Groups = npt.NDArray[np.int64]
# Told after each round: how many are done, and how many there are in all.
Report = Callable[[int, int], None]
MAX_FOLDS, MAX_MEMBERS = 1000, 100


@dataclass(frozen=True)
class Plan:
    """How to cross-fit.

    folds: Parts of the corpus. members: Models for each part. drawn: With several members, the
        share of the other documents that each of them learns from. together: Whether all sequences
        of a document are in one fold; else each is dealt out by itself.
    """

    folds: int = 5
    members: int = 1
    drawn: float = 0.8
    seed: int = 0
    together: bool = True

    def __post_init__(self) -> None:
        if not 2 <= self.folds <= MAX_FOLDS:
            raise ValueError(f"treecrf: folds is {self.folds}; use 2 to {MAX_FOLDS}")
        if not 1 <= self.members <= MAX_MEMBERS:
            raise ValueError(f"treecrf: members is {self.members}; use 1 to {MAX_MEMBERS}")
        if not 0.0 < self.drawn <= 1.0:
            raise ValueError(f"treecrf: drawn is {self.drawn}; use more than 0, and up to 1")


@dataclass(frozen=True)
class HeldOut:
    """Sequences of one fold under models that have not seen them."""

    sequences: npt.NDArray[np.int64]  # numbers of the sequences, rising
    scored: ScoredSequences


def deal_out(groups: Groups, plan: Plan) -> npt.NDArray[np.int64]:
    """The fold of each sequence; those of one group come into the same.

    groups: (n_sequences,), which document each belongs to. Folds differ by one document at most.
    """
    documents, of_sequence = np.unique(groups, return_inverse=True)
    if len(documents) < 2:
        raise ValueError(
            "treecrf: all sequences are of one document, and documents are judged by models of "
            "others; pass more documents, or let its sequences be dealt out apart (together=False, "
            "--apart)"
            if len(groups) > 1
            else "treecrf: there is one sequence, which models of others should judge; pass more"
        )
    if len(documents) < plan.folds:
        raise ValueError(
            f"treecrf: {len(documents)} documents cannot be cut into {plan.folds} folds; use "
            "fewer folds, or name smaller documents"
        )
    shuffled = np.random.default_rng(plan.seed).permutation(len(documents))
    fold_of = np.empty(len(documents), np.int64)
    fold_of[shuffled] = np.arange(len(documents)) % plan.folds
    found: npt.NDArray[np.int64] = fold_of[of_sequence]
    return found


@dataclass(frozen=True)
class CrossFit:
    """Data to judge, and how to make the models that judge it.

    columns: What was fitted on the inputs of all the data; labels play no part in it.
    """

    data: Sequences
    labels: list[str]
    columns: Columns
    groups: Groups
    settings: Settings
    plan: Plan

    def held_out(self, workers: Workers, report: Report | None = None) -> Iterator[HeldOut]:
        """Fold by fold, its sequences under models of the other folds."""
        folds = deal_out(self._units, self.plan)
        rounds = self.settings.resolved(len(self.labels)).rounds
        assert rounds is not None
        known = np.concatenate([[0], np.cumsum(self.data.labels != UNKNOWN_LABEL)])
        annotated = known[self.data.offsets[1:]] > known[self.data.offsets[:-1]]
        counter = _Counter(rounds * self.plan.members * self.plan.folds, report)
        for fold in range(self.plan.folds):
            own = np.flatnonzero(folds == fold)
            others = np.flatnonzero((folds != fold) & annotated)
            if not len(others):
                raise ValueError(
                    "treecrf: all annotated documents are in one fold, so that nothing is left to "
                    "learn from; annotate more of them, or use another seed"
                )
            model = self._model_of(others, fold, workers, counter)
            yield HeldOut(own, Predictor(model, workers).apply(self.data.subset(own)))

    @property
    def _units(self) -> Groups:
        """The number of what each sequence is dealt out with."""
        return self.groups if self.plan.together else np.arange(len(self.groups))

    def _model_of(
        self, others: npt.NDArray[np.int64], fold: int, workers: Workers, counter: _Counter
    ) -> CRF:
        """The model, or the average of models, that has learned from these sequences."""
        models = []
        for member in range(self.plan.members):
            drawn = self._drawn(others, fold, member)
            settings = replace(self.settings, seed=self.settings.seed + member)
            data = self.data.subset(drawn)
            model = new_crf(settings, self.labels, self.columns, data)
            assert model.settings.rounds is not None  # decided by `new_crf`
            models.append(model.boosted(data, model.settings.rounds, workers, None, counter))
        return pooled(models) if len(models) > 1 else models[0]

    def _drawn(
        self, others: npt.NDArray[np.int64], fold: int, member: int
    ) -> npt.NDArray[np.int64]:
        if self.plan.members == 1 or self.plan.drawn == 1.0:
            return others
        documents = np.unique(self._units[others])
        random = np.random.default_rng([self.plan.seed, fold, member])
        n = max(1, round(self.plan.drawn * len(documents)))
        kept = random.choice(documents, n, replace=False)
        return others[np.isin(self._units[others], kept)]


class _Counter:
    """Counts the rounds of all models, and tells them."""

    def __init__(self, total: int, report: Report | None) -> None:
        self.done = 0
        self.total = total
        self.report = report

    def __call__(self, _: RoundInfo) -> None:
        self.done += 1
        if self.report is not None:
            self.report(self.done, self.total)
