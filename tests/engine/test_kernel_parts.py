"""Kernels compiled as one piece: right results, no references lost, callable from Python."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine import kernel_parts
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.kernel_parts import PartLibrary, no_garbage_collection
from tests.tiny import tiny_data


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@kernel
def total(values):
    result = 0.0
    for i in range(len(values)):
        result += values[i]
    return result


@step
def swapped(pair):
    return Pair(pair.right, pair.left)


@step
def doubled(values):
    result = np.empty(len(values))
    for i in range(len(values)):
        result[i] = 2.0 * values[i]
    return result


@kernel
def only_reads(pair):
    left, right = pair
    return total(left[1:]) - total(right)


@kernel
def makes(pair, turns):
    for _ in range(turns):
        pair = swapped(Pair(doubled(pair.left), pair.right))
    return pair


@kernel
def makes_for_itself(pair):
    twice = doubled(pair.left)
    half = twice[1:]
    return total(half)


@kernel
def picks(values, at):
    some = values[at]
    return some[0]


@kernel
def refuses(values):
    if total(values) > 1.0:
        raise ValueError("more than one")
    return total(values)


def pair() -> Pair:
    return Pair(np.arange(3.0), np.ones(2))


def test_kernels_that_call_kernels_compute_what_python_does():
    left, right = pair()
    assert only_reads(pair()) == left[1:].sum() - right.sum()
    assert makes_for_itself(pair()) == 2 * left[1:].sum()
    assert picks(left, np.array([2, 1])) == 2.0
    made = makes(pair(), 3)
    assert made.left.tolist() == (2 * right).tolist()
    assert made.right.tolist() == (4 * left).tolist()


def test_a_part_of_kernels_is_not_runnable_but_python_can_call_its_twin():
    only_reads(pair())
    (part,) = total.part.overloads.values()
    assert isinstance(part.library, PartLibrary)
    assert total(np.arange(4.0)) == 6.0
    (whole,) = total.overloads.values()
    assert not isinstance(whole.library, PartLibrary)


def test_a_kernel_that_makes_no_arrays_counts_no_references():
    only_reads(pair())
    makes(pair(), 1)
    assert "NRT_" not in "".join(only_reads.inspect_llvm().values())
    assert "NRT_" in "".join(makes.inspect_llvm().values())


def test_errors_of_parts_are_raised():
    assert refuses(np.zeros(2)) == 0.0
    with pytest.raises(ValueError, match="more than one"):
        refuses(np.ones(2))


def test_other_functions_that_numba_compiles_stay_runnable():
    makes(pair(), 1)

    @numba.njit
    def own(n):
        return np.empty(n).size

    assert own(7) == 7
    (compiled,) = own.overloads.values()
    assert not isinstance(compiled.library, PartLibrary)


@pytest.fixture
def counted():
    """Numba's counts of what was made and freed."""
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    _nrt_python.memsys_disable_stats()


def test_arrays_are_freed_and_those_of_the_caller_kept(counted):
    given = pair()
    counts = [sys.getrefcount(array) for array in given]
    gc.collect()  # what other tests have left
    before = counted()
    for _ in range(5):
        only_reads(given)
        makes_for_itself(given)
        picks(given.left, np.array([1, 2]))
        makes(given, 4)
    gc.collect()
    after = counted()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
    assert [sys.getrefcount(array) for array in given] == counts
    assert given.left.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("family", ["joint", "separate"])
def test_training_and_prediction_free_what_they_make(family, counted):
    X, y = tiny_data()

    def run():
        model = BoostedCRF(rounds=4, linear_rounds=2, family=family, threads=1).fit(X, y)
        model.predict(X)
        model.predict_marginals(X)

    run()
    gc.collect()
    before = counted()
    run()
    gc.collect()
    after = counted()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free


class Cycle:
    """An object that only a search for cycles frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("many", [0, 2**40])
def test_cycles_of_the_compiler_are_freed_once_there_are_many(many, monkeypatch):
    monkeypatch.setattr(kernel_parts, "MANY_OBJECTS", many)
    monkeypatch.setattr(kernel_parts, "_made", kernel_parts._Made())
    with no_garbage_collection():
        assert not gc.isenabled()
        made = weakref.ref(Cycle())
    assert gc.isenabled()
    assert (made() is None) == (many == 0)


def test_interrupt_while_cycles_are_searched_leaves_the_search_on(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_parts, "MANY_OBJECTS", -1)
    monkeypatch.setattr(kernel_parts, "_made", kernel_parts._Made())
    monkeypatch.setattr(gc, "collect", interrupted)
    with pytest.raises(KeyboardInterrupt), no_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
