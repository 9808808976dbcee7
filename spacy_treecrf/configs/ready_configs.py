"""Configs that ship with the package, as text with its comments."""

from __future__ import annotations

import json
import re
from importlib import resources

# What `init` may write, and what it is for.
TASKS = {
    "ner": "entities of words: doc.ents",
    "chunk": 'chunks, or other spans that do not overlap: doc.spans["chunks"]',
    "tagger": "fine tags: token.tag_",
    "pos": "coarse parts of speech: token.pos_",
    "letters": "sounds of letters: token._.phoneme",
    "nettalk": "sounds and stress of letters: token._.phoneme_stress",
    "stress": "stress of letters: token._.stress",
    "hyphenate": "where words may be hyphenated: token._.hyphen",
    "protein": "secondary structure of proteins: token._.structure",
    "protein8": "the same in eight states, from profiles: token._.structure8",
    "ocr": "handwritten letters from pixels: token._.letter",
}
OF_WORDS = ("ner", "chunk", "tagger", "pos")
FEATURES = ("plain", "clusters", "vectors")

Edit = tuple[str, str, str]  # section, key, value

# Tasks that are another one but for some values.
_VARIANTS: dict[str, tuple[str, list[Edit]]] = {
    "pos": (
        "tagger",
        [
            ("components.treecrf", "task", '"pos"'),
            ("training.score_weights", "tag_acc", "null"),
            ("training.score_weights", "pos_acc", "1.0"),
        ],
    )
}
_EDITS_OF_FEATURES: dict[str, list[Edit]] = {
    "plain": [],
    "clusters": [("components.treecrf.features", "clusters", "[4, 6, 10, 0]")],
    "vectors": [("components.treecrf.features", "vectors", "255")],
}


def ready_config(task: str, lang: str | None = None, features: str = "plain") -> str:
    """The text of a config. lang: spaCy's code of the language; by default the config's own.

    Configs of words have the tokenizer of their language, where it has one of its own.
    """
    if task not in TASKS:
        raise ValueError(f"treecrf: there is no task {task!r}; use one of {', '.join(TASKS)}")
    if features not in FEATURES:
        raise ValueError(
            f"treecrf: there are no features {features!r}; use one of {', '.join(FEATURES)}"
        )
    if features != "plain" and task not in OF_WORDS:
        raise ValueError(
            f"treecrf: the task {task!r} has no {features}, which are features of words; leave "
            f"--features out, or use one of the tasks {', '.join(OF_WORDS)}"
        )
    shipped, edits = _VARIANTS.get(task, (task, []))
    text = (resources.files(__package__) / f"{shipped}.cfg").read_text(encoding="utf8")
    text = text.replace(f"{shipped}.cfg", f"{task}.cfg")
    edits = [*edits, *_EDITS_OF_FEATURES[features]]
    if lang is not None:
        edits.append(("nlp", "lang", f'"{lang}"'))
        if lang != "en":  # what comments name
            text = text.replace("lists en", f"lists {lang}").replace("lists/en", f"lists/{lang}")
            text = text.replace("en_core_web_md", "PIPELINE")
    for section, key, value in edits:
        text = with_value(text, section, key, value)
    if lang is not None and task in OF_WORDS:
        text = _with_tokenizer_of(lang, text)
    return text


def _with_tokenizer_of(lang: str, text: str) -> str:
    """A config with the tokenizer that a language has of its own, such as that of Chinese."""
    from spacy_treecrf.formats.languages import language_class

    tokenizer = language_class(lang).default_config["nlp"]["tokenizer"]
    settings = "".join(f"{name} = {json.dumps(own)}\n" for name, own in tokenizer.items())
    block = re.compile(r"(?<=^\[nlp\.tokenizer\]\n)(?:.+\n)*", re.M)
    return block.sub(lambda _: settings, text, count=1)


def with_value(text: str, section: str, key: str, value: str) -> str:
    """A config with another value; everything else, comments too, stays as it is."""
    own = re.compile(rf"(^\[{re.escape(section)}\]\n(?:(?!\[).*\n)*?{re.escape(key)} = ).*$", re.M)
    changed, n = own.subn(lambda found: found[1] + value, text)
    if n != 1:
        raise ValueError(f"treecrf: the config has no {key} in [{section}]")
    return changed
