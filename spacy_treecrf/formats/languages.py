"""The languages that spaCy knows."""

from __future__ import annotations

import spacy
from spacy.language import Language
from spacy.util import get_lang_class


def language_class(language: str) -> type[Language]:
    """The class of a language, which needs none of the packages that its tokenizer may need."""
    try:
        found: type[Language] = get_lang_class(language)
    except ImportError as error:
        raise ValueError(
            f"treecrf: spaCy has no language {language!r}; use a code such as en, es or de, or xx "
            "for text of any language"
        ) from error
    return found


def blank_pipeline(language: str) -> Language:
    """A pipeline of a language that has a tokenizer and nothing else."""
    if lacking := lacking_package(language):
        raise ValueError(
            f"treecrf: install what the tokenizer of the language {language!r} needs: {lacking}"
        )
    return spacy.blank(language)


def lacking_package(language: str) -> str:
    """What spaCy says of a package that the tokenizer of a language needs; "" if none lacks."""
    try:
        language_class(language)()
    except ImportError as error:
        return str(error)
    return ""
