"""Inference under rules against enumeration of all labellings."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain, node_marginals
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.chain.nbest import nbest
from spacy_treecrf.engine.rules import graph, ruled_chain
from spacy_treecrf.engine.rules.rule import parse_rules
from spacy_treecrf.engine.rules.ruled_chain import RuledChain
from spacy_treecrf.engine.threads import Workers
from tests.engine.enumeration import Problem, random_problem
from tests.engine.rules.naive_rules import follows, ruled_paths

ONE = Workers(1)
LABELS = {1: ["A"], 2: ["A", "B"], 3: ["A", "B", "C"], 4: ["O", "B-X", "I-X", "B-Y"]}
LONGEST = {1: 5, 2: 6, 3: 5, 4: 4}


@st.composite
def ruled_problems(draw: st.DrawFn) -> tuple[Problem, list[str], list[str]]:
    n_labels = draw(st.integers(1, 4))
    names = ["X", "Y", "O"] if n_labels == 4 else LABELS[n_labels]
    pairs = list(itertools.permutations(names, 2))
    every = [f"{name} once" for name in names]
    every += [f"{a} {kind} {b}" for a, b in pairs for kind in ("after", "not after")]
    rules = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    try:
        parse_rules(rules)
    except ValueError:
        assume(False)
    problem = random_problem(
        draw(st.integers(0, 2**31)),
        draw(st.integers(0, 3)),
        n_labels,
        draw(st.lists(st.integers(0, LONGEST[n_labels]), min_size=1, max_size=3)),
        joint=draw(st.booleans()),
        scale=draw(st.sampled_from([0.0, 1.0, 20.0, 300.0])),
        forbidden=draw(st.sampled_from([0.0, 0.2, 0.5])),
        whole_numbers=draw(st.booleans()),
    )
    return problem, LABELS[n_labels], rules


@pytest.fixture(autouse=True)
def _impossible_is_silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@given(ruled_problems())
def test_labels_and_marginals_are_those_of_labellings_that_follow_the_rules(
    given_problem: tuple[Problem, list[str], list[str]],
) -> None:
    problem, labels, rules = given_problem
    ruled = RuledChain(problem.chain, labels, rules)
    predicted = ruled.labels(problem.scores, problem.offsets, "viterbi", ONE)
    marginals = ruled.marginals(problem.scores, problem.offsets, ONE)
    for rows in problem.rows():
        own = problem.scores[rows]
        truth = ruled_paths(own, problem.chain, labels, rules)
        alone = np.array([0, len(own)])
        if not truth.paths:  # as if there were no rules
            np.testing.assert_array_equal(predicted[rows], viterbi(own, alone, problem.chain)[0])
            expected, _ = node_marginals(own, alone, problem.chain)
            np.testing.assert_array_equal(marginals[rows], expected)
            continue
        assert follows(rules, [labels[y] for y in predicted[rows]], labels)
        best = truth.scores[truth.paths.index(tuple(predicted[rows].tolist()))]
        assert best == pytest.approx(truth.scores.max(), rel=1e-6, abs=1e-6)
        for t in range(len(own)):
            at = [path[t] for path in truth.paths]
            expected = np.bincount(at, truth.probabilities, minlength=len(labels))
            np.testing.assert_allclose(marginals[rows][t], expected, atol=1e-6)


@given(ruled_problems(), st.integers(1, 40))
def test_the_n_best_are_the_best_of_all_that_follow_the_rules(
    given_problem: tuple[Problem, list[str], list[str]], n: int
) -> None:
    problem, labels, rules = given_problem
    ruled = RuledChain(problem.chain, labels, rules)
    for rows in problem.rows():
        own = problem.scores[rows]
        truth = ruled_paths(own, problem.chain, labels, rules)
        paths, log_p = ruled.nbest(own, n)
        if not truth.paths:
            expected, _ = nbest(own, problem.chain, n)
            np.testing.assert_array_equal(paths, expected)
            continue
        assert len(paths) == min(n, len(truth.paths))
        assert len({tuple(path) for path in paths.tolist()}) == len(paths), "each one once"
        log_of = dict(zip(truth.paths, truth.scores - truth.log_z, strict=True))
        for path, value in zip(paths.tolist(), log_p.tolist(), strict=True):
            assert value == pytest.approx(log_of[tuple(path)], abs=1e-6 * max(1.0, abs(value)))
        best = np.sort(truth.scores - truth.log_z)[::-1][: len(paths)]
        np.testing.assert_allclose(log_p, best, rtol=1e-6, atol=1e-6)
        if len(own):
            first = ruled.labels(own, np.array([0, len(own)]), "viterbi", ONE)
            assert paths[0].tolist() == first.tolist()


@given(ruled_problems(), st.data())
def test_probabilities_of_spans_and_annotations_are_conditional_on_the_rules(
    given_problem: tuple[Problem, list[str], list[str]], data: st.DataObject
) -> None:
    problem, labels, rules = given_problem
    ruled = RuledChain(problem.chain, labels, rules)
    log_p = ruled.log_probability_of(problem.scores, problem.offsets, problem.allowed)
    for s, rows in enumerate(problem.rows()):
        own = problem.scores[rows]
        truth = ruled_paths(own, problem.chain, labels, rules)
        if not truth.paths or not len(own):
            continue
        allowed = problem.allowed[rows]
        expected = truth.probability_that(
            lambda path, allowed=allowed: all(allowed[t, y] for t, y in enumerate(path))
        )
        assert np.exp(log_p[s]) == pytest.approx(expected, abs=1e-6)
        first = data.draw(st.integers(0, len(own) - 1))
        last = data.draw(st.integers(first + 1, len(own)))
        wanted = data.draw(st.sampled_from(truth.paths))
        ids = np.zeros(len(problem.scores), np.int32)
        ids[rows] = wanted
        span = np.array([[rows.start + first, rows.start + last]])
        (found,) = ruled.span_probabilities(problem.scores, problem.offsets, span, ids)
        expected = truth.probability_that(
            lambda path, a=first, b=last, wanted=wanted: path[a:b] == wanted[a:b]
        )
        assert found == pytest.approx(expected, abs=1e-6)


@given(ruled_problems())
def test_a_beam_that_holds_all_states_is_exact(
    given_problem: tuple[Problem, list[str], list[str]],
) -> None:
    problem, labels, rules = given_problem
    exact = RuledChain(problem.chain, labels, rules)
    beam = RuledChain(problem.chain, labels, rules)
    assume(exact.n_states <= ruled_chain.BEAM_STATES)
    beam._whole = None
    scores, offsets = problem.scores, problem.offsets
    np.testing.assert_array_equal(
        beam.labels(scores, offsets, "viterbi", ONE), exact.labels(scores, offsets, "viterbi", ONE)
    )
    np.testing.assert_allclose(
        beam.marginals(scores, offsets, ONE), exact.marginals(scores, offsets, ONE), atol=1e-9
    )
    np.testing.assert_allclose(
        beam.log_probability_of(scores, offsets, problem.allowed),
        exact.log_probability_of(scores, offsets, problem.allowed),
        atol=1e-9,
    )


def many_rules(n: int) -> tuple[Chain, list[str], list[str]]:
    """A chain over more labels, each of them once, than have an exact state space."""
    labels = [f"L{i}" for i in range(n)]
    rng = np.random.default_rng(0)
    trans = rng.normal(size=(n, n)).astype(np.float32)
    zeros = np.zeros(n, np.float32)
    return Chain(1, zeros, trans, zeros), labels, [f"{label} once" for label in labels]


def test_long_sequences_have_narrower_beams() -> None:
    for length, n_labels in ((1, 3), (1000, 60), (10_000, 62), (10**6, 62)):
        n_states = graph.beam_states(length, n_labels)
        assert graph.LEAST_STATES <= n_states <= graph.BEAM_STATES
        room = length * n_states * n_labels
        assert room <= graph.BEAM_MOVES or n_states == graph.LEAST_STATES


def test_rules_of_many_labels_are_followed_inside_a_beam() -> None:
    chain, labels, rules = many_rules(20)
    ruled = RuledChain(chain, labels, rules)
    assert ruled._whole is None
    assert not ruled.is_exact(1)
    scores = np.random.default_rng(1).normal(size=(30, 1, 20)).astype(np.float32)
    offsets = np.array([0, 18, 30])
    predicted = ruled.labels(scores, offsets, "viterbi", ONE)
    nodes = ruled.marginals(scores, offsets, ONE)
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0)
    for first, last in itertools.pairwise(offsets.tolist()):
        assert follows(rules, [labels[y] for y in predicted[first:last]], labels)
        paths, log_p = ruled.nbest(scores[first:last], 10)
        assert paths[0].tolist() == predicted[first:last].tolist()
        assert all(follows(rules, [labels[y] for y in path], labels) for path in paths)
        assert (np.diff(log_p) <= 0).all()
        assert np.exp(log_p).sum() <= 1.0
        spans = np.array([[first, last]])
        (whole,) = ruled.span_probabilities(scores, offsets, spans, predicted)
        assert whole == pytest.approx(np.exp(log_p[0]))


def test_a_beam_of_ruled_labels_finds_nearly_what_exact_inference_finds() -> None:
    """Ten labels, each once: 5121 states, of which the beam follows 1024."""
    chain, labels, rules = many_rules(10)
    exact, beam = (RuledChain(chain, labels, rules) for _ in range(2))
    assert exact.n_states == 10 * 2**9 + 1
    beam._whole = None
    rng = np.random.default_rng(2)
    scores = rng.normal(scale=2.0, size=(200, 1, 10)).astype(np.float32)
    offsets = np.arange(0, 201, 10)
    difference = beam.marginals(scores, offsets, ONE) - exact.marginals(scores, offsets, ONE)
    assert np.abs(difference).mean() < 0.01
    same = beam.labels(scores, offsets, "viterbi", ONE) == exact.labels(
        scores, offsets, "viterbi", ONE
    )
    assert same.mean() > 0.99


def test_sequences_too_long_for_all_states_go_through_a_beam(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain, labels, rules = many_rules(4)
    monkeypatch.setattr(ruled_chain, "EXACT_CELLS", 300)
    ruled = RuledChain(chain, labels, rules)
    assert ruled.is_exact(4)
    assert not ruled.is_exact(40)
    scores = np.random.default_rng(3).normal(size=(40, 1, 4)).astype(np.float32)
    offsets = np.array([0, 40])
    predicted = ruled.labels(scores, offsets, "viterbi", ONE)
    monkeypatch.undo()
    assert predicted.tolist() == ruled.labels(scores, offsets, "viterbi", ONE).tolist()


def test_the_limit_is_one_of_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, labels, rules = many_rules(4)
    n_states = RuledChain(chain, labels, rules).n_states
    monkeypatch.setattr(graph, "EXACT_MOVES", 4 * n_states)
    assert RuledChain(chain, labels, rules).is_exact(1)
    monkeypatch.setattr(graph, "EXACT_MOVES", 4 * n_states - 1)
    assert not RuledChain(chain, labels, rules).is_exact(1)


def test_impossible_sequences_are_told_of() -> None:
    """A single label that must not go on, because another one is needed before it."""
    ruled = RuledChain(Chain.free(2, 1), ["A", "B"], ["A after B", "B not after A"])
    scores = np.zeros((1, 1, 2), np.float32)
    assert ruled.labels(scores, np.array([0, 1]), "viterbi", ONE).tolist() == [1]
    never = Chain(1, np.array([0, -np.inf]), np.zeros((2, 2)), np.zeros(2))
    ruled = RuledChain(never, ["A", "B"], ["A after B"])
    with pytest.warns(UserWarning, match="labelled without the rules"):
        assert ruled.labels(scores, np.array([0, 1]), "viterbi", ONE).tolist() == [0]
