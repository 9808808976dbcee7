"""The spaCy pipe: factory, tasks, architectures, training through spaCy's loop.

Taggers and the command line may import it; it imports models, features, labels and engine.
"""
