"""What rules mean for label ids: which labels must, or must not, have occurred before a label.

The memory of a position is the set of named labels that occurred before it, as the bits of an
integer. All rules are tests of this memory and of the label before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.rules.rule import AFTER, ONCE, Rule
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import are_span_labels, letter_and_type

Ints = npt.NDArray[np.int64]

MAX_NAMES = 62  # bits of the memory
FORBIDDEN = -1


class RuleMasks(NamedTuple):
    """Bits of the memory by label."""

    sets: Ints  # shape: (n_labels,), what the label leaves in the memory
    needs: Ints  # shape: (n_labels,), what must be in the memory before it
    forbids: Ints  # shape: (n_labels,), what must not be in the memory before it
    once: Ints  # shape: (n_labels,), what must not be in it either, unless a run goes on
    goes_on: Ints  # shape: (n_labels, n_labels), runs that go on from a label to the next one


def masks_of(rules: Sequence[Rule], labels: Sequence[str]) -> RuleMasks:
    """The masks of rules for labels by id; a rule that names no label of these is refused.

    A rule names a label, or the type of labels that spell spans: "PER" is B-PER, I-PER and so on,
    and each span of it is a run.
    """
    groups = {
        name: labels_named(name, rule, labels)
        for rule in rules
        for name in (rule.label, rule.other)
        if name is not None
    }
    if len(groups) > MAX_NAMES:
        raise ValueError(
            f"treecrf: the rules name {len(groups)} labels, and {MAX_NAMES} is the limit; drop some"
        )
    bit_of = {name: 1 << i for i, name in enumerate(groups)}
    n_labels = len(labels)
    sets, needs, forbids, once = np.zeros((4, n_labels), np.int64)
    goes_on = np.zeros((n_labels, n_labels), np.int64)
    for name, group in groups.items():
        sets[group] |= bit_of[name]
    for rule in rules:
        group = groups[rule.label]
        if rule.kind == ONCE:
            once[group] |= bit_of[rule.label]
            for u, v in _going_on(group, labels):
                goes_on[u, v] |= bit_of[rule.label]
            continue
        assert rule.other is not None
        if set(group) & set(groups[rule.other]):
            raise ValueError(
                f"treecrf: rule {rule.text!r}: {rule.label!r} and {rule.other!r} name the same "
                "label; name two labels"
            )
        (needs if rule.kind == AFTER else forbids)[group] |= bit_of[rule.other]
    return RuleMasks(sets, needs, forbids, once, goes_on)


def labels_named(name: str, rule: Rule, labels: Sequence[str]) -> list[int]:
    """The ids of the labels that a rule means by a name."""
    if name in labels:
        return [list(labels).index(name)]
    found: list[int] = []
    if are_span_labels(labels):
        parts = [letter_and_type(label) for label in labels]
        found = [y for y, (_, type_) in enumerate(parts) if type_ == name]
    if not found:
        known = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
        raise ValueError(
            f"treecrf: rule {rule.text!r} names {name!r}, which is no label of the model; its "
            f"labels are {known}"
        )
    return found


def _going_on(group: Sequence[int], labels: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of labels of a group of which the second goes on with the run of the first."""
    pairs = [(u, v) for u in group for v in group]
    if not are_span_labels(labels):
        return pairs
    letters = [letter_and_type(label)[0] for label in labels]
    inside = [(u, v) for u, v in pairs if letters[u] in ("B", "I") and letters[v] in ("I", "E")]
    return inside + [(u, v) for u, v in pairs if letters[u] == letters[v] == OUTSIDE]


@kernel
def memory_after(masks: RuleMasks, before: int, memory: int, label: int) -> int:
    """The memory after a label, or FORBIDDEN. before: the label before; any one at the start."""
    if memory & masks.needs[label] != masks.needs[label]:
        return FORBIDDEN
    if memory & masks.forbids[label]:
        return FORBIDDEN
    # Nothing is in the memory at the start, so that no run can go on there.
    if memory & masks.once[label] & ~masks.goes_on[before, label]:
        return FORBIDDEN
    return int(memory | masks.sets[label])
