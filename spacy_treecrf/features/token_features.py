"""The features block of a config for docs of words: `spacy_treecrf.TokenFeatures.v1` and `.v2`.

This module is loaded by an entry point: it must not load numba.
"""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any

from spacy.util import registry

from spacy_treecrf.features.attributes import TOKEN_ATTRS, TokenAttribute
from spacy_treecrf.features.clusters import Clusters
from spacy_treecrf.features.custom import ExtensionSource, FunctionSource
from spacy_treecrf.features.document import KINDS as DOCUMENT_KINDS
from spacy_treecrf.features.document import document_sources
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.gazetteers import GazetteerSource
from spacy_treecrf.features.lexemes import LEXEME_ATTRS, LexemeSource
from spacy_treecrf.features.settings import (
    checked_choices,
    checked_gazetteers,
    checked_integer,
    checked_lengths,
    checked_patterns,
    checked_window,
    checked_windows,
    refused,
)
from spacy_treecrf.features.source import Source
from spacy_treecrf.features.vectors import KINDS as VECTOR_KINDS
from spacy_treecrf.features.vectors import Vectors

MAX_AFFIX = 32
MAX_PATH = 32
MAX_VECTOR_BINS = 255

DEFAULT_ATTRS: dict[str, list[int]] = {
    "LOWER": [-2, -1, 0, 1, 2],
    "SHAPE": [-2, -1, 0, 1, 2],
    "ORTH": [0],
}
# What version 2 takes where version 1 takes something else: that of the ready config of entities.
DEFAULTS_OF_VERSION_2: dict[str, Any] = {
    "attrs": DEFAULT_ATTRS | {"ORTH": [-1, 0, 1]},
    "document": list(DOCUMENT_KINDS),
}


# Long: the docstring explains each setting.
# Many parameters: spaCy reads them from the block of a config.
@registry.misc("spacy_treecrf.TokenFeatures.v1")  # type: ignore[untyped-decorator]
def create_token_features(
    attrs: dict[str, list[int]] = DEFAULT_ATTRS,
    prefixes: list[int] = [1, 2, 3, 4],  # noqa: B006
    suffixes: list[int] = [1, 2, 3, 4],  # noqa: B006
    affix_window: list[int] = [0],  # noqa: B006
    clusters: list[int] = [],  # noqa: B006
    cluster_window: list[int] = [-1, 0, 1],  # noqa: B006
    vectors: int = 0,
    vector_window: list[int] = [-1, 0, 1],  # noqa: B006
    vector_columns: str = "numeric",
    extensions: dict[str, list[int]] = {},  # noqa: B006
    patterns: dict[str, str] = {},  # noqa: B006
    pattern_window: list[int] = [0],  # noqa: B006
    gazetteers: dict[str, list[str] | str] = {},  # noqa: B006
    gazetteer_from_entities: bool = False,
    gazetteer_window: list[int] = [-1, 0, 1],  # noqa: B006
    document: list[str] = [],  # noqa: B006
    document_window: list[int] = [0],  # noqa: B006
    function: Callable[[Any], Any] | None = None,
    function_window: list[int] = [0],  # noqa: B006
    outside_is_missing: bool = False,
) -> Extractor:
    """Features of the tokens of a doc. Windows are offsets within the sequence: -1 is the token
    before; at every offset a column tells where the sequence has no token.

    attrs: Attributes of spaCy with their windows: of words (ORTH, LOWER, SHAPE, IS_TITLE, ...), or
        set by other pipes (TAG, POS, DEP, LEMMA, MORPH, ENT_TYPE, ...).
    prefixes, suffixes: Lengths, of the word in lower case; longer than the word, they are absent.
    clusters: Lengths of the paths of Brown clusters, 0 for the whole path. Training needs
        spacy-lookups-data or the table lexeme_cluster in the vocab; the model keeps it.
    vectors: Bins of each dimension of the pipeline's word vectors; 0: they are not used.
    vector_columns: "numeric", or "indicators": each bin is a feature of its own.
    extensions: Token extension attributes with their windows: texts, bools, numbers, vectors.
    patterns: Regular expressions by name; a flag tells if the token's text has a match anywhere
        (re.search, as in spaCy's Matcher). For the whole token, put it between ^ and \\Z: in a
        config file, $ has to be written $$. A pattern such as ^(a+)+\\Z takes no more time on
        long words than others; refused is a pattern that repeats something with repetitions or
        alternatives and also looks ahead or behind, refers to a group, or is atomic.
    gazetteers: By name, a list of phrases, a text file with a phrase in each line, or a folder of
        such files, each a list; read when training begins. Case does not matter; of
        overlapping phrases the longest counts.
    gazetteer_from_entities: Also the entities of the training data, a list for each label, and one
        of the words that its longer entities begin and end with. Training documents are cut into
        blocks, and none sees what its own block alone has taught.
    document: What the rest of the document says about a word. "case": how it is cased elsewhere
        (a first capital at the start of a sequence says nothing); "repeated": how often it is there
        with a capital; "neighbours": the words around it there; "heading": is the sequence in
        capitals or title case; "runs": the longest run of capitalised words elsewhere that holds
        the word (of "Clinton" perhaps "Bill Clinton"); "opening": the document's first word.
    function: A registered function from a doc to a dict of values for each token.
    outside_is_missing: At offsets where the sequence has no token, values are missing, as those of
        extensions that are None: setting "missing" of the model tells what becomes of them.
    """
    windows = checked_windows("attrs", attrs)
    if unknown := [a for a in windows if a not in LEXEME_ATTRS and a not in TOKEN_ATTRS]:
        known = ", ".join([*LEXEME_ATTRS, *TOKEN_ATTRS])
        raise refused("attrs", unknown[0], f"attributes of spaCy among {known}")
    prefix_lengths = checked_lengths("prefixes", prefixes, 1, MAX_AFFIX)
    suffix_lengths = checked_lengths("suffixes", suffixes, 1, MAX_AFFIX)
    path_lengths = checked_lengths("clusters", clusters, 0, MAX_PATH)
    bins = f"0, or the number of bins, from 2 to {MAX_VECTOR_BINS}"
    n_bins = checked_integer("vectors", vectors, {0, *range(2, MAX_VECTOR_BINS + 1)}, bins)
    if vector_columns not in VECTOR_KINDS:
        raise refused("vector_columns", vector_columns, " or ".join(map(repr, VECTOR_KINDS)))
    if not isinstance(gazetteer_from_entities, bool):
        raise refused("gazetteer_from_entities", gazetteer_from_entities, "true or false")
    if not isinstance(outside_is_missing, bool):
        raise refused("outside_is_missing", outside_is_missing, "true or false")
    if function is not None and not callable(function):
        raise refused("function", function, 'a registered function, {"@misc": "..."}, or null')

    in_clusters = checked_window("cluster_window", cluster_window)
    in_vectors = checked_window("vector_window", vector_window)
    in_gazetteers = checked_window("gazetteer_window", gazetteer_window)
    lists = checked_gazetteers("gazetteers", gazetteers)
    lexemes = LexemeSource(
        {attr: window for attr, window in windows.items() if attr in LEXEME_ATTRS},
        prefix_lengths,
        suffix_lengths,
        checked_window("affix_window", affix_window),
        checked_patterns("patterns", patterns),
        checked_window("pattern_window", pattern_window),
        Clusters(path_lengths, in_clusters) if path_lengths else None,
        Vectors(n_bins, in_vectors, vector_columns) if n_bins else None,
    )
    sources: list[Source] = [lexemes]
    sources += [TokenAttribute(a, window) for a, window in windows.items() if a in TOKEN_ATTRS]
    if lists or gazetteer_from_entities:
        sources.append(GazetteerSource(lists, gazetteer_from_entities, in_gazetteers))
    kinds = checked_choices("document", document, DOCUMENT_KINDS)
    sources += document_sources(kinds, checked_window("document_window", document_window))
    for name, window in checked_windows("extensions", extensions).items():
        sources.append(ExtensionSource(name, window))
    in_function = checked_window("function_window", function_window)
    if function is not None:
        sources.append(FunctionSource(function, in_function))
    return Extractor(sources, {lexemes.name: n_bins} if n_bins else {}, outside_is_missing)


def create_token_features_v2(**settings: Any) -> Extractor:
    """The features of version 1, but for two defaults: words as they are spelt (ORTH) are also
    seen before and behind the token, and all of `document` is on.

    A pipe has them whose config names no features, so that it sees what the ready config of
    entities does.
    """
    made: Extractor = create_token_features(**{**DEFAULTS_OF_VERSION_2, **settings})
    return made


def _with_own_defaults(parameters: Signature) -> Signature:
    """The parameters of version 2, which configs are checked against and filled from."""
    own = dict(parameters.parameters)
    for name, default in DEFAULTS_OF_VERSION_2.items():
        own[name] = own[name].replace(default=default)
    return parameters.replace(parameters=list(own.values()))


create_token_features_v2.__signature__ = _with_own_defaults(  # type: ignore[attr-defined]
    signature(create_token_features)
)
create_token_features_v2.__annotations__ = create_token_features.__annotations__
registry.misc("spacy_treecrf.TokenFeatures.v2", func=create_token_features_v2)
