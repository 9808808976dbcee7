"""The tables and figures of the five papers, run with our models, beside the published figures."""
