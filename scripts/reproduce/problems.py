"""The three data sets of the dissertation's chapters 3 and 4 that can be had, as it uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.prepare import provide
from spacy_treecrf.corpora import Record, find_corpus, load_corpus
from spacy_treecrf.corpora.items import PAD, Items

Part = tuple[list[Items], list[list[str]]]  # X and y


@dataclass(frozen=True)
class Problem:
    """window: Where the letters or residues are that a position sees."""

    corpus: str
    split: str
    layer: str
    window: Sequence[int]

    def records(self, part: str, seed: int = 0) -> list[Record]:
        """seed: Of the split, where it is random."""
        provide(find_corpus(self.corpus), Path("project.yml"))
        return load_corpus(self.corpus, split=self.split, seed=seed, dev_share=0)[part]

    def part(self, part: str, seed: int = 0, conjunctions: Sequence[int] = ()) -> Part:
        """conjunctions: Lengths of n-grams that are columns too."""
        records = self.records(part, seed)
        X = [window_items(record.words, self.window, conjunctions) for record in records]
        return X, [record.labels[self.layer] for record in records]


PROBLEMS = {
    "Protein": Problem("protein", "published", "structure", range(-5, 6)),
    "NETtalk": Problem("nettalk", "small", "stress", range(-6, 7)),
    # three letters on either side of where a hyphen may be: after the letter at 0
    "Hyphen": Problem("moby", "small", "hyphen", range(-2, 4)),
}


def window_items(
    words: Sequence[str], window: Sequence[int], conjunctions: Sequence[int] = ()
) -> Items:
    """For each word those around it, and the n-grams of neighbours among them."""
    first, last = min(window), max(window)
    padded = [PAD] * -first + list(words) + [PAD] * last
    columns = [
        (start, length)
        for length in (1, *conjunctions)
        for start in range(first, last - length + 2)
    ]
    return [
        {
            f"{length}[{start}]": " ".join(padded[t + start - first :][:length])
            for start, length in columns
        }
        for t in range(len(words))
    ]
