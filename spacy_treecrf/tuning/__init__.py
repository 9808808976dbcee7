"""Searching settings by cross-validation, with a journal: of a spaCy config, or of column files.

The command line may import it; it imports what trains and scores models for column files. Configs
are trained by spaCy itself.
"""
