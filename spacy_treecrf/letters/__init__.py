"""Pipes that turn the labels of letters into what people read: words with hyphens.

Nothing imports it; spaCy finds its factories by entry points. It imports the pipe's names.
"""
