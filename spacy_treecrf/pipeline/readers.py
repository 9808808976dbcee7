"""Training data whose tokens and sentences are given."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.corpus import walk_corpus
from spacy.util import registry


def segmented_corpus(
    path: str | Path | None, limit: int = 0
) -> Callable[[Language], Iterable[Example]]:
    """Examples from .spacy files, with the tokens and sentence boundaries of the annotated docs.

    spaCy's own reader has the pipeline tokenize the text again and find the sentences. Where both
    are part of the data, as in CoNLL files, the model should see them in training, too.
    limit: read no more docs than this; 0: all.
    """
    if path is None:
        raise ValueError(
            "treecrf: the reader spacy_treecrf.SegmentedCorpus.v1 has no path; give a .spacy file, "
            "for instance by --paths.train on the command line"
        )
    place = Path(path)
    if not place.exists():
        raise ValueError(f"treecrf: {place} does not exist; give a .spacy file or a folder of them")

    def read(nlp: Language) -> Iterator[Example]:
        for n, reference in enumerate(_docs(nlp, place)):
            if limit and n >= limit:
                return
            yield Example(_without_annotation(nlp, reference), reference)

    return read


registry.readers("spacy_treecrf.SegmentedCorpus.v1", func=segmented_corpus)


def _docs(nlp: Language, path: Path) -> Iterator[Doc]:
    for file in walk_corpus(path, ".spacy"):
        yield from DocBin().from_disk(file).get_docs(nlp.vocab)


def _without_annotation(nlp: Language, doc: Doc) -> Doc:
    starts: list[bool | int | None] | None = None
    if doc.has_annotation("SENT_START"):
        starts = [token.is_sent_start for token in doc]
    return Doc(
        nlp.vocab,
        words=[token.text for token in doc],
        spaces=[bool(token.whitespace_) for token in doc],
        sent_starts=starts,
    )
