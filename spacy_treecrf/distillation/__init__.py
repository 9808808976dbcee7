"""Students that learn from a teacher: its lessons on texts, and the training of a config on them.

The command line may import it; it imports the pipe and readers of files.
"""
