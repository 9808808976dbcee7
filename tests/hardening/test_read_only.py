"""A file system where nothing can be written: kernels are read from it, or compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hardening.children import ROOT, Child

# Makes a folder read-only for one command; a container's administrator may allow this or not.
MOUNTED = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'  # folder, ...
)
TRAINING = """
from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.trees.grower import grow_tree
from tests.tiny import new, tiny_data

X, y = tiny_data()
new(threads=1).fit(X, y).predict(X)
print("compiled" if grow_tree.stats.cache_misses else "read")
"""


def in_read_only(folder: Path, *command: str | Path) -> list[str | Path]:
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNTED, folder, *command]


def can_mount() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return not subprocess.run(in_read_only(ROOT, "true"), capture_output=True).returncode
    except OSError:
        return False


@pytest.mark.skipif(not can_mount(), reason="needs mounts of its own")
def test_a_read_only_package_without_a_cache_folder_trains_with_its_compiled_kernels():
    with Child.script(TRAINING) as warm:
        _, err = warm.end()
        assert warm.code == 0, err
    command = in_read_only(ROOT, sys.executable, "-c", TRAINING)
    # the user's cache folder would be in it, too
    nowhere = {"HOME": str(ROOT), "XDG_CACHE_HOME": str(ROOT / "nowhere"), "NUMBA_CACHE_DIR": ""}
    with Child(command, nowhere) as child:
        out, err = child.end()
        assert child.code == 0, err
        assert out == "read\n"
    assert not (ROOT / "nowhere").exists()
