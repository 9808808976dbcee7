"""Word vectors learned from a user's own text, by floret.

The command line may import it; it imports `formats` alone. floret, the extra "vectors", is loaded
when vectors are learned.
"""
