"""Kernels: interrupts while they run, forks while they compile, where they are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.threads import in_own_thread

FORKS = hasattr(os, "fork")
TIMERS = hasattr(signal, "setitimer")


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@kernel
def spin(turns):
    x = 0.0
    for i in range(turns):
        x += np.sin(x + i)
    return x


@kernel
def fill(turns, pair):
    pair.left[0] = spin(turns)


@kernel
def number(turns, pair):
    return spin(turns)


@kernel
def numbers(turns, pair):
    return spin(turns), (turns, True)


@kernel
def array(turns, pair):
    return np.full(10, spin(turns))


@kernel
def arrays(turns, pair):
    return np.full(10, spin(turns)), pair.right


@kernel
def named(turns, pair):
    return Pair(np.full(10, spin(turns)), pair.right)


@kernel
def failing(turns, pair):
    if spin(turns) < 1e9:
        raise ValueError("turned")
    return pair


KERNELS = [fill, number, numbers, array, arrays, named]


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


@pytest.fixture
def turns():
    """How many turns take about two milliseconds."""
    spin(10)
    start = time.perf_counter()
    spin(100_000)
    return int(0.002 * 100_000 / (time.perf_counter() - start))


def test_kernels_return_what_they_return():
    pair = Pair(np.zeros(2), np.arange(3.0))
    assert fill(0, pair) is None
    assert number(0, pair) == 0.0
    assert numbers(3, pair)[1] == (3, True)
    assert array(0, pair).tolist() == [0.0] * 10
    assert arrays(0, pair)[1].tolist() == [0.0, 1.0, 2.0]
    assert isinstance(named(0, pair), Pair)
    with pytest.raises(ValueError, match="turned"):
        failing(0, pair)


def test_only_results_with_python_code_behind_them_need_another_thread():
    pair = Pair(np.zeros(2), np.arange(3.0))
    for one in KERNELS:
        one(0, pair)
    assert [one.returns_numbers for one in KERNELS] == [True, True, True, False, False, False]


def test_kernels_return_numbers_for_all_arguments_or_for_none():
    @kernel
    def echo(x):
        return x

    assert echo(1.5) == 1.5
    with pytest.raises(TypeError, match="echo returns numbers for some arguments only"):
        echo(np.zeros(2))


def call_until_interrupted(seconds, kernels, *args):
    """Call the kernels one after another; a timer must end it.

    Python drops what a handler raises in a finalizer, and garbage of other tests, such as progress
    bars, has finalizers: so the timer goes on. tests/hardening has processes without such garbage.
    """
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        while True:
            for one in kernels:
                try:
                    one(*args)
                except ValueError:
                    continue
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def handled_by(handler):
    """SIGALRM, the signal of timers, goes to the handler."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not TIMERS, reason="needs timers")
@pytest.mark.parametrize("handler", [signal.default_int_handler, stop])
@pytest.mark.parametrize("one", [*KERNELS, failing], ids=lambda one: getattr(one, "__name__", ""))
def test_interrupts_while_a_kernel_runs_are_raised_after_it(one, handler, turns):
    """200 times, each in the middle of a kernel. What fails here is the whole process."""
    pair = Pair(np.zeros(2), np.arange(3.0))
    with handled_by(handler):
        for _ in range(200):
            with pytest.raises((Stop, KeyboardInterrupt)):
                call_until_interrupted(0.0005, [one], turns, pair)


@pytest.mark.skipif(not TIMERS, reason="needs timers")
def test_interrupts_at_any_moment_of_short_calls():
    """Also while arguments are read, and between calls."""
    pair = Pair(np.zeros(2), np.arange(3.0))
    draw = np.random.default_rng(0)
    with handled_by(stop):
        for _ in range(500):
            with pytest.raises(Stop):
                call_until_interrupted(draw.uniform(1e-5, 1e-3), KERNELS, 1, pair)


@pytest.mark.skipif(not TIMERS, reason="needs timers")
def test_an_interrupt_waits_until_the_call_in_another_thread_is_done():
    finished = []

    def work():
        time.sleep(0.3)
        finished.append(threading.get_ident())

    with handled_by(stop):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Stop):
            in_own_thread(work)
    assert len(finished) == 1
    assert finished[0] != threading.get_ident()


def test_errors_in_another_thread_are_raised_here():
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 // 0)
    assert in_own_thread(max, 3, 7) == 7


COMPILING = """
import os, threading
from numba.core.caching import NullCache
from spacy_treecrf.engine.kernel import kernel

def compile_one(number):
    def chain(x):
        y = x
        for i in range(10):
            y = y * i + x
        return y
    compiled = kernel(chain)
    compiled._cache = NullCache()
    return compiled(number)

def compile_much():
    for i in range(60):
        compile_one(i + 0.5)

compiler = threading.Thread(target=compile_much)
compiler.start()
for i in range(20):
    child = os.fork()
    if not child:
        compile_one(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
compiler.join()
"""


@pytest.mark.skipif(not FORKS, reason="needs forks")
def test_children_forked_while_another_thread_compiles_can_compile(tmp_path):
    script = tmp_path / "compiling.py"
    script.write_text(COMPILING, encoding="utf8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, script], env=environment, timeout=300, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


MODULE = """
from spacy_treecrf.engine.kernel import kernel

@kernel
def double(x):
    return 2 * x
"""
CALLING = """
import sys
sys.path.insert(0, sys.argv[1])
import numba.core.caching
if "read_only" in sys.argv:
    def refuse(*_):
        raise OSError(30, "Read-only file system")
    numba.core.caching.IndexDataCacheFile._open_for_write = refuse
    numba.core.caching._CacheLocator.ensure_cache_path = refuse
if "full_disk" in sys.argv:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
if "other_steps" in sys.argv:
    from spacy_treecrf.engine import kernel_cache
    kernel_cache.package_stamp = lambda: "another version of the package"
from doubling import double
assert double(21) == 42
hits = sum(double.stats.cache_hits.values())
print("read" if hits else "compiled")
"""


def call(folder: Path, *options: str, **environment: str) -> str:
    """How a process came by the kernel."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    module = folder / "doubling.py"
    if not module.exists():  # older versions of numba look at its time
        module.write_text(MODULE, encoding="utf8")
    command = [sys.executable, "-c", CALLING, str(folder), *options]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_kernels_are_compiled_once(tmp_path):
    assert [call(tmp_path), call(tmp_path)] == ["compiled", "read"]


def test_kernels_work_where_nothing_can_be_written(tmp_path):
    assert call(tmp_path, "read_only") == "compiled"
    assert call(tmp_path, "read_only") == "compiled"


@pytest.mark.skipif(os.name == "nt", reason="needs limits")
def test_kernels_are_compiled_again_when_another_module_of_the_package_changes(tmp_path):
    assert call(tmp_path) == "compiled"
    assert call(tmp_path) == "read"
    assert call(tmp_path, "other_steps") == "compiled"


def test_kernels_work_on_a_full_disk(tmp_path):
    assert call(tmp_path, "full_disk") == "compiled"
    assert not list(tmp_path.rglob("*.nbc*"))


def test_kernels_compiled_beside_the_package_are_read_where_nothing_can_be_written(tmp_path):
    call(tmp_path)
    assert call(tmp_path, "read_only") == "read"


def test_kernels_compiled_beside_the_package_are_read_where_another_place_is_writable(tmp_path):
    package, other = tmp_path / "package", tmp_path / "other"
    package.mkdir()
    call(package)
    assert call(package, NUMBA_CACHE_DIR=str(other)) == "read"
    assert not other.exists()


def test_the_folder_of_the_environment_comes_first(tmp_path):
    package, other = tmp_path / "package", tmp_path / "other"
    package.mkdir()
    assert call(package, NUMBA_CACHE_DIR=str(other)) == "compiled"
    assert list(other.rglob("*.nbi"))
    assert not list(package.rglob("*.nbi"))
    assert call(package, "read_only", NUMBA_CACHE_DIR=str(other)) == "read"


def test_the_next_place_is_taken_where_one_is_no_folder(tmp_path):
    package, other = tmp_path / "package", tmp_path / "other"
    package.mkdir()
    other.write_text("a file, not a folder", encoding="utf8")
    assert call(package, NUMBA_CACHE_DIR=str(other)) == "compiled"
    assert list(package.rglob("*.nbi"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"no pickle", None])
def test_damaged_files_of_the_cache_are_compiled_anew(tmp_path, ending, content):
    call(tmp_path)
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[:-20] if content is None else content)
    assert call(tmp_path) == "compiled"
