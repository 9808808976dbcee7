"""Explanations of positions of encoded sequences, under any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.explain.contributions import NO_COUNTS, ScoreExplainer, ScoreSum
from spacy_treecrf.explain.effects import (
    ChangedPosition,
    Intervention,
    probabilities_after,
    removals,
)
from spacy_treecrf.explain.explanation import (
    EVIDENCE,
    Context,
    Contribution,
    Effect,
    Label,
    TokenExplanation,
    Transition,
    View,
)
from spacy_treecrf.explain.messages import Messages, Views
from spacy_treecrf.explain.players import Players, row_of
from spacy_treecrf.explain.reading import Asked, Reading
from spacy_treecrf.explain.score_parts import ScoreParts, score_parts
from spacy_treecrf.models.model import SequenceModel

Doubles = npt.NDArray[np.float64]

ELSEWHERE = "elsewhere in the document", "agreement"  # feature and column of evidence
SEARCHED = "a beam search found the labels of this model: what neighbours say cannot be told apart"
RULED = (
    "probabilities are those given the rules, to which all positions of the sequence matter: what "
    "neighbours say cannot be told apart, and scores are those without the rules"
)


@dataclass(frozen=True)
class Question:
    """What to explain of each position.

    label: Id of the label to explain; None: the predicted one. against: Id of the label that it is
    compared to; None: none. effects: How many effects on the probability to list.
    """

    label: int | None = None
    against: int | None = None
    interactions: bool = False
    effects: int = 10


def explainer_of(model: SequenceModel) -> Explainer:
    """The explainer of a model, which is kept with it."""
    kept: Explainer = vars(model).setdefault("_explainer", Explainer(model))
    return kept


class Explainer:
    """Explains what a model says; prepared parts of the model are kept for further questions."""

    def __init__(self, model: SequenceModel) -> None:
        self.model = model

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}  # what was prepared can be prepared again

    @cached
    def parts(self) -> ScoreParts:
        return score_parts(self.model)

    @cached
    def players(self) -> Players:
        return Players(self.parts, self.model.labels)

    @cached
    def scores(self) -> ScoreExplainer:
        return ScoreExplainer(self.parts, self.players)

    def explain(
        self,
        asked: Asked,
        rows: Sequence[int],
        question: Question,
        replacements: Mapping[int, Sequence[Intervention]] | None = None,
    ) -> list[TokenExplanation]:
        """Explanations of some rows, whose positions are those in their sequences.

        replacements: Further interventions of rows, beside those that take a feature away.
        """
        reading = Reading(asked, self.parts)
        messages = self._messages(asked, rows)
        effects = self._effects(asked, rows, messages, question, replacements or {})
        nodes = None if messages else asked.scored.marginals()
        found = []
        for row, changes in zip(rows, effects, strict=True):
            sequence = asked.sequence_of(row)
            views = None
            if messages:
                t = row - int(asked.data.offsets[sequence])
                views = messages[sequence].views(t)
            probabilities = views.both if views else nodes[row]  # type: ignore[index]
            found.append(self._explain_row(reading, row, question, views, probabilities, changes))
        return found

    def _messages(self, asked: Asked, rows: Sequence[int]) -> dict[int, Messages]:
        """Messages of the sequences of these rows; none where a beam search or rules decide."""
        if self.model.searches or asked.scored.ruled is not None:
            return {}
        found = {}
        for sequence in sorted({asked.sequence_of(row) for row in rows}):
            own = asked.data.rows_of((sequence, sequence + 1))
            found[sequence] = Messages(asked.scores[own], asked.scored.chain)
        return found

    def _effects(
        self,
        asked: Asked,
        rows: Sequence[int],
        messages: dict[int, Messages],
        question: Question,
        replacements: Mapping[int, Sequence[Intervention]],
    ) -> list[list[tuple[Intervention, Doubles]]]:
        """Interventions of each row, each with the probabilities (n_labels,) that follow."""
        changed = []
        for row in rows:
            changes: list[Intervention] = []
            if question.effects:
                own = row_of(asked.data, row)
                changes = removals(self.players, own, asked.data.numeric.shape[1])
            changes += replacements.get(row, ())
            changed.append(ChangedPosition(row, asked.sequence_of(row), changes))
        after = probabilities_after(
            asked.predictor,
            asked.data,
            changed,
            messages if self.parts.local else {},
            self.parts.context_order,
            asked.allowed,
            asked.evidence,
        )
        return [
            list(zip(one.interventions, p, strict=True))
            for one, p in zip(changed, after, strict=True)
        ]

    def _explain_row(
        self,
        reading: Reading,
        row: int,
        question: Question,
        views: Views | None,
        probabilities: Doubles,
        changes: list[tuple[Intervention, Doubles]],
    ) -> TokenExplanation:
        asked, names = reading.asked, reading.asked.names
        predicted = int(asked.predicted[row])
        label = predicted if question.label is None else question.label
        against = question.against
        found = self._score_sum(reading, row, label, question)
        left, right = reading.transitions(row, label)
        if against is not None:
            left, right = (
                _difference(one, other)
                for one, other in zip((left, right), reading.transitions(row, against), strict=True)
            )
        contributions = sorted(found.contributions, key=lambda one: -abs(one.value))
        total = found.base + sum(one.value for one in contributions)
        order = np.argsort(-probabilities, kind="stable").tolist()
        missing = [self.parts.reason] if self.parts.reason else []
        missing += [] if found.knows_rows else [NO_COUNTS]
        if asked.scored.ruled is not None:
            missing.append(RULED)
        elif views is None:
            missing.append(SEARCHED)
        return TokenExplanation(
            position=row - int(asked.data.offsets[asked.sequence_of(row)]),
            text=None,
            predicted=names[predicted],
            label=names[label],
            against=None if against is None else names[against],
            score=total + left.value + right.value,
            base=found.base,
            contributions=tuple(contributions),
            left=left,
            right=right,
            interactions=tuple(sorted(found.interactions, key=lambda one: -abs(one.value))),
            probabilities={names[y]: float(probabilities[y]) for y in order},
            context=_context(views, label, names) if views else None,
            effects=_listed(changes, label, float(probabilities[label]), names, question.effects),
            missing=tuple(missing),
        )

    def _score_sum(self, reading: Reading, row: int, label: int, question: Question) -> ScoreSum:
        weights = np.zeros(len(self.model.labels))
        weights[label] += 1.0
        if question.against is not None:
            weights[question.against] -= 1.0
        if self.parts.reason:  # no sum over features: all of it is the base
            own = reading.asked.scores[row, 0].astype(np.float64)
            return ScoreSum(float(own @ weights), [], [], True)
        at, seen = reading.seen(row)
        pushes = reading.pushes[at]
        weights_of_sum = weights / reading.temperature(row)
        found = self.scores.explain(
            reading.data, seen, at, weights_of_sum, pushes, question.interactions
        )
        evidence = reading.asked.evidence
        if evidence is not None and (value := float(evidence[row] @ weights)):
            found.contributions.append(Contribution(*ELSEWHERE, EVIDENCE, value))
        return found


def _difference(one: Transition, other: Transition) -> Transition:
    """What a neighbour adds to one label rather than to another."""
    return replace(one, value=one.value - other.value)


def _context(views: Views, label: int, names: Sequence[Label]) -> Context:
    def view(probabilities: Doubles) -> View:
        best = int(probabilities.argmax())
        return View(float(probabilities[label]), names[best], float(probabilities[best]))

    return Context(view(views.alone), view(views.left), view(views.right), view(views.both))


def _listed(
    changes: Sequence[tuple[Intervention, Doubles]],
    label: int,
    before: float,
    names: Sequence[Label],
    n: int,
) -> tuple[Effect, ...]:
    """The largest effects of taking features away; those of replacing one are listed first."""
    found = [
        Effect(
            *change.name,
            change.replaced_by,
            before,
            float(after[label]),
            names[int(after.argmax())],
        )
        for change, after in changes
    ]

    def key(effect: Effect) -> tuple[bool, float]:
        return effect.replaced_by is None, -abs(effect.after - effect.before)

    n_replaced = sum(effect.replaced_by is not None for effect in found)
    return tuple(sorted(found, key=key)[: n + n_replaced])
