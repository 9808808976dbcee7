"""Rules as texts, and the setting that holds them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.rules.rule import (
    AFTER,
    NOT_AFTER,
    ONCE,
    Rule,
    parse_rule,
    parse_rules,
    split_rules,
)
from spacy_treecrf.engine.rules.rule_masks import MAX_NAMES, masks_of
from spacy_treecrf.storage.state_reader import StateReader

names = st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"]), min_size=1)
names = names.filter(lambda name: bool(name.strip()))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Street once", Rule(ONCE, "Street")),
        ("Zip after City", Rule(AFTER, "Zip", "City")),
        ("  City   not  after Zip ", Rule(NOT_AFTER, "City", "Zip")),
        ('"street name" once', Rule(ONCE, "street name")),
        ('"a,b" after "once"', Rule(AFTER, "a,b", "once")),
        ("once after after", Rule(AFTER, "once", "after")),
    ],
)
def test_texts_say_rules(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(rule.text) == rule


@given(names, names)
def test_a_rule_is_read_from_its_text_whatever_the_labels_are_called(one: str, two: str) -> None:
    rules = [Rule(ONCE, one)]
    if one != two:
        rules += [Rule(AFTER, one, two), Rule(NOT_AFTER, two, one)]
    texts = [rule.text for rule in rules]
    assert list(parse_rules(texts)) == rules
    assert split_rules(", ".join(texts)) == [text.strip() for text in texts]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("Zip once", "setting 'rules' is 'Zip once'; use a list of rules"),
        ([1], "setting 'rules' is [1]; use a list"),
        (["Zip twice"], "setting 'rules': rule 'Zip twice' is none that is known"),
        (["a,b once"], "rule 'a,b once' is none that is known"),
        (["Zip"], "rule 'Zip' is none that is known"),
        ([""], "rule '' is none that is known"),
        (["Zip after Zip"], "rule 'Zip after Zip' names 'Zip' twice"),
        (["Zip once", "Zip  once"], "rule 'Zip  once' is given twice"),
        (["A after B", "B after A"], "rule 'A after B' and the others leave no place for 'A'"),
        (["A after B", "B after C", "C after A"], "leave no place for 'A'"),
        (["A after B", "A not after B"], "leave no place for 'A'"),
    ],
)
def test_wrong_rules_are_refused_by_their_text(rules: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings(rules=rules)  # type: ignore[arg-type]


def test_settings_hold_rules_as_texts_and_files_of_models_without_rules_do_not() -> None:
    assert Settings(rules=["A once", "B  after  A"]).rules == ("A once", "B after A")
    assert Settings(rules=[]).rules is None
    assert "rules" not in Settings().to_state()
    state = Settings(rules=["A once"], rounds=1).to_state()
    assert state["rules"] == ["A once"]
    assert Settings.from_state(StateReader(state)).rules == ("A once",)
    with pytest.raises(ValueError, match="rule 'A' is none"):
        Settings.from_state(StateReader({**state, "rules": ["A"]}))


def test_the_command_line_parts_rules_by_commas() -> None:
    parsed = Settings.parsed("rules", 'Zip once, "a, b" after Zip,City not after "a, b"')
    assert parsed == ("Zip once", '"a, b" after Zip', 'City not after "a, b"')
    assert Settings.parsed("rules", "none") is None
    with pytest.raises(ValueError, match="rule 'Zip twice' is none"):
        Settings.parsed("rules", "Zip twice")


def test_rules_name_labels_or_the_types_of_spans() -> None:
    labels = ["O", "B-PER", "I-PER", "L-PER", "U-PER", "B-LOC", "I-LOC"]
    masks = masks_of(parse_rules(["PER once", "LOC after PER"]), labels)
    assert masks.sets.tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert masks.needs.tolist() == [0, 0, 0, 0, 0, 1, 1]
    going_on = {(labels[u], labels[v]) for u, v in zip(*masks.goes_on.nonzero(), strict=True)}
    assert going_on == {(f"{a}-PER", f"{b}-PER") for a in "BI" for b in "IL"}
    # no spans: "S-Bahn" has no type
    masks = masks_of(parse_rules(["S-Bahn once"]), ["S-Bahn", "Bus"])
    assert masks.once.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("rules", "labels", "message"),
    [
        (["Zip once"], ["A", "B"], "rule 'Zip once' names 'Zip', which is no label of the model"),
        (["A after Zip"], ["A", "B"], "rule 'A after Zip' names 'Zip'"),
        (["Bahn once"], ["S-Bahn", "Bus"], "names 'Bahn'"),
        (["PER after B-PER"], ["O", "B-PER", "I-PER"], "name the same label"),
        ([f"L{i} once" for i in range(63)], [f"L{i}" for i in range(63)], f"{MAX_NAMES} is the"),
    ],
)
def test_rules_about_other_labels_are_refused(
    rules: list[str], labels: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        masks_of(parse_rules(rules), labels)
