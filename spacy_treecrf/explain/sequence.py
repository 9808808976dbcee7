"""Explanations of sequences of feature dicts, as estimators take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacy_treecrf.engine.limits import check_nbest
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.explain.effects import Intervention
from spacy_treecrf.explain.explainer import Question, explainer_of
from spacy_treecrf.explain.explanation import (
    Alternative,
    ExplainedSpan,
    Label,
    SequenceExplanation,
    TokenExplanation,
)
from spacy_treecrf.explain.players import cells_of
from spacy_treecrf.explain.reading import Asked
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans, letter_and_type
from spacy_treecrf.models.predictor import Predictor


def question_of(
    names: Sequence[Label],
    label: Label | None,
    against: Label | None,
    interactions: bool,
    effects: int,
) -> Question:
    """The question with its labels by id. names: labels by id."""
    if effects < 0:
        raise ValueError(f"treecrf: effects is {effects}; use the number of effects to list")
    ids = [None if one is None else _label_id(names, one) for one in (label, against)]
    return Question(ids[0], ids[1], interactions, effects)


def _label_id(names: Sequence[Label], label: Label) -> int:
    if label not in names:
        known = ", ".join(map(str, names[:20])) + (", ..." if len(names) > 20 else "")
        raise ValueError(f"treecrf: label {label!r} is not one of the model's: {known}")
    return list(names).index(label)


@dataclass(frozen=True)
class ExplainedDicts:
    """A sequence of feature dicts under a model, ready to be explained."""

    asked: Asked
    dicts: Sequence[Any]

    @classmethod
    def of(cls, predictor: Predictor, names: Sequence[Label], x: Sequence[Any]) -> ExplainedDicts:
        """names: labels by id, as they are shown."""
        x = list(x)
        if not x:
            raise ValueError("treecrf: the sequence to explain is empty; give one position or more")
        data = Sequences.unlabelled(*predictor.model.columns.encode([x], name="x"))
        scored = predictor.apply(data)
        return cls(Asked(predictor, scored, scored.labels(), names), x)

    def tokens(
        self,
        positions: Sequence[int],
        question: Question,
        replacements: Mapping[str, Any] | None = None,
    ) -> list[TokenExplanation]:
        """Explanations of positions. replacements: other values of keys, to be tried one by one."""
        for position in positions:
            if not 0 <= position < len(self.dicts):
                raise ValueError(
                    f"treecrf: position {position} is not in the sequence; use 0 to "
                    f"{len(self.dicts) - 1}"
                )
        tried = {p: self._replacements(p, replacements or {}) for p in positions}
        return explainer_of(self.asked.predictor.model).explain(
            self.asked, positions, question, tried
        )

    def _replacements(self, position: int, values: Mapping[str, Any]) -> list[Intervention]:
        if not values:
            return []
        row = self.dicts[position]
        if not isinstance(row, Mapping):
            raise ValueError("treecrf: features can be replaced where rows are dicts; give dicts")
        columns = self.asked.predictor.model.columns
        changed = [[{**row, key: value}] for key, value in values.items()]
        data = Sequences.unlabelled(*columns.encode(changed, name="replace"))
        return [
            Intervention(
                (_shown(key, row.get(key)), key),
                _shown(key, value),
                cells_of(data, i),
                data.numeric[i],
            )
            for i, (key, value) in enumerate(values.items())
        ]

    def sequence(
        self, tokens: Sequence[TokenExplanation], nbest: int, texts: Sequence[str] | None
    ) -> SequenceExplanation:
        """The sequence with these explanations of positions."""
        asked = self.asked
        if texts is not None and len(texts) != len(self.dicts):
            raise ValueError(
                f"treecrf: there are {len(texts)} texts for {len(self.dicts)} positions; give one "
                "for each"
            )
        shown = tuple(texts or ())
        tokens = [replace(one, text=shown[one.position]) if shown else one for one in tokens]
        nodes = asked.scored.marginals()[np.arange(len(self.dicts)), asked.predicted]
        return SequenceExplanation(
            texts=shown,
            whitespace=(),
            labels=tuple(asked.names[y] for y in asked.predicted.tolist()),
            probabilities=tuple(nodes.tolist()),
            spans=_spans(asked),
            alternatives=_alternatives(asked, nbest),
            tokens=tuple(tokens),
        )


def _shown(key: str, value: Any) -> str:
    return key if value is True else f"{key}={value}"


def _alternatives(asked: Asked, nbest: int) -> tuple[Alternative, ...]:
    if not nbest:
        return ()
    ((paths, log_ps),) = asked.scored.nbest(check_nbest(nbest))
    return tuple(
        Alternative(tuple(asked.names[y] for y in path), float(np.exp(log_p)))
        for path, log_p in zip(paths.tolist(), log_ps.tolist(), strict=True)
    )


def _spans(asked: Asked) -> tuple[ExplainedSpan, ...]:
    """The spans of a sequence's labels, if these spell spans, in any scheme."""
    labels = asked.predictor.model.labels
    if not are_span_labels(labels):
        return ()
    predicted = asked.predicted.tolist()
    parts = [letter_and_type(label) for label in labels]
    found = []
    for start, end, name in conll_spans([labels[y] for y in predicted]):
        # a span that goes on is another one
        going_on = [y for y, part in enumerate(parts) if part in (("I", name), ("E", name))]
        allowed = np.ones((len(predicted), len(labels)), np.uint8)
        allowed[start:end] = 0
        allowed[np.arange(start, end), predicted[start:end]] = 1
        allowed[end : end + 1, going_on] = 0
        probability = np.exp(asked.scored.log_probability_within(allowed)[0])
        found.append(ExplainedSpan(start, end, name, float(probability)))
    return tuple(found)
