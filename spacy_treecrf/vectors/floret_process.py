"""The process that floret learns in: its arguments as JSON, and the file for its table."""

from __future__ import annotations

import json
import signal
import sys


def main(arguments: str, table: str) -> None:
    """Learn from a text file and write the table."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process at once
    import floret

    model = floret.train_unsupervised(**json.loads(arguments))
    model.save_floret_vectors(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
