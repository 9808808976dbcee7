"""What a pipe predicts of docs, and how labels, spans and their probabilities come onto them.

The pipe and its explanations import it, and who reads probabilities from docs; it imports tasks,
models, the engine and labels.
"""
