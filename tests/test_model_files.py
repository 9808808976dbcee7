"""Damaged and edited model files: a ValueError that names the field, or a model that works.

Mutants are loaded in a process of their own, so that a crash of the interpreter is a failure of
the test and not of pytest: `python -m tests.test_model_files MUTATION SEED COUNT`.
"""

from __future__ import annotations

import faulthandler
import math
import random
import re
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.scoring import MAX_MASK_LEAVES
from spacy_treecrf.models import storage
from tests.tiny import tiny_data

ROOT = Path(__file__).resolve().parents[1]
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
SECONDS = 20


def make_models() -> dict[str, dict[str, Any]]:
    """The states of one model of each kind: both families, numeric columns, large trees."""
    rng = random.Random(1)
    noise = [[rng.choice("ABC") for _ in labels] for labels in Y]
    bio = [["B-X" if t == 0 or label == "A" else "I-X" for t, label in enumerate(y)] for y in Y]
    bio[0] = ["O"] * len(bio[0])
    fitted = {
        "separate": BoostedCRF(**SMALL).fit(X, Y),
        "large trees": BoostedCRF(**SMALL, leaves=200, penalty=0.0, trim=0.0).fit(X, noise),
        "joint": BoostedCRF(**SMALL, family="joint", order=2, leaves=80).fit(X, Y),
        "gradient": BoostedCRF(**SMALL, family="joint", step="gradient").fit(X, Y),
        "bio": BoostedCRF(**SMALL, constraints="bio", predictor="marginal").fit(X, bio),
        "order 0": BoostedCRF(**SMALL, order=0).fit(X, Y),
        "untrained": BoostedCRF(**{**SMALL, "rounds": 0}).fit(X, Y),
    }
    return {name: model.crf_.to_state() for name, model in fitted.items()}


def test_models_to_mutate_have_what_a_kernel_could_trip_over() -> None:
    models = make_models()
    for name in ("separate", "large trees", "joint", "gradient", "bio", "order 0"):
        state = models[name]
        assert state["columns"]["numeric_names"], name
        assert len(state["forest"]["kind"]), name
    kinds = [set(models[name]["forest"]["kind"].tolist()) for name in ("separate", "joint")]
    assert kinds == [{0, 1, 2}, {0, 1, 2, 3}]
    sizes = np.diff(models["large trees"]["forest"]["tree_first"])
    assert sizes.max() > 2 * MAX_MASK_LEAVES
    assert sizes.min() > 1


@pytest.fixture(scope="module")
def saved() -> bytes:
    return storage.dump(BoostedCRF(**SMALL).fit(X, Y).crf_.to_state())


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("kind", lambda s: s.update(kind="memm")),
        ("order", lambda s: s["settings"].update(order=3)),
        ("settings.leaves", lambda s: s["settings"].update(leaves=2.5)),
        ("settings.extra", lambda s: s["settings"].update(extra=1)),
        ("labels", lambda s: s.update(labels=["A", "A", "B"])),
        ("labels", lambda s: s.update(labels=[])),
        ("masks.start", lambda s: s["masks"].update(start=np.ones(2, bool))),
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
    state = storage.parse(saved)
    change(state)
    (tmp_path / "model").write_bytes(storage.dump(state))
    with pytest.raises(ValueError, match=rf"^treecrf: .*'{re.escape(field)}'"):
        BoostedCRF.load(tmp_path / "model")


def put(array: np.ndarray[Any, Any], index: int, value: Any) -> None:
    array.flat[index] = value


# Where something can be changed: the table or list that holds it, and its key or index there.
Place = tuple[Any, Any]


def places(table: Any) -> Iterator[Place]:
    for key, value in table.items():
        yield table, key
        if isinstance(value, dict):
            yield from places(value)


def all_places(state: dict[str, Any], wanted: type) -> list[Place]:
    return [(table, key) for table, key in places(state) if isinstance(table[key], wanted)]


STRANGE_INTS = [-1, -2, 0, 1, 2, 3, 255, 256, 2**15, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
STRANGE_FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e6, -1e6, 1e30, 1.7e308, 0.5]
STRANGE_TEXTS = ["", "\0", "a" * 10_000, "é😀", "joint", "separate", "gradient", "size", "="]
STRANGE: list[Any] = [None, True, False, [], {}, [[]], *STRANGE_TEXTS]


def strange_number(rng: random.Random, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        value = rng.choice([*STRANGE_FLOATS, rng.uniform(-5, 5)])
        limit = float(np.finfo(dtype).max)
        return value if not math.isfinite(value) else max(-limit, min(limit, value))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    value = rng.choice([*STRANGE_INTS, rng.randrange(10), rng.randrange(1000)])
    return max(int(limits.min), min(int(limits.max), value))


def change_elements(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key] = table[key].copy()
    if not array.size:
        return f"{key} is empty"
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(array.size)
        if rng.random() < 0.3:  # an offset by one or two: the most plausible wrong index
            near = float(array.flat[at]) + rng.choice([-2, -1, 1, 2])
            with np.errstate(all="ignore"):
                array.flat[at] = np.array(near).astype(array.dtype)
        else:
            array.flat[at] = strange_number(rng, array.dtype)
    return f"elements of {key}"


def swap_elements(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key] = table[key].copy()
    if array.size > 1:
        i, j = rng.sample(range(array.size), 2)
        array.flat[i], array.flat[j] = array.flat[j], array.flat[i]
    return f"two elements of {key}"


def fill_array(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    table[key] = np.full_like(table[key], strange_number(rng, table[key].dtype))
    return f"{key} filled"


def change_type(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    dtype = rng.choice(["f4", "f8", "i4", "i8", "u1", "u2", "u4", "u8", "b1"])
    with np.errstate(all="ignore"):
        table[key] = table[key].astype(dtype)
    return f"{key} as {dtype}"


def change_shape(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, np.ndarray))
    array = table[key]
    how = rng.randrange(6)
    if how == 0:
        table[key] = array[: rng.randrange(len(array) + 1)]
    elif how == 1:
        table[key] = np.concatenate([array, array[: rng.randint(1, 3)]])
    elif how == 2:
        table[key] = array.T.copy()
    elif how == 3:
        table[key] = array.reshape(-1)
    elif how == 4:
        table[key] = array[None]
    else:
        table[key] = np.zeros([rng.randrange(4) for _ in range(rng.randrange(4))], array.dtype)
    return f"shape of {key}"


def drop_field(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(list(places(state)))
    del table[key]
    return f"no {key}"


def add_field(state: dict[str, Any], rng: random.Random) -> str:
    table, _ = rng.choice(list(places(state)))
    table["extra"] = rng.choice([1, np.zeros(3), *STRANGE])
    return "an extra field"


def swap_fields(state: dict[str, Any], rng: random.Random) -> str:
    kind = rng.choice([np.ndarray, np.ndarray, list, object])
    (one, a), (other, b) = rng.sample(all_places(state, kind), 2)
    if isinstance(one[a], dict) or isinstance(other[b], dict):
        return change_elements(state, rng)  # a table must not end up inside itself
    one[a], other[b] = other[b], one[a]
    return f"{a} and {b} swapped"


def replace_field(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(list(places(state)))
    table[key] = rng.choice([*STRANGE, *STRANGE_INTS, *STRANGE_FLOATS, np.zeros(2), 2**64 - 1])
    return f"{key} = {str(table[key])[:40]}"


def change_setting(state: dict[str, Any], rng: random.Random) -> str:
    table = rng.choice([state["settings"], state["settings"], state, state["columns"]])
    key = rng.choice([key for key, value in table.items() if isinstance(value, str | int | float)])
    choices = [*STRANGE_INTS] if isinstance(table[key], int) else [*STRANGE_FLOATS]
    table[key] = rng.choice([*choices, *choices, "joint", "gradient", "marginal", 4, 1.0])
    return f"{key} = {table[key]!r}"


def change_list(state: dict[str, Any], rng: random.Random) -> str:
    table, key = rng.choice(all_places(state, list))
    values = table[key] = list(table[key])
    how = rng.randrange(5)
    at = rng.randrange(len(values) + 1)
    if how == 0:
        values.insert(at, rng.choice(["new", "", *values]))
    elif how == 1:
        del values[at : at + rng.randint(1, 3)]
    elif how == 2:
        rng.shuffle(values)
    elif values and how == 3:
        values[at % len(values)] = rng.choice(STRANGE)
    else:
        values[at:at] = [f"new{i}" for i in range(rng.choice([1, 100, 5000]))]
    return f"list {key}"


def set_labels(state: dict[str, Any], n: int, order: int) -> str:
    """More labels in every field that depends on them, and another family and order."""
    n_old = len(state["labels"])
    state["labels"] = [*state["labels"], *(f"more{i}" for i in range(n - n_old))]
    state["masks"] = {"start": np.ones(n, bool), "trans": np.ones((n, n), bool)}
    state["masks"]["end"] = np.ones(n, bool)
    state["edges"] = np.zeros((n + 1, n), np.float32)
    for name in ("linear", "previous_linear"):
        table = state[name]
        table["where"] = table["where"] // n_old * n + table["where"] % n_old
        table["numeric"] = np.zeros((len(table["numeric"]), n), np.float32)
    state["settings"].update(family="joint", order=order)
    return f"{n} labels, order {order}"


def add_labels(state: dict[str, Any], rng: random.Random) -> str:
    return set_labels(state, len(state["labels"]) + rng.choice([1, 4]), rng.randrange(5))


def forbid(state: dict[str, Any], rng: random.Random) -> str:
    name = rng.choice(["start", "trans", "end"])
    state["masks"][name] = np.zeros_like(state["masks"][name])
    return f"nothing allowed by {name}"


EDITS: list[Callable[[dict[str, Any], random.Random], str]] = [
    *[change_elements] * 8,
    *[swap_elements] * 3,
    *[change_setting] * 3,
    *[change_list] * 2,
    fill_array,
    change_type,
    change_shape,
    drop_field,
    add_field,
    swap_fields,
    replace_field,
    add_labels,
    forbid,
]


def copied(state: Any) -> Any:
    """The same with tables and lists of its own, and shared arrays: no edit changes those."""
    if isinstance(state, dict):
        return {key: copied(value) for key, value in state.items()}
    return list(state) if isinstance(state, list) else state


def edit(state: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], str]:
    state = copied(state)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            done.append(rng.choice(EDITS)(state, rng))
        except (KeyError, TypeError, IndexError, ValueError, AttributeError):
            done.append("(not applicable after the edits before)")
    return state, ", ".join(done)


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
        if message := refusal(lambda: BoostedCRF.load(path)):
            self.outcomes["refused"] += 1
            assert not sealed or re.search(r"field '|fields: '|setting '", message), message
            return
        model = BoostedCRF.load(path)
        self.use(model)
        self.outcomes["loaded"] += 1
        if train:
            self.train(model)

    def use(self, model: BoostedCRF) -> None:
        few = [[], *X[:3], [{}], [{"word": "new", "size": -1e300}, {"size": math.nan}]]
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

    def train(self, model: BoostedCRF) -> None:
        """One more round; the result must be fit for use, and for saving and loading."""
        classes = model.classes_
        y = [[classes[ord(label) % len(classes)] for label in labels] for labels in Y[:10]]
        model.set_params(warm_start=True, rounds=model.rounds_ + 1)
        if refusal(lambda: model.fit(X[:10], y)) is None:
            model.save(self.folder / "trained")
            self.use(BoostedCRF.load(self.folder / "trained"))
            self.outcomes["trained"] += 1


def try_flips(trial: Trial, seed: int, count: int) -> None:
    """Bytes of the file changed, cut or added; the checksum is as it was."""
    rng = random.Random(seed)
    files = [storage.dump(state) for state in make_models().values()]
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
        trial(storage.dump(state), f"edit {i} of {name!r}: {description}", train=i % 20 < 2)


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
        trial(storage.dump(state), f"{name!r}: {description}")
        assert not trial.failures

    check()


def try_contexts(trial: Trial, seed: int, count: int) -> None:
    """Consistent models of more and more contexts, up to far more than memory."""
    models = make_models()
    for n, order in [(30, 1), (300, 1), (30, 3), (120, 3), (30, 4), (300, 4), (1000, 4)][:count]:
        state = copied(models["separate"])
        description = set_labels(state, n, order)
        trial(storage.dump(state), description)


MUTATIONS = {
    "contexts": try_contexts,
    "flips": try_flips,
    "edits": try_edits,
    "hypothesis": try_hypothesis,
}


@pytest.mark.parametrize(
    ("mutation", "count"), [("flips", 3000), ("edits", 2000), ("hypothesis", 1000), ("contexts", 7)]
)
def test_mutant_is_refused_or_works(mutation: str, count: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "tests.test_model_files", mutation, "0", str(count), str(log)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    last = log.read_text() if log.exists() else "nothing"
    assert run.returncode == 0, f"last mutant: {last}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"


def main(mutation: str, seed: str, count: str, log: str) -> None:
    faulthandler.enable()
    warnings.simplefilter("error", RuntimeWarning)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    trial = Trial(Path(log))
    MUTATIONS[mutation](trial, int(seed), int(count))
    print(dict(trial.outcomes))
    sys.exit(bool(trial.failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
