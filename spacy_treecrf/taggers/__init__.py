"""Stored models of either kind, column models and spaCy pipelines, applied to files.

The command line may import it; it imports the pipe, columnar and the protocol of evaluation.
"""
