"""Kernels of exact inference: forward-backward, scaled and in log space, and scores of paths.

They work on the sequences, step potentials and marginals below, which are plain tuples of arrays.
Kernels check no bounds: `chain.kernel_arguments` does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]

# The scaled pass multiplies three factors (mass, node weight, edge weight). While each is zero or
# at least TINY no product underflows, so nothing is lost; below that the sequence is redone in
# log space.
TINY = 1e-100


class ScoredChunk(NamedTuple):
    """Scores of sequences; a kernel works on the sequences first to last - 1 among them."""

    # shape: (n_rows, 1 or n_contexts, n_labels); (n_rows, n_labels) where kernels say so
    scores: Floats
    offsets: Ints  # shape: (n_sequences + 1,), sequence s is rows offsets[s]:offsets[s + 1]
    first: int
    last: int


class StepPotentials(NamedTuple):
    """What a chain adds to scores; all zero for order 0, so that no kernel treats it apart."""

    order: int
    moves: Doubles  # shape: (n_labels + 1, n_labels), by the previous label, K at the start
    end: Doubles  # shape: (n_labels,), at the last position


class Marginals(NamedTuple):
    """Where inference writes its results; pairs or nodes are empty if they are not wanted."""

    pairs: Floats  # shape: (n_rows, n_contexts, n_labels), P(context, y_t)
    nodes: Doubles  # shape: (n_rows, n_labels), P(y_t)
    log_z: Doubles  # shape: (n_sequences,)


class _Scratch(NamedTuple):
    """What the scaled passes keep of one sequence."""

    weights: Doubles  # shape: (longest, 1 or n_contexts, n_labels), exp(score - top)
    top: Doubles  # shape: (longest,), the largest score of each position
    alpha: Doubles  # shape: (longest + 1, n_contexts), P(context before t | positions before t)
    scale: Doubles  # shape: (longest,), the normalizer of each position


@kernel
def longest_of(offsets: Ints, first: int, last: int) -> int:
    """The length of the longest of the sequences first to last - 1."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@kernel
def potential(
    scores: Floats, begin: int, length: int, t: int, c: int, y: int, steps: StepPotentials
) -> float:
    """The potential of label y in context c at position t of the sequence beginning at a row."""
    n_labels = len(steps.end)
    value: float = scores[begin + t, c if scores.shape[1] > 1 else 0, y]
    value += steps.moves[n_labels if t == 0 else c % n_labels, y]
    if t == length - 1:
        value += steps.end[y]
    return value


@kernel
def clamped_potential(
    scores: Floats,
    begin: int,
    length: int,
    t: int,
    c: int,
    y: int,
    steps: StepPotentials,
    allowed: Mask,
) -> float:
    """The potential of a label, or -inf where the mask, if there is one, rules the label out."""
    if len(allowed) > 0 and allowed[begin + t, y] == 0:
        return -np.inf
    value: float = potential(scores, begin, length, t, c, y, steps)
    return value


@kernel
def log_add(a: float, b: float) -> float:
    """The sum of two numbers in log space: log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@kernel
def context_after(c: int, y: int, order: int, n_labels: int) -> int:
    """The context of the next position, where label y follows context c."""
    stride = max(1, n_labels**order // n_labels)
    after: int = n_labels * (c % stride) + min(1, order) * y
    return after


@kernel
def log_forward(
    scores: Floats, begin: int, length: int, steps: StepPotentials, allowed: Mask
) -> Doubles:
    """What lies before each position of a sequence, in log space, by context.

    shape: (length + 1, n_contexts); the last row sums up to log Z.
    """
    order, n_labels = steps.order, len(steps.end)
    alpha: Doubles = np.full((length + 1, n_labels**order), -np.inf)
    alpha[0, 0] = 0.0
    for t in range(length):
        for c in range(n_labels ** min(t, order)):
            for y in range(n_labels):
                value = clamped_potential(scores, begin, length, t, c, y, steps, allowed)
                value += alpha[t, c]
                after = context_after(c, y, order, n_labels)
                alpha[t + 1, after] = log_add(alpha[t + 1, after], value)
    return alpha


@kernel
def log_backward(
    scores: Floats, begin: int, length: int, steps: StepPotentials, allowed: Mask
) -> Doubles:
    """What lies behind each position of a sequence, the position too, in log space, by context.

    shape: (length + 1, n_contexts)
    """
    order, n_labels = steps.order, len(steps.end)
    beta: Doubles = np.full((length + 1, n_labels**order), -np.inf)
    beta[length] = 0.0
    for t in range(length - 1, -1, -1):
        for c in range(n_labels ** min(t, order)):
            for y in range(n_labels):
                value = clamped_potential(scores, begin, length, t, c, y, steps, allowed)
                value += beta[t + 1, context_after(c, y, order, n_labels)]
                beta[t, c] = log_add(beta[t, c], value)
    return beta


@kernel
def log_space_pass(
    sequences: ScoredChunk, s: int, steps: StepPotentials, allowed: Mask, out: Marginals
) -> float:
    """Forward-backward of sequence s in log space, right for any potentials: the scaled twin.

    Adds the marginals to out.pairs and out.nodes (zero before) and returns log Z.
    """
    scores = sequences.scores
    begin = sequences.offsets[s]
    length = sequences.offsets[s + 1] - begin
    order, n_labels = steps.order, len(steps.end)
    alpha = log_forward(scores, begin, length, steps, allowed)
    log_z = -np.inf
    for c in range(n_labels**order):
        log_z = log_add(log_z, alpha[length, c])
    if log_z == -np.inf or len(out.pairs) + len(out.nodes) == 0:
        return log_z

    beta = log_backward(scores, begin, length, steps, allowed)
    for t in range(length):
        for c in range(n_labels ** min(t, order)):
            for y in range(n_labels):
                value = clamped_potential(scores, begin, length, t, c, y, steps, allowed)
                value += beta[t + 1, context_after(c, y, order, n_labels)]
                probability = math.exp(alpha[t, c] + value - log_z)
                if len(out.pairs) > 0:
                    out.pairs[begin + t, c, y] = probability
                if len(out.nodes) > 0:
                    out.nodes[begin + t, y] += probability
    return log_z


@kernel(forceinline=True)
def _exponentiate(
    scores: Floats,
    begin: int,
    length: int,
    steps: StepPotentials,
    allowed: Mask,
    scratch: _Scratch,
) -> bool:
    """Fill weights and top of one sequence; False if a weight is too small to be trusted."""
    weights, tops, end = scratch.weights, scratch.top, steps.end
    n_labels = len(end)
    n_tables = scores.shape[1]
    n_contexts = scratch.alpha.shape[1]
    clamped = len(allowed) > 0
    live = 1  # contexts that can occur at this position
    for t in range(length):
        top = -np.inf
        for c in range(min(live, n_tables)):
            for y in range(n_labels):
                value = float(scores[begin + t, c, y])
                if t == length - 1:
                    value += end[y]
                if clamped and allowed[begin + t, y] == 0:
                    value = -np.inf
                weights[t, c, y] = value
                top = max(top, value)
        for c in range(min(live, n_tables)):
            for y in range(n_labels):
                value = weights[t, c, y]
                weight = math.exp(value - top)
                if not (weight >= TINY or value == -np.inf):
                    return False
                weights[t, c, y] = weight
        tops[t] = top
        live = min(live * n_labels, n_contexts)
    return True


# The next two are the inner loops of order 1. There labels are neighbours, so that compilers make
# vectors of them.
@step
def _add_moves(mass: float, weights: Doubles, edges: Doubles, after: Doubles) -> None:
    """Add to each label the mass that moves there from one context."""
    for y in range(len(weights)):
        after[y] += mass * weights[y] * edges[y]


@step
def _set_products(
    weights: Doubles, edges: Doubles, beta_after: Doubles, rescale: float, out: Doubles
) -> None:
    """Set out to what lies behind one context, by label."""
    for y in range(len(weights)):
        out[y] = weights[y] * edges[y] * beta_after[y] * rescale


@kernel(forceinline=True)
def _forward(length: int, order: int, edges: Doubles, scratch: _Scratch) -> float:
    """Fill alpha and scale of one sequence from its weights.

    edges: exp(moves - their maximum). Returns log Z without that maximum, or NaN if a factor is
    too small to be trusted.
    """
    weights, top, alpha, scale = scratch
    n_labels = edges.shape[1]
    n_contexts = alpha.shape[1]
    n_tables = weights.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    log_z = 0.0
    live = 1  # contexts that can occur at this position
    alpha[0, 0] = 1.0
    for t in range(length):
        live_after = min(live * n_labels, n_contexts)
        for c in range(live_after):
            alpha[t + 1, c] = 0.0
        for c in range(live):
            mass = alpha[t, c]
            if mass == 0.0:
                continue
            table = c if n_tables > 1 else 0
            before = n_labels if t == 0 else c % n_labels
            if order == 1:
                _add_moves(mass, weights[t, table], edges[before], alpha[t + 1])
                continue
            base = n_labels * (c % stride)
            for y in range(n_labels):
                alpha[t + 1, base + step * y] += mass * weights[t, table, y] * edges[before, y]
        total = 0.0
        for c in range(live_after):
            total += alpha[t + 1, c]
        if not total >= TINY:  # also NaN
            return np.nan
        for c in range(live_after):
            mass = alpha[t + 1, c] / total
            if 0.0 < mass < TINY:
                return np.nan
            alpha[t + 1, c] = mass
        scale[t] = total
        log_z += top[t] + math.log(total)
        live = live_after
    return log_z


@kernel(forceinline=True)
def _backward(
    begin: int, length: int, order: int, edges: Doubles, scratch: _Scratch, out: Marginals
) -> None:
    """Scaled backward pass over what _forward left; adds the marginals to out.

    beta is scaled such that sum_c alpha[t, c] * beta[t, c] = 1: a beta that underflows belongs to
    a context of probability below 1e-200. Contexts without mass get beta 0, others stay <= 1/TINY.
    """
    weights, _, alpha, scale = scratch
    pairs, nodes, _ = out
    n_labels = edges.shape[1]
    n_contexts = alpha.shape[1]
    n_tables = weights.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    beta_after = np.ones(n_contexts)
    beta = np.empty(n_contexts)
    joint = np.empty(n_labels)
    for t in range(length - 1, -1, -1):
        rescale = 1.0 / scale[t]
        for c in range(n_labels ** min(t, order)):
            mass = alpha[t, c]
            beta[c] = 0.0
            if mass == 0.0:
                continue
            table = c if n_tables > 1 else 0
            before = n_labels if t == 0 else c % n_labels
            base = n_labels * (c % stride)
            if order == 1:
                _set_products(weights[t, table], edges[before], beta_after, rescale, joint)
            else:
                for y in range(n_labels):
                    value = weights[t, table, y] * edges[before, y] * beta_after[base + step * y]
                    joint[y] = value * rescale
            total = 0.0
            for y in range(n_labels):
                total += joint[y]
            beta[c] = total
            for y in range(n_labels):
                joint[y] *= mass
            if len(pairs) > 0:
                for y in range(n_labels):
                    pairs[begin + t, c, y] = joint[y]
            if len(nodes) > 0:
                for y in range(n_labels):
                    nodes[begin + t, y] += joint[y]
        beta, beta_after = beta_after, beta


@kernel
def scaled_pass(
    sequences: ScoredChunk,
    steps: StepPotentials,
    edges: Doubles,
    allowed: Mask,
    out: Marginals,
) -> None:
    """Scaled forward-backward of the sequences; NaN in out.log_z where it gives up.

    edges: exp(steps.moves - their maximum), which log Z is then without.
    """
    scores, offsets, order = sequences.scores, sequences.offsets, steps.order
    longest = longest_of(offsets, sequences.first, sequences.last)
    n_labels = len(steps.end)
    scratch = _Scratch(
        alpha=np.empty((longest + 1, n_labels**order)),
        weights=np.empty((longest, scores.shape[1], n_labels)),
        scale=np.empty(longest),
        top=np.empty(longest),
    )
    want_marginals = len(out.pairs) + len(out.nodes) > 0
    for s in range(sequences.first, sequences.last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        out.log_z[s] = np.nan
        if _exponentiate(scores, begin, length, steps, allowed, scratch):
            out.log_z[s] = _forward(length, order, edges, scratch)
        if want_marginals and not np.isnan(out.log_z[s]):
            _backward(begin, length, order, edges, scratch, out)


@kernel
def path_scores_kernel(
    scores: Floats, offsets: Ints, labels: Labels, steps: StepPotentials, out: Doubles
) -> None:
    """Write the sum of potentials along the labels of every sequence into out."""
    n_labels = len(steps.end)
    stride = max(1, n_labels**steps.order // n_labels)
    for s in range(len(out)):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        out[s] = 0.0
        c = 0
        for t in range(length):
            y = labels[begin + t]
            out[s] += potential(scores, begin, length, t, c, y, steps)
            c = n_labels * (c % stride) + min(1, steps.order) * y
