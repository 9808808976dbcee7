"""Commands about corpora: to prepare, convert and audit them, and what else is made of texts.

`cli/app.py` imports them; they import `cli/shared` and whatever is below the command line.
"""
