"""Column files (a token per line, its columns, a blank line between sequences) and their models."""
