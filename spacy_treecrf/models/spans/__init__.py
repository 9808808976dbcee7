"""Spans by their own probabilities: which are probable, and which serve F1 best.

Estimators, the pipe and what judges models import it; it imports models and what models may import.
"""
