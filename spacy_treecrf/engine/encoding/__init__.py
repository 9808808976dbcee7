"""Feature dicts and columns become feature ids and bins.

Trees and everything above them may import it; it imports the root of the engine and storage.
"""
