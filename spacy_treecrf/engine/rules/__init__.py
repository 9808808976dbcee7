"""Rules across a sequence, such as "this label once", and exact inference under them.

Settings, models and whatever predicts may import it; it imports the root of the engine and the
chain.
"""
