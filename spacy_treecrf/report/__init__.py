"""The report on a model: all that evaluation says of it on test data, as numbers and as a page.

The command line may import it; it imports evaluation, explain and pages, and knows no pipe.
"""
