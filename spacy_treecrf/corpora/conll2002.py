"""CoNLL-2002: names in Spanish and Dutch news."""

from __future__ import annotations

import re
from pathlib import Path

from spacy_treecrf.corpora.conll import DOCUMENT_START
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import CorpusFile, read_columns

SPANISH = (
    CorpusFile(
        "conll2002/esp.train", "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008"
    ),
    CorpusFile(
        "conll2002/esp.testa", "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87"
    ),
)
DUTCH = (
    CorpusFile(
        "conll2002/ned.train", "0a419dcb356b62c8cff38515675550b3d5dbea9f45a1c4956328dbd5cc7fcdbc"
    ),
    CorpusFile(
        "conll2002/ned.testa", "51259d4bfe52462f211d3d0b67173a7ecbfa296e199f6c6bd0895f4c78155057"
    ),
)
# How a report of the Spanish agency begins: "Santander , 25 may ( EFE ) ."
DATELINE = re.compile(r" , \d{1,2} [a-z]{3} \( EFE\w* \) \.$")


def read_conll2002(path: Path) -> list[LabelledSequence]:
    """Sentences with tags and entities in BIO, and the numbers of their documents.

    Dutch documents begin at their marks. Spanish files have none: a report begins at the sentence
    that ends with its dateline. The files of the shared task are in latin-1, later copies in UTF-8.
    """
    sequences: list[LabelledSequence] = []
    document = 0
    columns = ["word", "tag", "ner"]
    for rows in read_columns(path, encoding=_encoding(path), columns=columns):
        begins = rows[0][0] == DOCUMENT_START
        if begins:
            rows = rows[1:]
        words, tags, ner = ([row[i] for row in rows] for i in range(3))
        begins = begins or DATELINE.search(" ".join(words)) is not None
        document += begins and bool(sequences)
        if words:
            layers = {"tag": tags, "ner": ner}
            key = f"{path.name} {document}"
            sequences.append(LabelledSequence(words, layers, key=key, document=document))
    return sequences


def _encoding(path: Path) -> str:
    """UTF-8 where the bytes are valid in it: text in latin-1 with any accent is not."""
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"
