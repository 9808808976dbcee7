"""Spans of characters and spans of tokens: texts as docs, and docs as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from spacy_treecrf.formats.annotated_text import (
    MISALIGNED,
    NOT_ANNOTATED,
    OVERLAPPING,
    AnnotatedText,
    LabelledSpan,
    Tally,
)

ALIGNMENTS = ("strict", "contract", "expand")


def to_docs(
    texts: Iterable[AnnotatedText], nlp: Language, alignment: str, tally: Tally
) -> Iterator[Doc]:
    """Docs whose entities are the spans; what cannot be one is counted in the tally.

    Entities of docs are gold: so texts that nobody has annotated are left out, and counted too.

    alignment: What becomes of a span that begins or ends within a token: left out ("strict"), cut
    to the tokens inside of it ("contract"), or widened to the tokens that it touches ("expand").
    """
    for each in texts:
        if each.predicted:
            tally.leave_out(each, NOT_ANNOTATED)
            continue
        doc = _with_tokens(each, nlp) or nlp.make_doc(each.text)
        found = [_token_span(doc, span, alignment) for span in each.spans]
        aligned = [span for span in found if span is not None]
        kept = filter_spans(aligned)
        tally.left_out[MISALIGNED] += len(found) - len(aligned)
        tally.left_out[OVERLAPPING] += len(aligned) - len(kept)
        tally.spans -= len(found) - len(kept)
        doc.set_ents(kept, default="outside")
        yield doc


def _token_span(doc: Doc, span: LabelledSpan, alignment: str) -> Span | None:
    found = doc.char_span(span.start, span.end, label=span.label, alignment_mode=alignment)
    # spaCy's entities neither begin nor end with tokens of blanks.
    while found is not None and len(found) and found[0].is_space:
        found = doc[found.start + 1 : found.end]
    while found is not None and len(found) and found[-1].is_space:
        found = doc[found.start : found.end - 1]
    if found is None or not len(found):
        return None
    return Span(doc, found.start, found.end, label=span.label)


def _with_tokens(each: AnnotatedText, nlp: Language) -> Doc | None:
    """A doc of the tokens that the text came with; None if they do not spell the text."""
    if each.tokens is None:
        return None
    words: list[str] = []
    spaces: list[bool] = []
    end = 0
    for start, past in each.tokens:
        gap = each.text[end:start]
        if gap not in ("", " ") or (gap and not words):
            return None
        if words:
            spaces[-1] = bool(gap)
        words.append(each.text[start:past])
        spaces.append(False)
        end = past
    rest = each.text[end:]
    if rest not in ("", " "):
        return None
    spaces[-1] = bool(rest)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def from_docs(docs: Iterable[Doc]) -> Iterator[AnnotatedText]:
    """Texts whose spans are the entities of the docs."""
    for doc in docs:
        spans = [LabelledSpan(e.start_char, e.end_char, e.label_) for e in doc.ents]
        tokens = tuple((token.idx, token.idx + len(token)) for token in doc)
        yield AnnotatedText(doc.text, tuple(spans), tokens, predicted=not has_entities(doc))


def has_entities(doc: Doc) -> bool:
    """Whether the entities of a doc are known; there may be none of them."""
    return bool(doc.has_annotation("ENT_IOB"))
