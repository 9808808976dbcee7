"""Attacks on four sides, for bench_attacks.py: the same attack is the same code for each side.

`sides` trains, saves, loads and predicts; `trials` is a process that may crash or hang;
`on_signals`, `on_files` and `on_processes` attack. They use tools of the project's own tests.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # where `tests` lies
