"""Checked reading and writing: files, lines of text, the container of a model, and its values.

It knows nothing of models. Everything may import it; it imports nothing of the package.
"""
