"""The spaCy pipe: factory, tasks, architectures, training through spaCy's loop.

Taggers, the command line and what reads docs for a cluster may import it; it imports models,
features, labels and engine.
"""
