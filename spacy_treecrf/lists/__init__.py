"""Word lists of a language, from packages of PyPI: gazetteers for the features of a pipe.

The command line may import it; it imports `storage` alone. The packages, the extra "lists", are
loaded when their lists are made.
"""
