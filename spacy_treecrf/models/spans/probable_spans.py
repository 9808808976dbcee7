"""Spans that are probable, by the exact probabilities of one chain or of several.

The best label sequence has the best spans together, and the F1 of spans counts them one by one. A
span helps F1 where its probability is above half of the F1 that can be reached (Lipton et al. 2014,
theorem 1, there for labels), so that one half is the threshold of a good model. Two spans that
overlap exclude each other: only one of them can be more probable than not. Below one half,
`spacy_treecrf.models.spans.spans_for_f1` chooses.

Several models tell the mean of their probabilities. Each may spell spans in a scheme of its own:
what is hard to see where spans begin is often easy where they end (Shen and Sarkar 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import are_span_labels, letter_and_type
from spacy_treecrf.models.predictor import ScoredSequences

NO_OVERLAPS = 0.5  # from this threshold on, spans above it do not overlap

Nodes = npt.NDArray[np.float64]  # marginals of labels. shape: (n_rows, n_labels)


class ProbableSpan(NamedTuple):
    """A span of positions of one sequence, and its probability."""

    start: int
    end: int  # past the last position
    name: str
    probability: float


class _Rows(NamedTuple):
    """A span of rows that a chain has scored."""

    first: int
    last: int  # past the last row
    name: str


@dataclass(frozen=True)
class Spelling:
    """How the labels of a model spell spans."""

    names: Sequence[str]  # of the labels, by id
    parts: list[tuple[str, str]]  # letter out of B, I, E, S, O, and name of the span, by label id
    ids: dict[tuple[str, str], int]  # the reverse of parts
    begins: bool  # whether the first label of a span is one of its own: BIO, BIOES, BILUO
    ends: bool  # whether the last label of a span is one of its own: IOE2, BIOES, BILUO

    @classmethod
    def of(cls, names: Sequence[str]) -> Spelling:
        """The spelling of a model's labels, given by id."""
        parts = [letter_and_type(name) for name in names]
        letters = {letter for letter, _ in parts}
        begins, ends = bool(letters & {"B", "S"}), bool(letters & {"E", "S"})
        untyped = ends and set(names) <= {"I", "E", OUTSIDE}  # IOE2, which nothing else is like
        if not (are_span_labels(names) or untyped) or not (begins or ends):
            raise ValueError(
                "treecrf: the labels of this model do not spell spans; train it on BIO, IOE2, "
                "BIOES or BILUO labels"
            )
        return cls(names, parts, {part: i for i, part in enumerate(parts)}, begins, ends)

    @property
    def may_be_iob1(self) -> bool:
        """Whether IOB1 has labels of the same names: B and I alone."""
        return self.begins and not self.ends

    def labels_of(self, name: str, n: int) -> list[int] | None:
        """Ids of the labels of a span of n tokens; None if the model lacks one of them."""
        letters = ["I"] * n
        if self.begins:
            letters[0] = "B"
        if self.ends:
            letters[-1] = "S" if self.begins and n == 1 else "E"
        found = [self.ids.get((letter, name)) for letter in letters]
        known = [i for i in found if i is not None]
        return known if len(known) == n else None


def probable_spans(
    scored: Sequence[ScoredSequences], spellings: Sequence[Spelling], threshold: float
) -> list[list[ProbableSpan]]:
    """The spans of each sequence whose mean probability is above a threshold, by their places.

    A mean is above the threshold only where one of its models is. Spans are those that a scheme
    spells out: where labels have letters for the last token, a span without such an end is none.
    Below a threshold of one half they may overlap.

    scored: The same sequences under each of some models. spellings: Those of the models.
    """
    models = list(zip(scored, spellings, strict=True))
    spans = sorted({span for model in models for span in _possible_spans(*model, threshold)})
    means = np.mean([_probabilities(*model, spans) for model in models], axis=0)
    offsets = scored[0].data.offsets
    found: list[list[ProbableSpan]] = [[] for _ in range(len(offsets) - 1)]
    for (first, last, name), p in zip(spans, means.tolist(), strict=True):
        if p > threshold:
            s = int(np.searchsorted(offsets, first, side="right")) - 1
            begin = int(offsets[s])
            found[s].append(ProbableSpan(first - begin, last - begin, name, p))
    return found


def expected_number(scored: ScoredSequences, spelling: Spelling) -> float:
    """How many spans a model expects in all sequences, by the labels that begin one, or end one."""
    letters = ("B", "S") if spelling.begins else ("E",)
    counted = [i for i, (letter, _) in enumerate(spelling.parts) if letter in letters]
    return float(scored.marginals()[:, counted].sum())


def begun_inside(scored: ScoredSequences, spelling: Spelling) -> float:
    """How many spans I begins although there is a label B, as in IOB1: at least so many.

    I begins a span where the row before has neither B nor I of its type. The probability of that is
    at least the one of I less those of both labels on the row before.
    """
    nodes = scored.marginals()
    firsts = scored.data.offsets[:-1][np.diff(scored.data.offsets) > 0]
    found = 0.0
    for label, (letter, name) in enumerate(spelling.parts):
        if letter == "I":
            goes_on = [
                i for i, part in enumerate(spelling.parts) if part in (("B", name), ("I", name))
            ]
            before = np.zeros(len(nodes))
            before[1:] = nodes[:-1, goes_on].sum(axis=1)
            before[firsts] = 0.0
            found += float(np.maximum(nodes[:, label] - before, 0.0).sum())
    return found


def _possible_spans(
    scored: ScoredSequences, spelling: Spelling, threshold: float
) -> Iterator[_Rows]:
    """All spans that may have a probability above the threshold, and perhaps some others.

    Every label of a span has at least the span's probability. Where labels do not tell that a span
    begins or ends, the label that would make it longer has at most what is left of 1.
    """
    nodes = scored.marginals()
    path = _PathProbability(scored, nodes, threshold)
    offsets = scored.data.offsets
    bounds = set(offsets.tolist())
    openers = ("B", "S") if spelling.begins else ("I", "E")
    for label, (letter, name) in enumerate(spelling.parts):
        if letter not in openers:
            continue
        inside, last = (spelling.ids.get((part, name)) for part in ("I", "E"))
        rows = np.flatnonzero(nodes[:, label] > threshold)
        ends = offsets[np.searchsorted(offsets, rows, side="right")]
        for first, end in zip(rows.tolist(), ends.tolist(), strict=True):
            may_be_longer = not spelling.begins and inside is not None and first not in bounds
            if may_be_longer and 1.0 - nodes[first - 1, inside] <= threshold:
                continue
            if letter in ("S", "E"):
                yield _Rows(first, first + 1, name)
            elif spelling.ends:
                for past in _told_ends(path, first, end, label, inside, last, threshold):
                    yield _Rows(first, past, name)
            else:
                for past in _untold_ends(path, first, end, label, inside, threshold):
                    yield _Rows(first, past, name)


class _PathProbability:
    """The probability that labels are followed by one more, or a bound of it.

    Chains of order 0 and 1 tell it exactly, so that a long sequence has not one possible span for
    each pair of its rows. Elsewhere the bound is that of the rarest label; so it is for thresholds
    above which there is one span at most at each row.
    """

    def __init__(self, scored: ScoredSequences, nodes: Nodes, threshold: float) -> None:
        self.nodes = nodes
        exact = scored.chain.order <= 1 and not scored.chain.pruned and scored.ruled is None
        may_overlap = threshold < NO_OVERLAPS
        self._pairs = scored.pair_marginals() if exact and may_overlap and len(nodes) else None

    def longer(self, p: float, t: int, before: int, label: int) -> float:
        """p: That of labels that end with `before` at row t - 1."""
        if self._pairs is None:
            return min(p, float(self.nodes[t, label]))
        whole = float(self.nodes[t - 1, before])
        # Pairs are rounded to 32 bits: a little too much is sorted out later.
        return p * min(1.0, 1.0001 * float(self._pairs[t, before, label]) / whole) if whole else 0.0


def _told_ends(
    path: _PathProbability,
    first: int,
    end: int,
    label: int,
    inside: int | None,
    last: int | None,
    threshold: float,
) -> Iterator[int]:
    """Where spans of two rows or more may end that a row begins; their last label tells it."""
    p = float(path.nodes[first, label])
    for t in range(first + 1, end):
        if last is not None and path.longer(p, t, label, last) > threshold:
            yield t + 1
        if inside is None:
            return
        p, label = path.longer(p, t, label, inside), inside
        if p <= threshold:
            return


def _untold_ends(
    path: _PathProbability, first: int, end: int, label: int, inside: int | None, threshold: float
) -> Iterator[int]:
    """Where spans may end that a row begins, if they end where no label goes on with them."""
    p = float(path.nodes[first, label])
    for t in range(first + 1, end):
        longer = 0.0 if inside is None else float(path.nodes[t, inside])
        if 1.0 - longer > threshold:
            yield t
        if inside is None:
            return
        p, label = path.longer(p, t, label, inside), inside
        if p <= threshold:
            return
    yield end


def _probabilities(
    scored: ScoredSequences, spelling: Spelling, spans: Sequence[_Rows]
) -> npt.NDArray[np.float64]:
    """The probability of each span; 0 of spans whose labels the model lacks.

    Where labels do not tell that a span begins or ends, it must not be a part of a longer one: the
    probability that the span and the row before it, or behind it, are inside is subtracted.
    """
    found = np.zeros(len(spans))
    bounds = set(scored.data.offsets.tolist())
    for group in _apart(spans):
        spelled = [(i, spelling.labels_of(spans[i].name, _length(spans[i]))) for i in group]
        known = [(i, spans[i], labels) for i, labels in spelled if labels is not None]
        found[[i for i, _, _ in known]] = _of_labels(
            scored, [(span.first, labels) for _, span, labels in known]
        )
        longer = []
        for i, span, labels in known:
            inside = spelling.ids.get(("I", span.name))
            if inside is None or (spelling.begins and spelling.ends):
                continue
            if spelling.begins and span.last not in bounds:
                longer.append((i, span.first, [*labels, inside]))
            elif spelling.ends and span.first not in bounds:
                longer.append((i, span.first - 1, [inside, *labels]))
        found[[i for i, _, _ in longer]] -= _of_labels(
            scored, [(first, labels) for _, first, labels in longer]
        )
    return found


def _length(span: _Rows) -> int:
    return span.last - span.first


def _apart(spans: Sequence[_Rows]) -> list[list[int]]:
    """The spans, by index, in groups where those of a group have a row between them.

    spans: Sorted by their first rows.
    """
    groups: list[list[int]] = []
    for i, span in enumerate(spans):
        for group in groups:
            if spans[group[-1]].last + 1 < span.first:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _of_labels(
    scored: ScoredSequences, places: Sequence[tuple[int, list[int]]]
) -> npt.NDArray[np.float64]:
    """P(rows have these labels) of places apart from each other: a first row, and ids of labels."""
    labels = np.zeros(scored.data.n_rows, np.int32)
    for first, own in places:
        labels[first : first + len(own)] = own
    spans = [(first, first + len(own)) for first, own in places]
    return scored.span_probabilities(np.array(spans, np.int64).reshape(-1, 2), labels)
