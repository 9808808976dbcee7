"""Damaged and edited model files: a ValueError that names the field, or a model that works.

Mutants are loaded in a process of their own, so that a crash of the interpreter is a failure of
the test and not of pytest: `python -m tests.models.test_model_files MUTATION SEED COUNT`.
"""

from __future__ import annotations

import faulthandler
import math
import random
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from spacy_treecrf.engine.trees.posting_lists import MAX_MASK_LEAVES
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.model_kinds import model_from_state
from spacy_treecrf.storage import container
from tests.hardening.memory_limit import most_memory
from tests.models.state_edits import copied, edit, put, set_labels
from tests.tiny import tiny_data

ROOT = Path(__file__).resolve().parents[2]
X, Y = tiny_data(60)
SMALL: dict[str, Any] = {
    "rounds": 4,
    "linear_rounds": 2,
    "min_rows": 1,
    "min_count": 1,
    "threads": 1,
}
# A mutant that needs more has announced a size that nothing in the file backs up.
MEMORY = 6 * 2**30
SECONDS = 120  # against hangs; a busy machine may have to compile kernels meanwhile


FEW: dict[str, Any] = {"rounds": 12, "min_rows": 1, "min_count": 1, "threads": 1}
ESTIMATORS: tuple[type[SequenceEstimator], ...] = (
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
    SECOCCRF,
)


def tiny_future(turned: bool = False) -> tuple[list[Any], list[list[str]]]:
    """Labels tell whether the word w1 follows (turned: comes before) within 2, in the tiny data."""
    x = [list(reversed(items)) if turned else items for items in X]
    y = []
    for items in X:
        after = [[item["word"] for item in items[t + 1 : t + 3]] for t in range(len(items))]
        y.append(["B" if "w1" in few else "A" for few in after])
    return x, [labels[::-1] if turned else labels for labels in y]


def load_any(path: Path) -> SequenceEstimator:
    """Load a model by the estimator that learns models of its kind."""
    model = model_from_state(container.read(path))
    (kind,) = (one for one in ESTIMATORS if isinstance(model, one._model_type))
    return kind.load(path)


def make_models() -> dict[str, dict[str, Any]]:
    """The states of one model of each kind: both families, numeric columns, large trees."""
    rng = random.Random(1)
    noise = [[rng.choice("ABC") for _ in labels] for labels in Y]
    bio = [["B-X" if t == 0 or label == "A" else "I-X" for t, label in enumerate(y)] for y in Y]
    bio[0] = ["O"] * len(bio[0])
    fitted = {
        "separate": BoostedCRF(**SMALL, family="separate").fit(X, Y),
        "large trees": BoostedCRF(**SMALL, leaves=200, penalty=0.0, trim=0.0).fit(X, noise),
        "joint": BoostedCRF(**SMALL, family="joint", order=2, leaves=80).fit(X, Y),
        "gradient": BoostedCRF(**SMALL, family="joint", step="gradient").fit(X, Y),
        "conjugate": BoostedCRF(**SMALL, family="separate", step="conjugate").fit(X, Y),
        **{
            name: BoostedCRF(**SMALL, family="joint", missing=name).fit(X, Y)
            for name in ("instance_weighting", "surrogate", "imputation", "indicator")
        },
        "bio": BoostedCRF(**SMALL, constraints="bio", predictor="marginal").fit(X, bio),
        "order 0": BoostedCRF(**SMALL, order=0).fit(X, Y),
        "untrained": BoostedCRF(**{**SMALL, "rounds": 0}).fit(X, Y),
        "beam": BoostedCRF(**SMALL, family="separate", beam=2).fit(X, Y),
        "compact": compact(BoostedCRF(**SMALL, family="separate").fit(X, Y)),
        "perceptron": PerceptronTagger(rounds=2, threads=1).fit(X, Y),
        "voted": PerceptronTagger(rounds=2, method="voted", constraints="bio").fit(X, bio),
        "coded": SECOCCRF(base=BoostedCRF(**SMALL), beam=2, threads=1).fit(X, Y),
        "columns": SECOCCRF(base=BoostedCRF(**SMALL), decoding="l1", threads=1).fit(X, Y),
        "cascade": SECOCCRF(base=BoostedCRF(**SMALL), history=2, threads=1).fit(X, Y),
        "memm": BoostedMEMM(**SMALL, order=2, leaves=80).fit(X, Y),
        "memm beam": BoostedMEMM(
            **SMALL, order=3, search="beam", right_to_left=True, constraints="bio"
        ).fit(X, bio),
        "future": FutureFeatureMEMM(**FEW, bag=2).fit(*tiny_future()),
        "future greedy": FutureFeatureMEMM(**FEW, order=2, right_to_left=True, search="greedy").fit(
            *tiny_future(turned=True)
        ),
    }
    return {name: model.model_.to_state() for name, model in fitted.items()}


def compact(model: BoostedCRF) -> BoostedCRF:
    model.model_ = model.model_.compacted()
    return model


def test_models_to_mutate_have_what_a_kernel_could_trip_over() -> None:
    models = make_models()
    for name in set(models) - {"untrained", "perceptron", "voted"}:
        state = models[name]
        assert state["columns"]["numeric_names"], name
        assert len(state["forest"]["kind"]), name
    kinds = [set(models[name]["forest"]["kind"].tolist()) for name in ("separate", "joint")]
    assert kinds == [{0, 1, 2}, {0, 1, 2, 3}]
    for name in ("memm", "memm beam", "future", "future greedy"):
        assert len(models[name]["forest"]["kind"]), name
    for name in ("future", "future greedy"):
        assert models[name]["detectors"]["forests"], name
    sizes = np.diff(models["large trees"]["forest"]["tree_first"])
    assert sizes.max() > 2 * MAX_MASK_LEAVES
    assert sizes.min() > 1
    assert models["conjugate"]["direction"]["share"].any()
    assert models["voted"]["voters"]
    cascade = models["cascade"]["forest"]
    n_own = len(models["cascade"]["columns"]["numeric_names"])
    assert np.any(cascade["feature"][cascade["kind"] == 2] >= n_own)
    detours = models["surrogate"]["forest"]["detours"]
    assert set(detours["kind"].tolist()) == {1, 2}
    assert models["instance_weighting"]["forest"]["detours"]["right_share"].any()
    assert len(models["imputation"]["columns"]["imputed"])
    assert any(
        name.endswith("=<missing>") for name in models["indicator"]["columns"]["feature_names"]
    )


@pytest.fixture(scope="module")
def saved() -> bytes:
    return container.dump(BoostedCRF(**SMALL, family="separate").fit(X, Y).model_.to_state())


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("kind", lambda s: s.update(kind="nonsense")),
        ("order", lambda s: s["settings"].update(order=3)),
        ("settings.leaves", lambda s: s["settings"].update(leaves=2.5)),
        ("settings.extra", lambda s: s["settings"].update(extra=1)),
        ("labels", lambda s: s.update(labels=["A", "A", "B"])),
        ("labels", lambda s: s.update(labels=[])),
        ("masks.start", lambda s: s["masks"].update(start=np.ones(2, bool))),
        ("masks.start", lambda s: s["masks"]["start"].fill(False)),
        ("masks.end", lambda s: s["masks"]["end"].fill(False)),
        ("masks.trans", lambda s: only_from_start_to_itself(s["masks"])),
        ("edges", lambda s: s["edges"].fill(np.nan)),
        ("linear.where", lambda s: s["linear"]["where"].fill(0)),
        ("linear.where", lambda s: put(s["linear"]["where"], -1, 2**40)),
        ("linear.value", lambda s: put(s["linear"]["value"], 0, np.inf)),
        ("linear.numeric", lambda s: s["linear"].update(numeric=np.zeros((9, 3), np.float32))),
        ("previous_linear", lambda s: s.pop("previous_linear")),
        ("columns.counts", lambda s: put(s["columns"]["counts"], -1, 10**9)),
        ("columns.column_of", lambda s: put(s["columns"]["column_of"], 0, 99)),
        ("columns.slot_range", lambda s: put(s["columns"]["slot_range"], 0, -1)),
        ("columns.n_shared_slots", lambda s: s["columns"].update(n_shared_slots=10**9)),
        ("columns.bin_edges", lambda s: put(s["columns"]["bin_edges"], 0, np.nan)),
        ("columns.bin_edge_offsets", lambda s: put(s["columns"]["bin_edge_offsets"], 1, 2**62)),
        ("columns.bin_values", lambda s: put(s["columns"]["bin_values"], 1, 1e300)),
        ("forest.tree_first", lambda s: put(s["forest"]["tree_first"], 1, 2**62)),
        ("forest.tree_class", lambda s: put(s["forest"]["tree_class"], 0, 3)),
        ("forest.tree_round", lambda s: put(s["forest"]["tree_round"], 0, 99)),
        ("forest.kind", lambda s: put(s["forest"]["kind"], 0, 200)),
        ("forest.feature", lambda s: put(s["forest"]["feature"], 0, 10**6)),
        ("forest.threshold", lambda s: put(s["forest"]["threshold"], 0, -5)),
        ("forest.left", lambda s: put(s["forest"]["left"], 0, 0)),
        ("forest.left", lambda s: put(s["forest"]["right"], 0, s["forest"]["left"][0])),
        ("forest.right", lambda s: put(s["forest"]["right"], 0, 10**6)),
        ("forest.value", lambda s: put(s["forest"]["value"], 0, 1e30)),
        ("rounds", lambda s: s.update(rounds=-1)),
        ("rounds", lambda s: s.update(rounds=1)),  # of which there are later trees
    ],
)
def test_edited_field_is_named(
    field: str, change: Callable[[dict[str, Any]], Any], saved: bytes, tmp_path: Path
) -> None:
    state = container.parse(saved)
    change(state)
    (tmp_path / "model").write_bytes(container.dump(state))
    with pytest.raises(ValueError, match=rf"^treecrf: .*'{re.escape(field)}'"):
        BoostedCRF.load(tmp_path / "model")


@pytest.mark.parametrize("missing", ["instance_weighting", "surrogate", "indicator"])
@pytest.mark.parametrize(
    "model",
    [
        BoostedMEMM(**SMALL),
        FutureFeatureMEMM(**FEW, bag=2),
        PerceptronTagger(rounds=2),
        SECOCCRF(base=BoostedCRF(**SMALL)),
        BoostedCRF(**SMALL),
    ],
    ids=lambda model: type(model).__name__,
)
def test_another_treatment_of_missing_values_in_columns_is_refused_on_load(
    model: SequenceEstimator, missing: str, tmp_path: Path
) -> None:
    state = model.fit(X, Y).model_.to_state()
    state["columns"]["missing"] = missing
    container.save(tmp_path / "model", state)
    with pytest.raises(ValueError, match=r"^treecrf: model field '(columns|settings)'.*missing="):
        type(model).load(tmp_path / "model")


def test_no_observed_transition_means_that_none_is_forbidden(tmp_path: Path) -> None:
    """Models of 0.1.0 forbade all of them after training on sequences of one position."""
    single = BoostedCRF(**SMALL, constraints="observed").fit([x[:1] for x in X], [y[:1] for y in Y])
    state = single.model_.to_state()
    state["masks"]["trans"].fill(False)
    container.save(tmp_path / "model", state)
    loaded = BoostedCRF.load(tmp_path / "model")
    assert loaded.predict_marginals(X) == single.predict_marginals(X)


def only_from_start_to_itself(masks: dict[str, Any]) -> None:
    """Sequences begin with label 0 and end with label 1, which nothing leads to."""
    for name, allowed in (("start", 0), ("trans", (0, 0)), ("end", 1)):
        masks[name].fill(False)
        masks[name][allowed] = True


def refusal(work: Callable[[], Any]) -> str | None:
    """The message of the ValueError that this raises, None if it raises none."""
    try:
        work()
    except ValueError as error:
        message = str(error)
        if not message.startswith("treecrf: "):
            raise
        return message
    return None


class Trial:
    """Loads mutants and uses those that load; what it does is written down before it is done."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []
        self.folder = Path(tempfile.mkdtemp())

    def __call__(
        self, data: bytes, description: str, *, sealed: bool = True, train: bool = False
    ) -> None:
        """sealed: the checksum is right, so that an error has to name the field."""
        self.log.write_text(description)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            self.load(data, sealed, train)
        except Exception:
            self.failures.append(description)
            print(f"{description}\n{traceback.format_exc(limit=-4)}", flush=True)
        faulthandler.cancel_dump_traceback_later()

    def load(self, data: bytes, sealed: bool, train: bool) -> None:
        path = self.folder / "model"
        path.write_bytes(data)
        if message := refusal(lambda: load_any(path)):
            self.outcomes["refused"] += 1
            assert not sealed or re.search(r"field '|fields: '|setting '", message), message
            return
        model = load_any(path)
        self.use(model)
        self.outcomes["loaded"] += 1
        if train:
            self.train(model)

    def use(self, model: SequenceEstimator) -> None:
        gone = dict.fromkeys(X[0][0])
        few = [
            [],
            *X[:3],
            [{}],
            [{"word": "new", "size": -1e300}, {"size": math.nan}],
            [gone, gone],
        ]
        labels = set(model.classes_)
        for x, predicted, marginals, paths in zip(
            few,
            model.predict(few),
            model.predict_marginals(few),
            model.predict_nbest(few, n=2),
            strict=True,
        ):
            assert len(x) == len(predicted) == len(marginals)
            assert labels.issuperset(predicted)
            # No path at all, and no probabilities, where the masks allow no label sequence.
            assert len(paths) <= 2
            assert all(len(path) == len(x) and 0.0 <= p <= 1.0 + 1e-6 for path, p in paths), paths
            for row in marginals:
                assert all(0.0 <= p <= 1.0 + 1e-6 for p in row.values()), row
                assert math.isclose(sum(row.values()), bool(paths), abs_tol=1e-6), row

    def train(self, model: SequenceEstimator) -> None:
        """One more round; the result must be fit for use, and for saving and loading."""
        classes = model.classes_
        y = [[classes[ord(label) % len(classes)] for label in labels] for labels in Y[:10]]
        model.set_params(warm_start=True)
        trained = model.base if isinstance(model, SECOCCRF) else model
        trained.set_params(rounds=model.rounds_ + 1)
        if refusal(lambda: model.fit(X[:10], y)) is None:
            model.save(self.folder / "trained")
            self.use(load_any(self.folder / "trained"))
            self.outcomes["trained"] += 1


def try_flips(trial: Trial, seed: int, count: int) -> None:
    """Bytes of the file changed, cut or added; the checksum is as it was."""
    rng = random.Random(seed)
    files = [
        container.dump(state, small=small)
        for state in make_models().values()
        for small in (False, True)
    ]
    for i in range(count):
        data = bytearray(rng.choice(files))
        if i % 4 == 0:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.choice([0, 1, 3]) if i % 4 == 0 else rng.choice([1, 1, 10])):
            if data:
                # the header is where a flip could matter
                at = rng.randrange(min(80, len(data)) if rng.random() < 0.3 else len(data))
                data[at] ^= 1 << rng.randrange(8)
        trial(bytes(data), f"flip {i}", sealed=False)
    # two flips of the same bit cancel out, nothing else may load
    assert trial.outcomes["loaded"] <= count // 1000


def try_edits(trial: Trial, seed: int, count: int) -> None:
    """Fields of the state changed and the file sealed with a right checksum."""
    models = make_models()
    names = list(models)
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        name = names[i % len(names)]
        state, description = edit(models[name], rng)
        data = container.dump(state, small=i % 3 == 0)
        trial(data, f"edit {i} of {name!r}: {description}", train=i % 20 < 2)


def try_hypothesis(trial: Trial, seed_: int, count: int) -> None:
    """The same edits, chosen and shrunk by hypothesis."""
    models = make_models()

    @seed(seed_)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(sorted(models)), st.randoms(use_true_random=False))
    def check(name: str, rng: random.Random) -> None:
        state, description = edit(models[name], rng)
        trial.failures.clear()
        trial(container.dump(state), f"{name!r}: {description}")
        assert not trial.failures

    check()


def try_contexts(trial: Trial, seed: int, count: int) -> None:
    """Consistent models of more and more contexts, up to far more than memory."""
    models = make_models()
    for n, order in [(30, 1), (300, 1), (30, 3), (120, 3), (30, 4), (300, 4), (1000, 4)][:count]:
        state = copied(models["separate"])
        description = set_labels(state, n, order)
        trial(container.dump(state), description)


MUTATIONS = {
    "contexts": try_contexts,
    "flips": try_flips,
    "edits": try_edits,
    "hypothesis": try_hypothesis,
}


@pytest.mark.parametrize(
    ("mutation", "count"),
    [
        ("flips", 500),
        ("edits", 300),
        ("hypothesis", 100),
        ("contexts", 7),
        pytest.param("flips", 5000, marks=pytest.mark.slow),
        pytest.param("edits", 3000, marks=pytest.mark.slow),
        pytest.param("hypothesis", 1000, marks=pytest.mark.slow),
    ],
)
def test_mutant_is_refused_or_works(mutation: str, count: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "tests.models.test_model_files",
        mutation,
        "0",
        str(count),
        str(log),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    last = log.read_text() if log.exists() else "nothing"
    assert run.returncode == 0, f"last mutant: {last}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"


def main(mutation: str, seed: str, count: str, log: str) -> None:
    faulthandler.enable()
    warnings.simplefilter("error", RuntimeWarning)
    most_memory(MEMORY)
    trial = Trial(Path(log))
    MUTATIONS[mutation](trial, int(seed), int(count))
    print(dict(trial.outcomes))
    sys.exit(bool(trial.failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
