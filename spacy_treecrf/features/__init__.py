"""Features of spaCy docs as arrays: what the engine learns from, and what it names them."""
