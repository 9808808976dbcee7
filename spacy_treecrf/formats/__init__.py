"""Formats of annotation tools: texts with labelled spans, in and out.

Prodigy, Label Studio, doccano and BRAT keep spans of characters, and are read as `AnnotatedText`s;
column files, CoNLL-U and .spacy files keep tokens, and are read as spaCy's docs. The command
line, audits, suggestions and clusters may import it; it imports corpora, labels and the reader of
column files.
"""
