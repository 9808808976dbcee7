"""Secondary structure of proteins: our inputs and settings, and how they were found.

    python -m scripts.reproduce.protein

cross-validates them on the training chains. Chains that share six residues in a row are in one
fold: otherwise remembering a chain's relatives would look like learning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer

from spacy_treecrf import BoostedCRF
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.corpora import LabelledSequence, load_corpus

Part = tuple[list[Any], list[list[str]]]  # X and y

FOLDS = 5
SEEDS = 5  # as many models are averaged
RELATED = 6  # chains that share so many residues in a row are related
WINDOW = range(-8, 9)
EDGE = "<edge>"
# Residues that are alike, in four ways. The tests of a tree ask for one value each: so one test
# finds what would take one for every residue of the group.
GROUPS = {
    "kind": ["AVLIM", "FWYH", "STNQ", "KR", "DE"],
    "prefers": ["AELMQKRH", "VIYCWFT", "GNPSD"],  # helix, sheet, coil
    "water": ["AVLIMFWCY", "RKDENQHSTGP"],  # avoids it, or not
    "size": ["AGSC", "TPDNV", "EQHLIKMRFWY"],
}
SETTINGS = {
    "family": "joint",
    "order": 2,
    "rounds": 650,
    "linear_rounds": 0,
    "shrinkage": 0.02,
    "leaves": 32,
    "min_rows": 20,
    "penalty": 10.0,
    "subsample": 0.6,
    "colsample": 0.3,
    "predictor": "marginal",
}
# Models that are averaged have larger steps, so that five of them take the time of one.
FASTER = {"rounds": 130, "shrinkage": 0.1}


def parts() -> dict[str, Part]:
    """The 111 chains of "train", and the 17 of "test"."""
    splits = load_corpus("protein", dev_share=0.0)
    return {name: inputs(splits[name]) for name in ("train", "test")}


def estimator(**changes: Any) -> BoostedCRF:
    return BoostedCRF(**{**SETTINGS, **changes})


def several(n: int = SEEDS, **changes: Any) -> list[BoostedCRF]:
    """Models to be averaged, not yet fitted."""
    return [estimator(seed=seed, **{**FASTER, **changes}) for seed in range(n)]


def inputs(sequences: Sequence[LabelledSequence]) -> Part:
    return [windows(r.words) for r in sequences], [r.labels["structure"] for r in sequences]


def windows(residues: Sequence[str]) -> list[dict[str, str]]:
    """The residues around each residue, and the groups of these."""
    columns = {"residue": {residue: residue for residue in set(residues)}}
    for name, groups in GROUPS.items():
        columns[name] = {residue: group for group in groups for residue in group}
    items: list[dict[str, str]] = [{} for _ in residues]
    for t, item in enumerate(items):
        for offset in WINDOW:
            inside = 0 <= t + offset < len(residues)
            for name, value_of in columns.items():
                value = value_of.get(residues[t + offset]) if inside else EDGE
                if value is not None:
                    item[f"{name}[{offset}]"] = value
    return items


def families(sequences: Sequence[LabelledSequence]) -> list[int]:
    """A number for each chain, the same for chains related directly or through others."""
    family = list(range(len(sequences)))
    owner: dict[str, int] = {}
    for i, sequence in enumerate(sequences):
        for start in range(len(sequence.key) - RELATED + 1):
            other = owner.setdefault(sequence.key[start : start + RELATED], i)
            mine, its = family[i], family[other]
            if mine != its:
                family = [its if f == mine else f for f in family]
    return family


def folds(sequences: Sequence[LabelledSequence], n: int = FOLDS) -> list[int]:
    """The fold of each chain: families stay together, and folds are about equally long."""
    family = families(sequences)
    length: dict[int, int] = {}
    for f, sequence in zip(family, sequences, strict=True):
        length[f] = length.get(f, 0) + len(sequence.words)
    load = [0] * n
    fold_of: dict[int, int] = {}
    for f in sorted(length, key=lambda f: (-length[f], f)):
        fold_of[f] = int(np.argmin(load))
        load[fold_of[f]] += length[f]
    return [fold_of[f] for f in family]


def cross_validate() -> dict[str, float]:
    """The shares of right labels of training chains, by models that saw no relative of them."""
    sequences = load_corpus("protein", dev_share=0.0)["train"]
    fold = folds(sequences)
    right: dict[str, float] = {}
    total = 0
    temperatures = []
    for held_out in range(FOLDS):
        X, y = inputs([r for r, f in zip(sequences, fold, strict=True) if f != held_out])
        slow, models = estimator().fit(X, y), [model.fit(X, y) for model in several()]
        X, y = inputs([r for r, f in zip(sequences, fold, strict=True) if f == held_out])
        accuracies = {
            "one model, small steps": slow.score(X, y),
            "models with larger steps, mean": np.mean([m.score(X, y) for m in models]),
            "their average": BoostedCRF.average(models).score(X, y),
        }
        n = sum(map(len, y))
        temperatures.append(slow.calibrate(X, y).temperature_)
        say(f"  fold {held_out + 1}, {n} residues: {in_words(accuracies)}")
        for name, accuracy in accuracies.items():
            right[name] = right.get(name, 0.0) + accuracy * n
        total += n
    say(f"  honest temperature of one model, mean of the folds: {np.mean(temperatures):.2f}")
    return {name: n / total for name, n in right.items()}


def in_words(accuracies: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {100 * share:.2f} %" for name, share in accuracies.items())


if __name__ == "__main__":
    typer.echo(f"All training chains: {in_words(cross_validate())}")
