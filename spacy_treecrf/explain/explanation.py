"""What an explanation is: plain data, which tables and pages are made of.

All numbers are exact: scores are sums of what is listed, and probabilities come from the chain.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group

Label = str | int  # integers where an estimator was fitted on integers

TABLES = "spacy_treecrf.explain.tables"  # imports this module, and rich: loaded to show something

LINEAR = "linear"  # a weight of a feature
TREES = "trees"  # a feature's share in the values of all trees: a Shapley value
EVIDENCE = "evidence"  # what was added to the scores of the model, as by `agreement` of a pipe
START = "<start>"  # stands for the label before the first position
END = "<end>"  # stands for the label after the last position


class Explanation:
    """The base of all parts of an explanation, and where ways to show them are attached."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as strings, numbers, lists and dicts, which JSON can hold."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Contribution(Explanation):
    """What one feature adds to a score, or to the difference of two labels' scores."""

    feature: str  # as it is at this position: "word=Rome", "length=3.5", "label[-1]=O"
    column: str  # what it is a value of: "word", "length", "label[-1]"
    source: str  # LINEAR, TREES or EVIDENCE
    value: float


@dataclass(frozen=True)
class Interaction(Explanation):
    """What two features add to a score together, beyond what each adds without the other.

    It is part of the contributions of both, half in each. Only trees have interactions.
    """

    features: tuple[str, str]
    columns: tuple[str, str]
    value: float


@dataclass(frozen=True)
class Transition(Explanation):
    """What the label of a neighbour adds to a score."""

    neighbour: Label  # its predicted label, START or END
    value: float  # the learned part, also where constraints forbid the transition
    forbidden: bool  # whether constraints forbid it: then no sequence can have it


@dataclass(frozen=True)
class View(Explanation):
    """What can be said of a label when only a part of the sequence is looked at."""

    probability: float  # of the label that is explained
    best: Label  # the most probable label
    best_probability: float


@dataclass(frozen=True)
class Context(Explanation):
    """How much the neighbours decide: what parts of the sequence say of a position's label."""

    alone: View  # the features at the position alone, without transitions
    left: View  # these and everything before the position
    right: View  # these and everything after the position
    both: View  # the whole sequence


@dataclass(frozen=True)
class Effect(Explanation):
    """What becomes of the label's probability when a feature is taken away or replaced."""

    feature: str  # as it is: "word=Rome"
    column: str
    replaced_by: str | None  # the feature in its place: "word=Paris"; None: it is taken away
    before: float  # P(label) with the feature
    after: float  # P(label) without it
    best: Label  # the most probable label at the position then


@dataclass(frozen=True)
class TokenExplanation(Explanation):
    """Why a position got its label: score = base + contributions + left.value + right.value.

    Where `against` is another label, score, base, contributions, interactions and transitions are
    differences: what speaks for `label` rather than `against`.
    """

    position: int  # in the sequence or doc, from 0
    text: str | None  # of the token, where it is known
    predicted: Label
    label: Label  # that is explained; the predicted one unless asked otherwise
    against: Label | None
    score: float  # next to the predicted labels of the neighbours; not a probability
    base: float  # what trees say of the label before they look at any feature
    contributions: tuple[Contribution, ...]  # the largest first, positive or negative
    left: Transition  # from the label before
    right: Transition  # to the label after
    interactions: tuple[Interaction, ...]  # the largest first; none unless asked for
    probabilities: dict[Label, float]  # of all labels, the most probable first
    context: Context | None  # None where a beam search found the labels
    effects: tuple[Effect, ...]  # the largest first
    missing: tuple[str, ...]  # sentences on what could not be explained, and why

    def __rich__(self) -> Group:
        """The explanation as tables in a terminal, where `rich.print` shows it."""
        shown: Group = import_module(TABLES).token_tables(self)
        return shown

    @property
    def probability(self) -> float:
        """P(label) at the position, given the whole sequence."""
        return self.probabilities[self.label]

    def _repr_html_(self) -> str:
        """The panel of the token, for notebooks."""
        from spacy_treecrf.pages.text_page import in_notebook, token_alone

        return in_notebook([token_alone(self.to_dict())])


@dataclass(frozen=True)
class Alternative(Explanation):
    """One of the most probable labellings of the whole sequence or doc."""

    labels: tuple[Label, ...]
    probability: float


@dataclass(frozen=True)
class ExplainedSpan(Explanation):
    """An entity or another span that was predicted, from token `start` to `end` - 1."""

    start: int
    end: int
    label: str
    probability: float  # that exactly these tokens are one span of this label


@dataclass(frozen=True)
class SequenceExplanation(Explanation):
    """A sequence or doc with its predicted labels, and explanations of some of its positions."""

    texts: tuple[str, ...]  # of the tokens; empty where they are not known
    whitespace: tuple[str, ...]  # what follows each token; empty where it is not known
    labels: tuple[Label, ...]  # that were predicted
    probabilities: tuple[float, ...]  # of each predicted label
    spans: tuple[ExplainedSpan, ...]  # that the labels stand for; none where labels are no spans
    alternatives: tuple[Alternative, ...]  # the most probable labellings, the best first
    tokens: tuple[TokenExplanation, ...]  # of the chosen positions, in their order

    def __rich__(self) -> Group:
        """The explanation as tables in a terminal, where `rich.print` shows it."""
        shown: Group = import_module(TABLES).sequence_tables(self)
        return shown

    def at(self, position: int) -> TokenExplanation:
        """The explanation of a position, which must be one of those explained."""
        for token in self.tokens:
            if token.position == position:
                return token
        explained = [token.position for token in self.tokens]
        raise ValueError(f"treecrf: position {position} is not explained; these are: {explained}")

    def _repr_html_(self) -> str:
        """The text with its labels, whose tokens open their panels, for notebooks."""
        from spacy_treecrf.pages.text_page import in_notebook

        return in_notebook([self.to_dict()])


def _plain(value: Any) -> Any:
    """A value as JSON has it. Dicts become lists: JavaScript sorts keys that are numbers."""
    if isinstance(value, dict):
        return [{"label": label, "probability": p} for label, p in value.items()]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if is_dataclass(value):
        assert isinstance(value, Explanation)
        return value.to_dict()
    return value
