"""Where the user data of docs keep what is said of their labels beside the labels themselves."""

from __future__ import annotations

LATTICE = "treecrf_lattice"  # what a teacher says of all labels of a doc
WEIGHT = "treecrf_weight"  # the extension of docs, spans and tokens
DOC_WEIGHT = ("._.", WEIGHT, None, None)  # where spaCy keeps that of a doc
