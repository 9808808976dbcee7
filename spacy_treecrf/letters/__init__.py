"""Pipes that turn the labels of letters into what people read: hyphens and pronunciations.

The command line imports it, and spaCy finds its factories by entry points. It imports the pipe.
"""
