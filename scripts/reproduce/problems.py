"""The three data sets of chapters 3 and 4 of Hao (2009) that can be had, used as they are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.prepare import provide
from scripts.reproduce.windows import PAD, Items
from spacy_treecrf.corpora import LabelledSequence, find_corpus, load_corpus

Part = tuple[list[Items], list[list[str]]]  # X and y


@dataclass(frozen=True)
class Problem:
    """A data set.

    window: The offsets of the letters or residues that a position sees.
    """

    corpus: str
    split: str
    layer: str
    window: Sequence[int]

    def sequences(self, part: str, seed: int = 0) -> list[LabelledSequence]:
        """The sequences of a part.

        seed: The seed of the split, where it is random.
        """
        provide(find_corpus(self.corpus), Path("project.yml"))
        return load_corpus(self.corpus, split=self.split, seed=seed, dev_share=0)[part]

    def part(self, part: str, seed: int = 0, conjunctions: Sequence[int] = ()) -> Part:
        """Feature dicts and labels of a part.

        conjunctions: Lengths of n-grams that are columns too.
        """
        sequences = self.sequences(part, seed)
        X = [window_items(sequence.words, self.window, conjunctions) for sequence in sequences]
        return X, [sequence.labels[self.layer] for sequence in sequences]


PROBLEMS = {
    "Protein": Problem("protein", "published", "structure", range(-5, 6)),
    "NETtalk": Problem("nettalk", "small", "stress", range(-6, 7)),
    # Three letters on either side of the place of a hyphen, which is after the letter at 0.
    "Hyphen": Problem("moby", "small", "hyphen", range(-2, 4)),
}


def window_items(
    words: Sequence[str], window: Sequence[int], conjunctions: Sequence[int] = ()
) -> Items:
    """The words around each word, and the n-grams of neighbours among them."""
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
