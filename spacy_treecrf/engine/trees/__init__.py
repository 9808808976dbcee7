"""One tree and many: histograms, splits, growing, forests, scoring by posting lists.

Rooms that boost may import it; it imports encoding and the root of the engine.
"""
