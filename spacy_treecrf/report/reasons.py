"""Why an error was made: its first wrong token, what speaks for the predicted label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.tagger import Tagger
from spacy_treecrf.explain.explainer import Question, explainer_of
from spacy_treecrf.explain.reading import Asked
from spacy_treecrf.report.report import ShownError


def reason_of(tagger: Tagger, shown: ShownError) -> dict[str, Any] | None:
    """The explanation of an error as JSON: the predicted label rather than the annotated one.

    None where the rows of the error were not kept, or where the model lacks its label; a gold label
    that the model lacks is not compared with.
    """
    error, names = shown.error, tagger.model.labels
    predicted, gold = shown.predicted[error.wrong], shown.gold[error.wrong]
    if error.rows is None or predicted not in names:
        return None
    against = names.index(gold) if gold in names else None
    with Workers(tagger.threads) as workers:
        predictor = tagger.predictor(workers)
        scored = predictor.apply(error.rows)
        if error.evidence is not None:
            scored = scored.with_evidence(error.evidence)
        asked = Asked(predictor, scored, scored.labels(), names)
        question = Question(label=names.index(predicted), against=against)
        (found,) = explainer_of(tagger.model).explain(asked, [error.wrong], question)
    return replace(found, text=shown.words[error.wrong]).to_dict()
