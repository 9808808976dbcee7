"""How the same words are annotated elsewhere in a corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spacy_treecrf.labels.biluo import OUTSIDE, Label, TokenSpan

Phrase = tuple[str, ...]
# When other places overrule one: so many of them at least, and this share of them agree.
FEWEST_PLACES = 3
CLEAR_SHARE = 0.8


@dataclass(frozen=True)
class Occurrence:
    """A place where a phrase stands that is annotated somewhere, and its label there."""

    start: int
    end: int
    label: str  # "O" where none of its tokens belongs to a span


class Phrases:
    """The labels of all phrases that are annotated somewhere, counted over the corpus.

    Where labels are no spans, phrases are single words, and every annotated word is one.
    """

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        spans: Sequence[Sequence[TokenSpan]],
        annotated: Sequence[Sequence[bool]],
        documents: Sequence[int],
    ) -> None:
        """annotated: Which positions of each sequence are annotated, be it by "O".

        documents: The number of the document of each sequence.
        """
        self._words, self._spans, self._annotated = words, spans, annotated
        self._documents = documents
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        for own, found in zip(words, spans, strict=True):
            for start, end, _ in found:
                self._lengths[own[start]].add(end - start)
        known = {
            tuple(own[start:end])
            for own, found in zip(words, spans, strict=True)
            for start, end, _ in found
        }
        self._counts: defaultdict[Phrase, Counter[str]] = defaultdict(Counter)
        self._nearby: defaultdict[tuple[int, Phrase], Counter[str]] = defaultdict(Counter)
        self._known = known
        for s, own in enumerate(words):
            for one in self.occurrences(s):
                phrase = tuple(own[one.start : one.end])
                self._counts[phrase][one.label] += 1
                self._nearby[documents[s], phrase][one.label] += 1

    def occurrences(self, sequence: int) -> Iterator[Occurrence]:
        """The places in a sequence that count; those that cut a span, or lie in one, do not."""
        words, annotated = self._words[sequence], self._annotated[sequence]
        span_at: dict[int, TokenSpan] = {}
        for span in self._spans[sequence]:
            span_at.update(dict.fromkeys(range(span[0], span[1]), span))
        for start, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                end = start + length
                if end > len(words) or tuple(words[start:end]) not in self._known:
                    continue
                if not all(annotated[start:end]):
                    continue
                covered = {span_at.get(t) for t in range(start, end)}
                if covered == {None}:
                    yield Occurrence(start, end, OUTSIDE)
                    continue
                whole = span_at.get(start)
                if whole is not None and whole[:2] == (start, end):
                    yield Occurrence(start, end, whole[2])

    def elsewhere(
        self, sequence: int, start: int, end: int, label: Label
    ) -> tuple[Counter[str], Counter[str]]:
        """Labels of the phrase in all other places, and in those of the same document.

        label: What it has here; None: this place is not counted.
        """
        phrase = tuple(self._words[sequence][start:end])
        here = Counter([] if label is None else [label])
        every = self._counts.get(phrase, Counter())
        nearby = self._nearby.get((self._documents[sequence], phrase), Counter())
        return every - here, nearby - here

    def doubtful(self, sequence: int) -> Iterator[tuple[Occurrence, str]]:
        """Places where other ones clearly agree on another label, and that label."""
        for one in self.occurrences(sequence):
            label = clear_label(self.elsewhere(sequence, one.start, one.end, one.label)[0])
            if label is not None and label != one.label:
                yield one, label


def clear_label(counts: Counter[str]) -> str | None:
    """The label that nearly all of enough places have; None if there is none."""
    if counts.total() < FEWEST_PLACES:
        return None
    label, n = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return label if n >= CLEAR_SHARE * counts.total() else None
