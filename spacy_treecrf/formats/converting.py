"""Conversion from one format to another, and which formats there are."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_treecrf.formats.alignment import ALIGNMENTS, from_docs, has_entities, to_docs
from spacy_treecrf.formats.annotated_text import (
    BOUNDARIES,
    NOT_ANNOTATED,
    OF_BLANKS,
    AnnotatedText,
    Tally,
)
from spacy_treecrf.formats.brat import SPANS, TEXT, read_brat, write_brat
from spacy_treecrf.formats.conllu import read_conllu, write_conllu
from spacy_treecrf.formats.doccano import read_doccano, write_doccano
from spacy_treecrf.formats.label_studio import read_label_studio, write_label_studio
from spacy_treecrf.formats.languages import blank_pipeline
from spacy_treecrf.formats.offsets import COUNTINGS
from spacy_treecrf.formats.prodigy import read_prodigy, write_prodigy
from spacy_treecrf.formats.token_files import (
    n_boundaries_within_entities,
    read_column_docs,
    read_iob_docs,
    read_json_docs,
    read_spacy_docs,
    write_column_docs,
    write_iob_docs,
    write_spacy_docs,
    written_entities,
)
from spacy_treecrf.storage.files import check_target, refuse_inputs, replacing

if TYPE_CHECKING:
    from spacy.tokens import Doc


@dataclass(frozen=True)
class TextFormat:
    """A format of texts with spans of characters.

    read: What yields texts. write: What forms a file; None: a folder, which is written otherwise.
    counted: Whether offsets may be counted in other ways than the usual one.
    """

    read: Callable[..., Iterator[AnnotatedText]]
    write: Callable[..., Iterator[bytes]] | None
    counted: bool = False


@dataclass(frozen=True)
class TokenFormat:
    """A format of tokens.

    write: What forms a file; None: it is only read.
    entities_alone: Whether it keeps nothing but entities, so that docs without them teach nothing.
    encoded: Whether files may have other encodings than UTF-8.
    keeps_blanks: Whether it has tokens of blanks.
    """

    read: Callable[..., Iterator[Doc]]
    write: Callable[[Iterable[Doc]], Iterator[bytes]] | None
    entities_alone: bool = False
    encoded: bool = False
    keeps_blanks: bool = False


UTF8 = "utf-8"

FORMATS: dict[str, TextFormat | TokenFormat] = {
    "prodigy": TextFormat(read_prodigy, write_prodigy),
    "label-studio": TextFormat(read_label_studio, write_label_studio, counted=True),
    "doccano": TextFormat(read_doccano, write_doccano, counted=True),
    "brat": TextFormat(read_brat, None),
    "conll": TokenFormat(read_column_docs, write_column_docs, entities_alone=True, encoded=True),
    "conllu": TokenFormat(read_conllu, write_conllu),
    "iob": TokenFormat(read_iob_docs, write_iob_docs, entities_alone=True),
    "json": TokenFormat(read_json_docs, None),
    "spacy": TokenFormat(read_spacy_docs, write_spacy_docs, keeps_blanks=True),
}
_BY_SUFFIX = {
    ".spacy": "spacy",
    ".conllu": "conllu",
    ".conll": "conll",
    ".bio": "conll",
    ".tsv": "conll",
    ".iob": "iob",
    ".ann": "brat",
}


@dataclass(frozen=True)
class Options:
    """How a conversion goes.

    language: Whose tokenizer makes tokens, where the source has none and the target needs them.
    alignment: What becomes of spans that do not align with tokens; see `alignment.to_docs`.
    offsets: How doccano and Label Studio count, "utf-16" or "code-points"; None: as they do today.
    force: Whether existing files are replaced.
    encoding: Of a source that is a column file; what is written is UTF-8.
    """

    language: str = "xx"
    alignment: str = "strict"
    offsets: str | None = None
    force: bool = False
    encoding: str = UTF8

    def __post_init__(self) -> None:
        choices = (("alignment", self.alignment, ALIGNMENTS), ("offsets", self.offsets, COUNTINGS))
        for name, value, known in choices:
            if value is not None and value not in known:
                raise ValueError(f"treecrf: {name} is {value!r}; use one of {', '.join(known)}")


def guess_format(path: Path) -> str:
    """The format that a path tells by its suffix, or by being a folder."""
    if path.is_dir():
        return "brat"
    if path.suffix not in _BY_SUFFIX:
        raise ValueError(
            f"treecrf: {path} does not tell its format; name one of {', '.join(FORMATS)} by --from "
            "or --to"
        )
    return _BY_SUFFIX[path.suffix]


def convert(
    source: Path,
    target: Path,
    source_format: str | None = None,
    target_format: str | None = None,
    options: Options | None = None,
) -> Tally:
    """Read a file, or a folder of BRAT's, and write it in another format.

    Returns what was converted and what was left out. Spans of characters stay as they are as long
    as both formats have them.
    """
    options = options or Options()
    reader = _format(source_format or guess_format(source))
    writer = _format(target_format or guess_format(target))
    encoded = isinstance(reader, TokenFormat) and reader.encoded
    if not encoded and not _is_utf8(options.encoding):
        raise ValueError(
            f"treecrf: encoding is {options.encoding!r}, and {source} is no column file; files of "
            "other formats are UTF-8"
        )
    if writer.write is None and writer.read is not read_brat:
        raise ValueError("treecrf: the JSON of spaCy 2 is only read; write spacy or another format")
    if not source.exists():
        raise ValueError(f"treecrf: there is no {source}; check the path")
    tally = Tally()
    if writer.read is read_brat:
        _refuse_folder(target, source)
        write_brat(_texts(reader, source, options, tally), target, options.force)
        return tally
    check_target(target)
    if target.is_file() and not options.force:
        raise ValueError(f"treecrf: {target} exists; use --force to replace it, or another name")
    refuse_inputs(target, [source])
    with replacing(target) as file:
        file.writelines(_content(reader, writer, source, options, tally))
    return tally


def _refuse_folder(target: Path, source: Path) -> None:
    """Refuse a target that is no folder for BRAT's files, or that holds the source."""
    if target.suffix in (TEXT, SPANS) and not target.is_dir():
        raise ValueError(
            f"treecrf: {target} is the name of one file, and each text becomes two of BRAT's; name "
            "a folder"
        )
    refuse_inputs(target, [source])
    folder = target.resolve()
    given = (source.resolve(), source.parent.resolve() / source.name)
    if any(folder in path.parents for path in given):
        raise ValueError(
            f"treecrf: the input {source} lies in the output {target}, which would be replaced; "
            "name another output"
        )


def read_texts(
    path: Path, format: str | None = None, options: Options | None = None
) -> list[AnnotatedText]:
    """The texts of a file in any format, for programs."""
    reader = _format(format or guess_format(path))
    return list(_texts(reader, path, options or Options(), Tally()))


def _format(name: str) -> TextFormat | TokenFormat:
    if name not in FORMATS:
        raise ValueError(f"treecrf: there is no format {name!r}; use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _content(
    reader: TextFormat | TokenFormat,
    writer: TextFormat | TokenFormat,
    source: Path,
    options: Options,
    tally: Tally,
) -> Iterator[bytes]:
    if isinstance(writer, TextFormat):
        assert writer.write is not None
        texts = _texts(reader, source, options, tally)
        return writer.write(texts, **_counting(writer, options))
    assert writer.write is not None
    if isinstance(reader, TokenFormat):
        docs = _docs(reader, source, options)
        return writer.write(_counted_docs(docs, tally, writer))
    texts = _texts(reader, source, options, tally)
    return writer.write(to_docs(texts, blank_pipeline(options.language), options.alignment, tally))


def _texts(
    reader: TextFormat | TokenFormat, source: Path, options: Options, tally: Tally
) -> Iterable[AnnotatedText]:
    if isinstance(reader, TokenFormat):
        return tally.counted(from_docs(_docs(reader, source, options)))
    return tally.counted(reader.read(source, tally, **_counting(reader, options)))


def _docs(reader: TokenFormat, source: Path, options: Options) -> Iterator[Doc]:
    return reader.read(source, options.encoding) if reader.encoded else reader.read(source)


def _is_utf8(encoding: str) -> bool:
    """Whether this is a name of UTF-8, such as utf8, UTF-8, or utf-8-sig for a mark in front."""
    try:
        return codecs.lookup(encoding).name in (UTF8, "utf-8-sig")
    except LookupError:
        return False


def _counting(format: TextFormat, options: Options) -> dict[str, Any]:
    return {"counting": options.offsets} if format.counted else {}


def _counted_docs(docs: Iterable[Doc], tally: Tally, writer: TokenFormat) -> Iterator[Doc]:
    for doc in docs:
        if writer.entities_alone and not has_entities(doc):
            tally.left_out[NOT_ANNOTATED] += 1
            continue
        tally.texts += 1
        n_written = len(doc.ents if writer.keeps_blanks else written_entities(doc))
        tally.spans += n_written
        tally.left_out[OF_BLANKS] += len(doc.ents) - n_written
        if not writer.keeps_blanks:
            tally.left_out[BOUNDARIES] += n_boundaries_within_entities(doc)
        yield doc
