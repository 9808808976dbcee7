"""Features of docs that have one token for each character."""

import unicodedata

import numpy as np
import numpy.typing as npt
from spacy.util import registry

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.settings import (
    checked_groups,
    checked_lengths,
    checked_window,
    refused,
)
from spacy_treecrf.features.source import Reading, Source, Window

CLASSES = {"L": "letter", "M": "mark", "N": "digit", "P": "punct", "S": "symbol", "Z": "space"}
VOWELS = frozenset("aeiouyæøœıаеиоуыэюяіαεηιουω")
_MIX = np.uint64(0x9E3779B97F4A7C15)


# Many parameters: spaCy reads them from the block of a config.
@registry.misc("spacy_treecrf.CharacterFeatures.v1")  # type: ignore[untyped-decorator]
def create_character_features(
    window: list[int] = list(range(-6, 7)),  # noqa: B006
    class_window: list[int] = [-2, -1, 0, 1, 2],  # noqa: B006
    ngrams: list[int] = [2, 3],  # noqa: B006
    ngram_window: list[int] = [-3, -2, -1, 0, 1, 2, 3],  # noqa: B006
    lower: bool = True,
    outside_is_missing: bool = False,
    groups: dict[str, list[str]] = {},  # noqa: B006
    group_window: list[int] = list(range(-6, 7)),  # noqa: B006
    ngram_edges: bool = False,
) -> Extractor:
    """Features for the tokens of `spacy_treecrf.CharacterTokenizer.v1`.

    window: Offsets at which single characters are seen.
    class_window: Offsets of their class: vowel, consonant, digit, punct, space, ... and upper case.
    ngrams: Lengths of the character sequences to look at; [] for none.
    ngram_window: They lie within these offsets.
    lower: See characters in lower case; their class tells upper case.
    outside_is_missing: At offsets where the sequence has no character, values are missing: setting
        "missing" of the model tells what becomes of them.
    groups: Characters that are alike, of each grouping a list: {"charge": ["kr", "de"]} sees where
        a "k" or an "r" is, and where a "d" or an "e". One test of a tree then asks for them all.
    group_window: Offsets at which groups are seen.
    ngram_edges: Character sequences also take in the begin or the end of the text as if it were a
        character, so that "un" at the begin of a word is another one than "un" within it.
    """
    if not isinstance(outside_is_missing, bool):
        raise refused("outside_is_missing", outside_is_missing, "true or false")
    if not isinstance(ngram_edges, bool):
        raise refused("ngram_edges", ngram_edges, "true or false")
    sources: list[Source] = [
        CharacterSource(
            checked_window("window", window),
            checked_window("class_window", class_window, True),
            lower,
        )
    ]
    seen_at = checked_window("group_window", group_window)
    sources += [
        GroupSource(name, members, seen_at, lower)
        for name, members in checked_groups("groups", groups).items()
    ]
    around = checked_window("ngram_window", ngram_window)
    for n in checked_lengths("ngrams", ngrams, 2, 16):
        inside = tuple(o for o in range(min(around), max(around) - n + 2))
        if not inside:
            raise ValueError(
                f"treecrf: setting 'ngrams' has {n}, and no {n} characters fit into "
                f"ngram_window = {ngram_window}; widen it"
            )
        sources.append(NgramSource(n, inside, lower))
        if ngram_edges:
            sources.append(EdgeNgramSource(n, inside, lower))
    return Extractor(sources, outside_is_missing=outside_is_missing)


class CharacterSource(Source):
    """The character of a token, its class, and whether it is upper case."""

    name = "characters"
    attrs = (ORTH,)

    def __init__(self, window: Window, class_window: Window, lower: bool) -> None:
        self.windows = {"char": window, "class": class_window, "upper": class_window}
        self.lower = lower

    def window_of(self, column: str) -> Window | None:
        return self.windows.get(column)

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        return batch.array(ORTH)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        texts = batch.strings(batch.array(ORTH)[positions])
        return Reading(
            {
                "char": [text.lower() if self.lower else text for text in texts],
                "class": [class_of(text) for text in texts],
                "upper": ["True" if text.isupper() else None for text in texts],
            }
        )


class GroupSource(Source):
    """The group that a token's character belongs to; absent if it is in none."""

    attrs = (ORTH,)

    def __init__(self, name: str, members: list[str], window: Window, lower: bool) -> None:
        self.name = self.column = f"group.{name}"
        self.window = window
        self.lower = lower
        self.group_of = {character: group for group in members for character in group}

    def window_of(self, column: str) -> Window | None:
        return self.window if column == self.column else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        return batch.array(ORTH)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        texts = batch.strings(batch.array(ORTH)[positions])
        seen = [text.lower() if self.lower else text for text in texts]
        return Reading({self.column: [self.group_of.get(text) for text in seen]})


class NgramSource(Source):
    """The n characters from a token on; absent where the sequence ends before the last of them."""

    attrs = (ORTH,)

    def __init__(self, n: int, window: Window, lower: bool) -> None:
        self.n = n
        self.name = self.column = f"chars{n}"
        self.window = window
        self.lower = lower

    def window_of(self, column: str) -> Window | None:
        return self.window if column == self.column else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        keys = _keys_of_runs(batch.array(ORTH), self.n)
        keys[~self._whole(batch)] = 0
        return keys

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        orth = batch.array(ORTH)
        whole = self._whole(batch)[positions].tolist()
        texts: list[str | None] = []
        for position, is_whole in zip(positions.tolist(), whole, strict=True):
            text = "".join(batch.strings(orth[position : position + self.n])) if is_whole else None
            texts.append(text.lower() if text and self.lower else text)
        return Reading({self.column: texts})

    def _whole(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Whether all n characters from a token on are in its sequence. shape: (n_tokens,)"""
        return np.arange(batch.n_tokens) + self.n <= batch.sequence_ends()


class EdgeNgramSource(Source):
    """The first n - 1 characters of a sequence, and the last, for the tokens which they are near.

    A token sees at most one begin and one end, so that there is one column for each, whose values
    tell where it lies: "-2:un" is "un" at the begin, which is two places before the token.
    """

    attrs = (ORTH,)

    def __init__(self, n: int, starts: Window, lower: bool) -> None:
        self.n = n
        self.name = f"edges{n}"
        self.columns = {f"first{n}", f"last{n}"}
        self.starts = starts  # offsets at which the n characters may begin, the edge being one
        self.lower = lower

    def window_of(self, column: str) -> Window | None:
        return (0,) if column in self.columns else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        runs = _keys_of_runs(batch.array(ORTH), self.n - 1)
        firsts, lasts = self._places(batch)
        keys = np.zeros(batch.n_tokens, np.uint64)
        for places in (firsts, lasts):
            keys ^= keys >> np.uint64(29)
            keys *= _MIX
            seen = np.flatnonzero(places >= 0)
            keys[seen] += runs[places[seen]] ^ ((places[seen] - seen).view(np.uint64) * _MIX)
        return keys

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        first, last = (
            self._texts(batch, positions, places[positions]) for places in self._places(batch)
        )
        return Reading({f"first{self.n}": first, f"last{self.n}": last})

    def _places(self, batch: Batch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the first and the last n - 1 characters begin that a token sees; -1: nowhere."""
        lengths = np.diff(batch.offsets)
        begin = np.repeat(batch.offsets[:-1], lengths)
        end = np.repeat(batch.offsets[1:], lengths)
        at, low, high = np.arange(batch.n_tokens), min(self.starts), max(self.starts)
        whole = end - begin >= self.n - 1
        # The edge is the character before the first ones, and behind the last.
        first, last = begin, end - (self.n - 1)
        sees_first = whole & (first - 1 - at >= low) & (first - 1 - at <= high)
        sees_last = whole & (last - at >= low) & (last - at <= high)
        return np.where(sees_first, first, -1), np.where(sees_last, last, -1)

    def _texts(
        self, batch: Batch, positions: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> list[str | None]:
        orth = batch.array(ORTH)
        texts: list[str | None] = []
        for position, place in zip(positions.tolist(), places.tolist(), strict=True):
            if place < 0:
                texts.append(None)
                continue
            text = "".join(batch.strings(orth[place : place + self.n - 1]))
            texts.append(f"{place - position}:{text.lower() if self.lower else text}")
        return texts


def _keys_of_runs(orth: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.uint64]:
    """A key for the n characters from each token on, of which there may be fewer at the end."""
    keys = np.zeros(len(orth), np.uint64)
    for i in range(n):
        # Scramble, then add, so that the order of the characters matters.
        keys ^= keys >> np.uint64(29)
        keys *= _MIX
        keys[: max(len(orth) - i, 0)] += orth[i:]
    return keys


def class_of(text: str) -> str:
    """The class of a character; the class of the first one for a longer token."""
    kind = CLASSES.get(unicodedata.category(text[0])[0], "other") if text else "other"
    if kind == "letter":
        base = unicodedata.normalize("NFD", text[0].lower())[0]
        return "vowel" if base in VOWELS else "consonant"
    return "space" if text.isspace() else kind
