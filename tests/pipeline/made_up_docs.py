"""Made-up docs, of words and of letters, that a model learns from a few of them."""

from __future__ import annotations

import random
from collections.abc import Iterable

import spacy
from spacy.tokens import Doc, Token

PEOPLE, FAMILIES = ["Anna", "Bob", "Carla", "Dov"], ["Smith", "Jones", "Paris"]
PLACES = ["Paris", "Oslo", "Rome"]
VERBS, NOUNS, ADJECTIVES = ["sees", "likes"], ["man", "car", "town"], ["old", "red"]
SYLLABLES = ["ba", "to", "ri", "nel", "kas", "um"]

Words = list[tuple[str, str, str]]  # word, tag, entity type


def sentence(rng: random.Random) -> list[Words]:
    """Chunks of a made-up sentence; those that begin with a noun, name or article are NP."""

    def noun_phrase() -> Words:
        kind = rng.randrange(3)
        if kind == 0:
            family = [(rng.choice(FAMILIES), "NNP", "PER")] * rng.randrange(2)
            return [(rng.choice(PEOPLE), "NNP", "PER"), *family]
        if kind == 1:
            return [(rng.choice(PLACES), "NNP", "LOC")]
        adjective = [(rng.choice(ADJECTIVES), "JJ", "")] * rng.randrange(2)
        return [("the", "DT", ""), *adjective, (rng.choice(NOUNS), "NN", "")]

    verb: Words = [(rng.choice(VERBS), "VBZ", "")]
    if rng.random() < 0.3:
        verb = [("works", "VBZ", "")]
        return [noun_phrase(), verb, [("in", "IN", "")], noun_phrase(), [(".", ".", "")]]
    return [noun_phrase(), verb, noun_phrase(), [(".", ".", "")]]


def word_docs(n: int, seed: int) -> Iterable[Doc]:
    """Docs of one to three sentences with tags, entities and doc.spans["chunks"]."""
    rng = random.Random(seed)
    vocab = spacy.blank("en").vocab
    for _ in range(n):
        chunks = [chunk for _ in range(rng.randint(1, 3)) for chunk in sentence(rng)]
        columns = [column for chunk in chunks for column in chunk]
        ents = [
            f"{'I' if i and columns[i - 1][2] == type_ else 'B'}-{type_}" if type_ else "O"
            for i, (_, _, type_) in enumerate(columns)
        ]
        words, tags = [c[0] for c in columns], [c[1] for c in columns]
        doc = Doc(vocab, words=words, tags=tags, ents=ents)
        spans, start = [], 0
        for chunk in chunks:
            if chunk[-1][1].startswith("NN"):
                spans.append(doc[start : start + len(chunk)])
            start += len(chunk)
        doc.spans["chunks"] = [doc.char_span(s.start_char, s.end_char, "NP") for s in spans]
        yield doc


def letter_docs(n: int, seed: int, label: str = "hyphen") -> Iterable[Doc]:
    """Words of a few syllables, one token for each letter; token._.hyphen: one ends behind it."""
    if not Token.has_extension(label):
        Token.set_extension(label, default=None)
    rng = random.Random(seed)
    vocab = spacy.blank("xx").vocab
    for _ in range(n):
        syllables = [rng.choice(SYLLABLES) for _ in range(rng.randint(1, 5))]
        letters = list("".join(syllables))
        doc = Doc(vocab, words=letters, spaces=[False] * len(letters))
        ends = {sum(map(len, syllables[:k])) for k in range(1, len(syllables))}
        for token in doc:
            token._.set(label, "yes" if token.i + 1 in ends else "no")
        yield doc
