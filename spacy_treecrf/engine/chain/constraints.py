"""Which labels may start, follow each other and end: masks of 0 (allowed) and -inf (forbidden).

What is allowed comes from the training data, from a label scheme, or is everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.limits import CONSTRAINTS

Bools = npt.NDArray[np.bool_]
Masks = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]

# Prefixes of labels, IOBES spelling included, and what they mean in BILUO.
_BIO = {"B": "B", "I": "I"}
_BILUO = {"B": "B", "I": "I", "L": "L", "E": "L", "U": "U", "S": "U"}


def first_forbidden(
    labels: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], masks: Masks
) -> int | None:
    """The first row whose annotated label may not stand where it does; None if there is none."""
    start, trans, end = (np.isfinite(mask) for mask in masks)
    starts, ends = offsets[:-1], offsets[1:] - 1
    bad = np.zeros(len(labels), dtype=bool)
    known = labels >= 0
    bad[starts] |= known[starts] & ~start[labels[starts]]
    bad[ends] |= known[ends] & ~end[labels[ends]]
    after = np.ones(len(labels), dtype=bool)
    after[starts] = False
    after &= known
    after[1:] &= known[:-1]
    rows = np.flatnonzero(after)
    bad[rows] |= ~trans[labels[rows - 1], labels[rows]]
    return int(np.argmax(bad)) if bad.any() else None


def constrain(
    kind: str,
    labels: Sequence[str],
    *,
    order: int,
    observed_start: Bools | None = None,
    observed_trans: Bools | None = None,
    observed_end: Bools | None = None,
) -> Masks:
    """The masks (start[K], trans[K, K], end[K]) of a kind of constraint, for a Chain.

    "none" allows everything; "observed" what observed_transitions saw; "bio" and "biluo" what
    these schemes allow, where every label must be "O" or a prefix, "-" and a type. Order 0 has no
    transitions to constrain: nothing is masked, and a scheme is an error.
    """
    if kind not in CONSTRAINTS:
        raise ValueError(
            f"treecrf: unknown kind of constraint {kind!r}; choose one of {', '.join(CONSTRAINTS)}"
        )
    n_labels = len(labels)
    if kind in ("bio", "biluo"):
        if order == 0:
            raise ValueError(
                f"treecrf: constraint {kind!r} needs a chain of order 1 or more, because order 0 "
                "labels each position on its own; raise the order or use constraint 'none'"
            )
        start, trans, end = _scheme(kind, labels)
    elif kind == "observed" and order > 0:
        if observed_start is None or observed_trans is None or observed_end is None:
            raise ValueError(
                "treecrf: constraint 'observed' needs observed_start, observed_trans and "
                "observed_end; take them from observed_transitions"
            )
        start, trans, end = observed_start, observed_trans, observed_end
        if start.shape != (n_labels,) or trans.shape != (n_labels,) * 2 or end.shape != (n_labels,):
            raise ValueError(
                f"treecrf: observed arrays have shapes {start.shape}, {trans.shape}, {end.shape}, "
                f"but there are {n_labels} labels"
            )
    else:
        start, trans, end = _everything(n_labels)
    return _mask(start), _mask(trans), _mask(end)


def observed_transitions(
    labels: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], n_labels: int
) -> tuple[Bools, Bools, Bools]:
    """The transitions of training data (start[K], trans[K, K], end[K]); label -1 is unknown.

    Unknown labels must not forbid what only they would have shown, nor leave a training sequence
    without any allowed completion. So next to an unknown label everything counts as seen: the
    whole row or column of a known neighbour, all starts for an unknown first, all ends for an
    unknown last label. Two unknown neighbours show nothing, except that in a sequence without
    any known label each label may stay as it is. Each unknown run can then be filled with the
    known label beside it.
    """
    start = np.zeros(n_labels, dtype=bool)
    trans = np.zeros((n_labels, n_labels), dtype=bool)
    end = np.zeros(n_labels, dtype=bool)
    lengths = np.diff(offsets)
    filled = np.flatnonzero(lengths > 0)
    if len(filled) == 0:
        return start, trans, end

    first = labels[offsets[:-1][filled]]
    final = labels[offsets[1:][filled] - 1]
    start[first[first >= 0]] = True
    start |= bool(np.any(first < 0))
    end[final[final >= 0]] = True
    end |= bool(np.any(final < 0))

    rows = labels[offsets[0] : offsets[-1]]
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    inside = sequence[1:] == sequence[:-1]
    before, after = rows[:-1][inside], rows[1:][inside]
    known_before, known_after = before >= 0, after >= 0
    trans[before[known_before & known_after], after[known_before & known_after]] = True
    trans[before[known_before & ~known_after], :] = True
    trans[:, after[~known_before & known_after]] = True

    has_known = np.bincount(sequence, weights=rows >= 0, minlength=len(lengths)) > 0
    if np.any(~has_known & (lengths > 1)):
        np.fill_diagonal(trans, True)
    return start, trans, end


def _scheme(kind: str, labels: Sequence[str]) -> tuple[Bools, Bools, Bools]:
    """The transitions that a scheme allows: both sides must agree on the entity between them."""
    roles = [_role(kind, label) for label in labels]
    # The type of the entity that stays open behind a label; BIO may also close it there.
    opens = [name if role in ("B", "I") else None for role, name in roles]
    # The type of the entity that must be open before a label.
    needs = [name if role in ("I", "L") else None for role, name in roles]
    must_go_on = kind == "biluo"
    start = np.array([need is None for need in needs], dtype=bool)
    end = np.array([not must_go_on or left is None for left in opens], dtype=bool)
    trans = np.array(
        [[left == need or (need is None and not must_go_on) for need in needs] for left in opens],
        dtype=bool,
    ).reshape(len(labels), len(labels))
    return start, trans, end


def _role(kind: str, label: str) -> tuple[str, str]:
    """The label as (prefix in BILUO spelling, type); ("O", "") is outside."""
    prefixes = _BIO if kind == "bio" else _BILUO
    if label == "O":
        return "O", ""
    prefix, _, name = label.partition("-")
    if prefix not in prefixes or not name:
        spellings = ", ".join(f"'{prefix}-X'" for prefix in prefixes)
        raise ValueError(
            f"treecrf: label {label!r} does not follow the scheme {kind!r} ('O', {spellings}); "
            "rename it or use constraint 'observed' or 'none'"
        )
    return prefixes[prefix], name


def _everything(n_labels: int) -> tuple[Bools, Bools, Bools]:
    vector = np.ones(n_labels, dtype=bool)
    return vector, np.ones((n_labels, n_labels), dtype=bool), vector


def _mask(allowed: Bools) -> npt.NDArray[np.float32]:
    return np.where(allowed, np.float32(0.0), np.float32(-np.inf))
