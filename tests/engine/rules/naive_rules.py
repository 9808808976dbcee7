"""Rules as plain tests of a finished labelling: the twin of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.rules.rule import AFTER, ONCE, parse_rules
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans, letter_and_type
from tests.engine.enumeration import Enumeration, enumerate_paths


def type_of(label: str, labels: Sequence[str]) -> str:
    return letter_and_type(label)[1] if are_span_labels(labels) else label


def n_runs(name: str, labelling: Sequence[str], labels: Sequence[str]) -> int:
    if are_span_labels(labels) and name not in labels:
        return sum(type_ == name for _, _, type_ in conll_spans(labelling))
    return sum(label == name for label, _ in groupby(labelling))


def follows(rules: Sequence[str], labelling: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a labelling follows all rules. labels: those of the model."""
    types = [label if label == "O" else type_of(label, labels) for label in labelling]
    for rule in parse_rules(rules):
        if rule.kind == ONCE:
            if n_runs(rule.label, labelling, labels) > 1:
                return False
            continue
        for i, type_ in enumerate(types):
            if type_ == rule.label and (rule.other in types[:i]) != (rule.kind == AFTER):
                return False
    return True


def ruled_paths(
    scores: npt.NDArray[np.float32],
    chain: Chain,
    labels: Sequence[str],
    rules: Sequence[str],
    allowed: npt.NDArray[np.uint8] | None = None,
) -> Enumeration:
    """Every labelling of one sequence that nothing forbids, neither chain nor rules."""
    every = enumerate_paths(scores, chain, allowed)
    kept = [follows(rules, [labels[y] for y in path], labels) for path in every.paths]
    paths = [path for path, keep in zip(every.paths, kept, strict=True) if keep]
    return Enumeration(every.n_labels, every.order, paths, every.scores[np.array(kept, bool)])
