"""Ready configs for `spacy train`, and the edits that `spacy-treecrf init` makes in them.

The project's folder configs/ has copies of the files here. The command line may import it; it
imports nothing of the package.
"""
