"""Rules as texts: "Street once", "Zip after City", "City not after Zip".

This module imports no numpy, as settings do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

ONCE = "once"
AFTER = "after"
NOT_AFTER = "not after"

EXAMPLES = "'Street once', 'Zip after City' or 'City not after Zip'"

_NAME = r'(?:"([^"]+)"|([^\s",]+))'
_RULE = re.compile(rf"\s*{_NAME}\s+(?:(once)|(after|not\s+after)\s+{_NAME})\s*")
# A rule within a list of them: commas within quotes belong to a label.
_LISTED = re.compile(r'(?:"[^"]*"|[^",])+')


@dataclass(frozen=True)
class Rule:
    """What must hold of the labels of every sequence.

    kind: ONCE: all positions with the label are one run. AFTER: the other label stands somewhere
    before. NOT_AFTER: it does not.
    """

    kind: str
    label: str
    other: str | None = None

    @property
    def text(self) -> str:
        """The rule as `parse_rule` reads it."""
        parts = [_quoted(self.label), self.kind]
        return " ".join(parts if self.other is None else [*parts, _quoted(self.other)])


def parse_rule(text: str) -> Rule:
    """The rule that a text says; a ValueError if it says none."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(
            f"rule {text!r} is none that is known; use rules such as {EXAMPLES}, with labels that "
            "hold spaces or commas in double quotes"
        )
    label = found[1] or found[2]
    if found[3]:
        return Rule(ONCE, label)
    other = found[5] or found[6]
    kind = " ".join(found[4].split())
    if label == other:
        raise ValueError(f"rule {text!r} names {label!r} twice; name two labels, or say 'once'")
    return Rule(kind, label, other)


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that texts say, if they can hold together."""
    rules = tuple(map(parse_rule, texts))
    for i, rule in enumerate(rules):
        if rule in rules[:i]:
            raise ValueError(f"rule {texts[i]!r} is given twice; give it once")
    _refuse_labels_that_wait_for_ever(rules, texts)
    return rules


def split_rules(text: str) -> list[str]:
    """The rules of one text, in which commas part them."""
    return [rule.strip() for rule in _LISTED.findall(text) if rule.strip()]


def _refuse_labels_that_wait_for_ever(rules: Sequence[Rule], texts: Sequence[str]) -> None:
    """Refuse rules under which a label can never stand, because others must be before it."""
    waiting = {i: rule for i, rule in enumerate(rules) if rule.kind == AFTER}
    while True:
        never_seen = {rule.label for rule in waiting.values()}
        free = [i for i, rule in waiting.items() if rule.other not in never_seen]
        if not free:
            break
        for i in free:
            del waiting[i]
    refused = dict(waiting)
    refused |= {
        i: rule
        for i, rule in enumerate(rules)
        if rule.kind == NOT_AFTER and Rule(AFTER, rule.label, rule.other) in rules
    }
    if refused:
        i, rule = min(refused.items())
        raise ValueError(
            f"rule {texts[i]!r} and the others leave no place for {rule.label!r} in any sequence; "
            "drop one of them"
        )


def _quoted(label: str) -> str:
    return f'"{label}"' if re.search(r'[\s",]', label) else label
