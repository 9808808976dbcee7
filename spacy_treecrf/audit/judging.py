"""Judgements of one fold: exact probabilities of what is annotated, and of what is suggested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.audit.cross_fitting import HeldOut
from spacy_treecrf.audit.findings import INCONSISTENT, LABEL, Finding, JudgedSpan
from spacy_treecrf.audit.phrases import Phrases, clear_label
from spacy_treecrf.audit.ranking import kind_of, score_of, support
from spacy_treecrf.audit.regions import Region, differing_regions
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.labels.biluo import OUTSIDE, TokenSpan, biluo_spans, labels_of_spans

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Annotation:
    """What a corpus says: the spans of each sequence, or the labels of its positions as spans."""

    labels: list[str]  # by id
    spans: list[list[TokenSpan]]
    has_spans: bool


@dataclass(frozen=True)
class FoldJudgement:
    """What the models of one fold say about its sequences, whose numbers are those of the corpus.

    label_probabilities: P(annotated label) by sequence; NaN where there is none.
    """

    findings: list[Finding]
    judged: list[JudgedSpan]
    label_probabilities: list[npt.NDArray[np.float64]]


class Judge:
    """Compares the annotation of held-out sequences with what models say about them."""

    def __init__(self, held_out: HeldOut, annotation: Annotation, phrases: Phrases | None) -> None:
        self._numbers = held_out.sequences.tolist()
        self._scored = held_out.scored
        self._annotation = annotation
        self._phrases = phrases
        self._data = held_out.scored.data
        self._ids = {label: i for i, label in enumerate(annotation.labels)}
        self._bounds = list(pairwise(self._data.offsets.tolist()))

    def judgement(self) -> FoldJudgement:
        nodes = self._scored.marginals()
        known = self._data.labels != UNKNOWN_LABEL
        chances = np.full(len(known), np.nan)
        chances[known] = nodes[known, self._data.labels[known]]
        if self._annotation.has_spans:
            findings, judged = self._spans()
        else:
            findings, judged = self._positions(nodes, chances)
        by_sequence = [chances[first:last] for first, last in self._bounds]
        return FoldJudgement([self._beside_others(one) for one in findings], judged, by_sequence)

    def _positions(
        self, nodes: npt.NDArray[np.float64], chances: npt.NDArray[np.float64]
    ) -> tuple[list[Finding], list[JudgedSpan]]:
        """Labels that are no spans, position by position."""
        best = nodes.argmax(axis=1)
        findings, judged = [], []
        for number, (first, _) in zip(self._numbers, self._bounds, strict=True):
            for start, end, label in self._annotation.spans[number]:
                p = float(chances[first + start])
                judged.append(JudgedSpan(number, start, end, label, p))
                other = int(best[first + start])
                if self._annotation.labels[other] == label:
                    continue
                q = float(nodes[first + start, other])
                suggested = (start, end, self._annotation.labels[other])
                score = score_of(p, q, LABEL)
                findings.append(
                    Finding(
                        number, start, end, LABEL, ((start, end, label),), (suggested,), p, q, score
                    )
                )
        return findings, judged

    def _spans(self) -> tuple[list[Finding], list[JudgedSpan]]:
        predicted = self._scored.labels()
        names = self._annotation.labels
        regions: list[tuple[int, Region, bool]] = []
        for i, (first, last) in enumerate(self._bounds):
            spans = biluo_spans([names[y] for y in predicted[first:last]])
            own = differing_regions(self._annotation.spans[self._numbers[i]], spans)
            regions += ((i, region, False) for region in own)
            regions += ((i, region, True) for region in self._doubtful(i, own))
        known = self._data.labels != UNKNOWN_LABEL
        regions = [
            (i, region, by_phrase)
            for i, region, by_phrase in regions
            if known[self._rows(i, region.start, region.end)].all()
        ]
        places = [(i, region) for i, region, _ in regions]
        annotated = self._probabilities(
            [(i, one.start, one.end, one.annotated) for i, one in places]
        )
        suggested = self._probabilities(
            [(i, one.start, one.end, one.suggested) for i, one in places]
        )
        findings = [
            self._finding(i, region, by_phrase, float(p), float(q))
            for (i, region, by_phrase), p, q in zip(regions, annotated, suggested, strict=True)
        ]
        return findings, self._judged_spans()

    def _finding(self, i: int, region: Region, by_phrase: bool, p: float, q: float) -> Finding:
        kind = kind_of(region.annotated, region.suggested)
        return Finding(
            self._numbers[i],
            region.start,
            region.end,
            INCONSISTENT if by_phrase else kind,
            region.annotated,
            region.suggested,
            p,
            q,
            score_of(p, q, kind),
        )

    def _judged_spans(self) -> list[JudgedSpan]:
        asked = [
            (i, span[0], span[1], (span,))
            for i, number in enumerate(self._numbers)
            for span in self._annotation.spans[number]
        ]
        chances = self._probabilities(asked)
        return [
            JudgedSpan(self._numbers[i], start, end, spans[0][2], float(p))
            for (i, start, end, spans), p in zip(asked, chances, strict=True)
        ]

    def _doubtful(self, i: int, others: Sequence[Region]) -> Iterator[Region]:
        """Regions where the same phrase has another label elsewhere, outside of other regions."""
        if self._phrases is None:
            return
        past = 0
        for one, label in self._phrases.doubtful(self._numbers[i]):
            if one.start < past or any(region.overlaps(one.start, one.end) for region in others):
                continue
            past = one.end
            sides = [
                () if name == OUTSIDE else ((one.start, one.end, name),)
                for name in (one.label, label)
            ]
            yield Region(one.start, one.end, sides[0], sides[1])

    def _rows(self, i: int, start: int, end: int) -> slice:
        first = self._bounds[i][0]
        return slice(first + start, first + end)

    def _probabilities(
        self, asked: Sequence[tuple[int, int, int, tuple[TokenSpan, ...]]]
    ) -> npt.NDArray[np.float64]:
        """P(tokens start to end - 1 of sequence i spell exactly these spans) of each place.

        Places do not overlap each other.
        """
        order = sorted(range(len(asked)), key=lambda k: asked[k][:2])
        rows = np.empty((len(asked), 2), np.int64)
        labels: Ids = np.zeros(self._data.n_rows, np.int32)
        for k, at in enumerate(order):
            i, start, end, spans = asked[at]
            own = self._rows(i, start, end)
            rows[k] = own.start, own.stop
            moved = [(a - start, b - start, name) for a, b, name in spans]
            labels[own] = [self._ids[label] for label in labels_of_spans(moved, end - start)]
        found = np.empty(len(asked))
        found[order] = self._scored.span_probabilities(rows, labels)
        return found

    def _beside_others(self, finding: Finding) -> Finding:
        """The finding with how the same phrase is annotated elsewhere, which adds to its score."""
        if self._phrases is None:
            return finding
        start, end, name = (finding.suggested or finding.annotated)[0]
        wanted = name if finding.suggested else OUTSIDE
        same = [span[2] for span in finding.annotated if span[:2] == (start, end)]
        here = same[0] if same else None if finding.annotated else OUTSIDE
        every, nearby = self._phrases.elsewhere(finding.sequence, start, end, here)
        score = finding.score
        if self._annotation.has_spans:
            score += support(every, nearby, wanted, here or "")
        return replace(
            finding,
            score=score,
            elsewhere=tuple(sorted(every.items(), key=lambda item: (-item[1], item[0]))),
            inconsistent=clear_label(every) == wanted,
        )
