"""The same attacks on our estimator, our pipe, python-crfsuite and spaCy's own NER.

Each attack on each side is a process of its own, with limits of time and memory; everything that is
written goes to temporary folders. Prints a JSON line for each, and at the end a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attacks import on_files, on_processes, on_signals
from attacks.sides import SIDES
from timing import report, timed

Attack = Callable[[str, Path], dict[str, Any]]
ATTACKS: dict[str, tuple[str, Attack]] = {
    "training": ("interrupts of training", on_signals.interrupted_training),
    "prediction": ("interrupts of prediction", on_signals.interrupted_prediction),
    "kill": ("`kill -9` while a model is saved over an older one", on_files.killed_writers),
    "disk": ("full disk (`ulimit -f`) while saving over an older one", on_files.full_disk),
    "outputs": ("outputs that are special", on_files.special_outputs),
    "damage": ("damaged model files", on_files.damaged_models),
    "forks": ("forks while 4 threads predict", on_processes.forks_under_load),
    "threads": ("8 threads predict at once", on_processes.threads_at_once),
    "bytes": ("equal trainings, equal bytes", on_processes.equal_bytes),
    "wide": ("one row with a million flags among 1,000", on_processes.wide_row),
}
SECONDS = 900.0  # for one attack on one side: minutes only where much else runs


def attacked(attack: str, side: str) -> dict[str, Any]:
    """Run one attack in a process of its own; what it found."""
    command = [sys.executable, __file__, "--attack", attack, "--side", side]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"the attack itself took too long": 1}
    if done.returncode:
        return {f"the attack itself ended with {done.returncode}": done.stderr[-300:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def cell(found: dict[str, Any]) -> str:
    """Findings in words: counts first, then what is said of each kind."""
    if any(isinstance(value, dict) for value in found.values()):
        return on_signals.words(found)
    parts = [f"{v} {k}" if isinstance(v, int) else f"{k}: {v}" for k, v in found.items()]
    return "; ".join(part.removesuffix(": ") for part in parts).replace("|", "\\|")


def table(found: dict[str, dict[str, dict[str, Any]]], sides: list[str]) -> str:
    lines = [f"| attack | {' | '.join(sides)} |", "|---" * (1 + len(sides)) + "|"]
    for attack, of_side in found.items():
        cells = [cell(of_side[side]) for side in sides]
        lines.append(f"| {ATTACKS[attack][0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def in_this_process(options: argparse.Namespace) -> None:
    """What the benchmark starts itself for: one attack, a process under attack, one training."""
    (side,) = options.side
    with tempfile.TemporaryDirectory() as folder:
        if options.victim:
            on_signals.be_interrupted(options.victim, side)
        elif options.digest:
            print(json.dumps(on_processes.digest(side, options.digest, Path(folder))))
        else:
            (attack,) = options.attack
            print(json.dumps(ATTACKS[attack][1](side, Path(folder))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS))
    parser.add_argument("--side", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--attack", nargs=1, choices=ATTACKS, help="in this process, on one side")
    parser.add_argument("--victim", choices=("training", "prediction"), help=argparse.SUPPRESS)
    parser.add_argument("--digest", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack or options.victim or options.digest:
        in_this_process(options)
        return
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for attack in options.only:
        found[attack] = {}
        for side in options.side:
            result, seconds = timed(lambda attack=attack, side=side: attacked(attack, side))
            found[attack][side] = result
            report("attacks", attack=attack, side=side, seconds=seconds, found=result)
    print(table(found, options.side))


if __name__ == "__main__":
    main()
