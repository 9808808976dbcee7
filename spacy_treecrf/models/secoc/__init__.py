"""Output coding: its settings, its model, and the two ways of training it.

Estimators, the pipe and explanations import it; it imports models and what models may import.
"""
