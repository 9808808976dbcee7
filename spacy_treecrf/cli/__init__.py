"""The command line: `spacy-treecrf`, or `python -m spacy_treecrf`."""
