"""Code in a fresh interpreter that may take only so much memory, and only so much time."""

from __future__ import annotations

import subprocess
import sys
import textwrap

SECONDS = 300  # against hangs: kernels may have to be compiled first

# The limit counts from what the process has once everything is loaded; threads reserve more.
_PRELUDE = """
import resource
import spacy_treecrf.estimators

def limit_memory(megabytes):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    most = now + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
"""


def most_memory(n_bytes: int) -> None:
    """Limit the memory of this process, where the system keeps such limits."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def run_limited(code: str) -> str:
    """What the code prints; it calls `limit_memory(megabytes)` when its data are ready."""
    command = [sys.executable, "-c", _PRELUDE + textwrap.dedent(code)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout
