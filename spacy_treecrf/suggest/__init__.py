"""Which texts to annotate next: how unsure a model is of each, and a choice within a budget.

The command line imports it; it imports taggers, formats, and what is below them.
"""
