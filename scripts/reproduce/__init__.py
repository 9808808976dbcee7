"""The tables and figures of the five papers, run with our models and set beside what was published."""
