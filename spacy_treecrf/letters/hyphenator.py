"""A pipe that writes words with their hyphens, behind one that labels letters."""

from __future__ import annotations

from spacy.language import Language
from spacy.tokens import Doc, Token

from spacy_treecrf.pipeline.annotation.confidence import NAME as PROBABILITY

HYPHENATED = "hyphenated"  # the attribute of docs


@Language.factory(
    "treecrf_hyphenator",
    assigns=[f"doc._.{HYPHENATED}"],
    default_config={"attribute": "hyphen", "label": "yes", "hyphen": "-", "probability": 0.0},
)
def make_hyphenator(
    nlp: Language, name: str, attribute: str, label: str, hyphen: str, probability: float
) -> Hyphenator:
    """Make a pipe that writes doc._.hyphenated.

    attribute: The attribute of letters that tells where hyphens may follow: token._.<attribute>.
    label: Its value there. hyphen: What is written; "\\u00ad" is the hyphen that shows only where
    a line breaks.
    probability: Hyphens that the tagger is less sure of are left out: in print, a wrong one is
    worse than none. It needs `probabilities = true` in the tagger's config.
    """
    if not 0 <= probability <= 1:
        raise ValueError(
            f"treecrf: setting 'probability' of {name} is {probability}; use a number from 0 to 1"
        )
    return Hyphenator(attribute, label, hyphen, probability)


class Hyphenator:
    """Writes a doc's text with hyphens where its letters say so, in doc._.hyphenated."""

    def __init__(self, attribute: str, label: str, hyphen: str, probability: float) -> None:
        self.attribute = attribute
        self.label = label
        self.hyphen = hyphen
        self.probability = probability
        if not Doc.has_extension(HYPHENATED):
            Doc.set_extension(HYPHENATED, default=None)

    def __call__(self, doc: Doc) -> Doc:
        if not Token.has_extension(self.attribute):
            raise ValueError(
                f"treecrf: letters have no attribute ._.{self.attribute}, which would tell where "
                "hyphens go; put the tagger in front of the hyphenator, or set its 'attribute'"
            )
        doc._.set(HYPHENATED, "".join(map(self._written, doc)))
        return doc

    def _written(self, letter: Token) -> str:
        return letter.text + (self.hyphen if self._follows(letter) else "") + letter.whitespace_

    def _follows(self, letter: Token) -> bool:
        """Whether a hyphen follows: between two letters, where the tagger says so."""
        doc, after = letter.doc, letter.i + 1
        if not letter.is_alpha or after == len(doc) or not doc[after].is_alpha:
            return False
        if letter._.get(self.attribute) != self.label:
            return False
        return not self.probability or bool(letter._.get(PROBABILITY) >= self.probability)
