"""The rules of a model, or others that it is to follow, prepared once and kept with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spacy_treecrf.engine.rules.rule import parse_rules
from spacy_treecrf.engine.rules.rule_masks import masks_of
from spacy_treecrf.engine.rules.ruled_chain import RuledChain
from spacy_treecrf.models.model import ModelSettings, SequenceModel
from spacy_treecrf.storage.state_reader import StateReader

Rules = tuple[str, ...]


def rules_of(settings: ModelSettings) -> Rules:
    """The rules that settings ask for; none where models of this kind have none."""
    return tuple(getattr(settings, "rules", None) or ())


def check_rules(settings: ModelSettings, labels: Sequence[str]) -> None:
    """Refuse rules that name other labels than these."""
    if rules := rules_of(settings):
        masks_of(parse_rules(rules), labels)


def check_stored_rules(settings: ModelSettings, labels: Sequence[str], reader: StateReader) -> None:
    """Refuse a model file whose rules name other labels than its own."""
    try:
        check_rules(settings, labels)
    except ValueError as error:
        reader.fail("settings", "rules about the model's labels", str(error))


def with_rules(model: SequenceModel, rules: Rules) -> SequenceModel:
    """The model with other rules in its settings, so that they are stored with it."""
    if rules == rules_of(model.settings):
        return model
    settings = replace(model.settings, rules=rules or None)
    changed: SequenceModel = replace(model, settings=settings)  # type: ignore[type-var]
    return changed


def ruled_chain(model: SequenceModel, rules: Rules) -> RuledChain | None:
    """The chain of a model under rules; None without any.

    A rule that names no label of the model is refused.
    """
    if not rules:
        return None
    known: dict[Rules, RuledChain] = vars(model).setdefault("_ruled", {})
    if rules not in known:
        known[rules] = RuledChain(model.chain, model.labels, rules)
    return known[rules]
