"""Columns from spaCy's docs: words, affixes, clusters, vectors, gazetteers, characters.

The pipe may import it; it imports the encoding of the engine, storage and its own kernels.
"""
