"""The setting that holds rules: checked when it is set, stored as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spacy_treecrf.engine.rules.rule import EXAMPLES, parse_rules, split_rules
from spacy_treecrf.engine.setting import Setting, made, refused

if TYPE_CHECKING:
    from spacy_treecrf.storage.state_reader import StateReader

MAX_RULES = 1000


@dataclass(frozen=True)
class Rules(Setting):
    """Rules across the sequence as texts, or None for none."""

    @property
    def type_text(self) -> str:
        return "list of str or None"

    @property
    def allowed(self) -> str:
        return f"a list of rules such as {EXAMPLES}, or None for none"

    def check(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        texts = isinstance(value, Sequence) and not isinstance(value, str)
        if not texts or not all(isinstance(text, str) for text in value) or len(value) > MAX_RULES:
            raise refused(name, value, self.allowed)
        try:
            rules = parse_rules(value)
        except ValueError as error:
            raise ValueError(f"treecrf: setting {name!r}: {error}") from None
        return tuple(rule.text for rule in rules) or None

    def parse(self, text: str) -> Any:
        """The rules of a text, parted by commas."""
        return None if text.strip().lower() in ("", "none") else split_rules(text)

    def read(self, name: str, reader: StateReader) -> Any:
        texts = reader.strings(name)
        try:
            return self.check(name, texts)
        except ValueError as error:
            reader.fail(name, "rules", str(error))

    def stored(self, name: str, value: Any) -> dict[str, Any]:
        """Nothing where there are no rules: files of such models are as they always were."""
        return {} if value is None else {name: list(value)}


def rules_field(help: str) -> tuple[str, ...] | None:
    """The field of a setting that holds rules; none by default."""
    return made(Rules(help, older=None), None)
