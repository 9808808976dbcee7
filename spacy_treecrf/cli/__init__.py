"""The command line: thin typer commands without logic of their own.

Nothing imports it; it may import everything.
"""
