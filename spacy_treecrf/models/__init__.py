"""What is learned, one file for a kind, and the one way from scores to labels.

Estimators, the pipe and everything above may import it; it imports engine, storage and labels.
"""
