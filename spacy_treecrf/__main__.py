"""`python -m spacy_treecrf`: the command line."""

from spacy_treecrf.cli.app import main

if __name__ == "__main__":
    main()
