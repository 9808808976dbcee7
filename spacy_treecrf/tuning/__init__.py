"""Search for good settings of a spaCy config, by hold-out or cross-validation."""
