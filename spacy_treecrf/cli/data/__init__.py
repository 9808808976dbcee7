"""Commands about data: corpora, column files, word lists and vectors, what to annotate next.

`cli/app.py` imports them; they import `cli/shared` and whatever is below the command line.
"""
