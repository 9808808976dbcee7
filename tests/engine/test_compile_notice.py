"""The line that shows while kernels are compiled: where, when, and where not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.hardening.children import ROOT

COMPILE = """
import os, sys
from spacy_treecrf.engine import compile_notice
from spacy_treecrf.engine.kernel import kernel

compile_notice.PATIENCE = float(sys.argv[1])

def first(x):
    return x + 1

def second(x):
    return x + 2

if sys.argv[2:] == ["fork"] and os.fork():
    os.wait()
    sys.exit()
kernel(first)(1)
kernel(second)(1)
"""
LINE = "treecrf: compiling kernels for this machine, once; this may take half a minute\n"


def script(tmp_path, *arguments: str) -> list[str]:
    path = tmp_path / "compile_two.py"
    path.write_text(COMPILE)
    return [sys.executable, str(path), *arguments]


def environment(tmp_path, **more: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if k != "TREECRF_QUIET"}
    return plain | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)} | more


def said(tmp_path, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        script(tmp_path, *arguments),
        env=environment(tmp_path, **more),
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stderr


def test_one_line_for_all_kernels_and_none_once_they_are_compiled(tmp_path):
    assert said(tmp_path, "0") == LINE
    assert said(tmp_path, "0") == ""


def test_little_compilation_needs_no_word(tmp_path):
    assert said(tmp_path, "1e9") == ""


def test_quiet_processes_say_nothing(tmp_path):
    assert said(tmp_path, "0", TREECRF_QUIET="1") == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_forked_processes_say_nothing(tmp_path):
    assert said(tmp_path, "0", "fork") == ""


def test_a_terminal_shows_each_kernel_and_is_left_clean(tmp_path):
    leader, follower = pty.openpty()
    subprocess.run(script(tmp_path, "0"), env=environment(tmp_path), stderr=follower, check=True)
    os.close(follower)
    shown = os.read(leader, 10_000).decode()
    os.close(leader)
    assert "once: kernel 1, first ..." in shown
    assert "once: kernel 2, second ..." in shown
    assert shown.endswith("\r\033[K")
    assert "\n" not in shown
