"""Searching settings of a spaCy config by cross-validation, with a journal.

The command line may import it; it imports nothing of the package: it runs spaCy.
"""
