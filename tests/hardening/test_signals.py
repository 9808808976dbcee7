"""Signals at random moments: an interrupt is an exception, or an end by that signal; never a crash.

A crash is a process that ends by a signal which nobody sent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.storage import container
from tests.hardening.children import Child
from tests.pipeline.test_commands import CONFIGS, options, word_docs
from tests.tiny import tiny_data

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")

MOMENTS = 20
HANDLERS = """
import signal

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

def handle_signals():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR1, stop)
"""
TRAINING = (
    HANDLERS
    + """
import json
import sys
import spacy_treecrf
from tests.tiny import tiny_data

kind, parameters, moments = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
X, y = tiny_data(400)
for sequence in X[:50]:
    sequence[0]["word"] = None  # a missing value

def new(**changes):
    return getattr(spacy_treecrf, kind)(**{**parameters, **changes})

many = {name: 10**6 for name in ("rounds",) if name in new().get_params()}
few = {name: 3 for name in many}
new(**few).fit(X[:20], y[:20])  # compiles
handle_signals()
for _ in range(moments):
    estimator = new(**many)
    try:
        print("ready", flush=True)
        while True:
            estimator.fit(X, y)
    except (KeyboardInterrupt, Stop) as interrupt:
        model = getattr(interrupt, "model", None)
        print(type(interrupt).__name__, flush=True)
    if model is not None and model.rounds:
        assert estimator.model_.rounds == model.rounds
        assert len(estimator.predict_single(X[0])) == len(X[0])
print("done", flush=True)
"""
)
# What grows trees or learns weights in each way there is.
ESTIMATORS = {
    "BoostedCRF": ("BoostedCRF", {"linear_rounds": 2}),
    "joint": ("BoostedCRF", {"linear_rounds": 0, "family": "joint"}),
    "conjugate": ("BoostedCRF", {"linear_rounds": 0, "step": "conjugate"}),
    "instance_weighting": ("BoostedCRF", {"missing": "instance_weighting"}),
    "surrogate": ("BoostedCRF", {"missing": "surrogate"}),
    "BoostedMEMM": ("BoostedMEMM", {}),
    "FutureFeatureMEMM": ("FutureFeatureMEMM", {}),
    "SECOCCRF": ("SECOCCRF", {}),
    "columns": ("SECOCCRF", {"training": "columns"}),
    "PerceptronTagger": ("PerceptronTagger", {}),
}


def interrupt_training(name: str, threads: int, sent: signal.Signals, raised: set[str]) -> None:
    kind, parameters = ESTIMATORS[name]
    settings = json.dumps({**parameters, "threads": threads})
    draw = random.Random(threads)
    with Child.script(TRAINING, kind, settings, str(MOMENTS)) as child:
        for _ in range(MOMENTS):
            child.wait_until_ready()
            child.send(sent, after=draw.uniform(0, 0.3))
            assert child.line() in raised
        out, err = child.end()
        assert child.code == 0, err
        assert out == "done\n"


@pytest.mark.parametrize("name", ["BoostedCRF", "instance_weighting"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGUSR1])
def test_interrupts_of_training_in_one_thread(name, sent):
    raised = {"Stop"} if sent == signal.SIGUSR1 else {"KeyboardInterrupt", "TrainingInterrupted"}
    interrupt_training(name, 1, sent, raised)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_interrupts_of_training(name, threads):
    interrupt_training(name, threads, signal.SIGINT, {"KeyboardInterrupt", "TrainingInterrupted"})


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_exceptions_of_a_handler_in_training(name, threads):
    interrupt_training(name, threads, signal.SIGUSR1, {"Stop"})


@pytest.mark.parametrize(
    "moments", [2, pytest.param(MOMENTS, marks=pytest.mark.slow)], ids=lambda n: f"{n} times"
)
def test_sigterm_ends_training_as_python_ends_by_it(moments):
    draw = random.Random(1)
    for _ in range(moments):
        with Child.script(TRAINING, "BoostedCRF", '{"threads": 1}', "1") as child:
            child.wait_until_ready()
            child.send(signal.SIGTERM, after=draw.uniform(0, 0.3))
            child.end()
            assert child.code == -signal.SIGTERM


ROUNDS_KEPT = """
import signal
import sys
from spacy_treecrf import BoostedCRF
from tests.tiny import tiny_data

X, y = tiny_data(400)
parameters = {"linear_rounds": 1, "min_count": 1, "threads": int(sys.argv[1])}
BoostedCRF(rounds=3, **parameters).fit(X[:20], y[:20])  # compiles

signal.signal(signal.SIGINT, signal.default_int_handler)

def tell(info):
    if info.round == 2:
        print("ready", flush=True)

for _ in range(int(sys.argv[2])):
    estimator = BoostedCRF(rounds=10**6, callback=tell, **parameters)
    try:
        estimator.fit(X, y)
    except KeyboardInterrupt as interrupt:
        rounds = interrupt.model.rounds
        print("interrupted", flush=True)
    assert rounds >= 2
    whole = BoostedCRF(rounds=rounds, **parameters).fit(X, y)
    assert whole.model_.rounds == rounds
    assert whole.predict_marginals(X) == estimator.predict_marginals(X)
print("done", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_model_is_the_model_of_its_rounds(threads):
    draw = random.Random(2)
    with Child.script(ROUNDS_KEPT, str(threads), "5") as child:
        for _ in range(5):
            child.wait_until_ready()
            child.send(signal.SIGINT, after=draw.uniform(0, 0.5))
            assert child.line() == "interrupted"
        out, err = child.end()
        assert child.code == 0, err
        assert out == "done\n"


PREDICTING = """
import signal
import sys
from tests.tiny import new, tiny_data
from tests.pipeline.tiny_pipes import CORPUS, trained_nlp, words_of

X, y = tiny_data(60)
estimator = new(threads=int(sys.argv[1])).fit(X, y)
nlp = trained_nlp(model={"threads": int(sys.argv[1])})
texts = [" ".join(words_of(sentence)) for sentence in CORPUS]

def predict_all():
    return (
        estimator.predict(X),
        estimator.predict_marginals(X),
        estimator.predict_nbest(X, 3),
        [[ent.text for ent in doc.ents] for doc in nlp.pipe(texts)],
        [nlp.get_pipe("treecrf").nbest(nlp(text), 3) for text in texts],
    )

expected = predict_all()
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ in range(int(sys.argv[2])):
    try:
        print("ready", flush=True)
        while True:
            predict_all()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    assert predict_all() == expected
print("done", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupts_of_predictions(threads):
    draw = random.Random(3)
    with Child.script(PREDICTING, str(threads), str(MOMENTS)) as child:
        for _ in range(MOMENTS):
            child.wait_until_ready()
            child.send(signal.SIGINT, after=draw.uniform(0, 0.2))
            assert child.line() == "interrupted"
        out, err = child.end()
        assert child.code == 0, err
        assert out == "done\n"


def column_file(folder: Path) -> Path:
    X, y = tiny_data(300)
    sequences = [
        "".join(f"{item['word']} {label}\n" for item, label in zip(items, labels, strict=True))
        for items, labels in zip(X, y, strict=True)
    ]
    path = folder / "train.conll"
    path.write_text("\n".join(sequences), encoding="utf8")
    return path


@pytest.mark.parametrize(
    ("threads", "moments"),
    [(1, 3), *(pytest.param(n, MOMENTS, marks=pytest.mark.slow) for n in (1, 2, 0))],
)
def test_ctrl_c_on_the_command_line_saves_the_rounds(tmp_path, threads, moments):
    """In the first second after the second round."""
    data, draw = column_file(tmp_path), random.Random(4)
    for moment in range(moments):
        model = tmp_path / f"{moment}.treecrf"
        command = [sys.executable, "-c", COMMAND_LINE, "train", data, "-o", model]
        options = ["--rounds", "1000000", "--threads", str(threads)]
        with Child([*command, *options]) as child:
            child.wait_until_ready()
            child.send(signal.SIGINT, after=draw.uniform(0, 1.0))
            _, err = child.end()
            assert child.code == 130, err
            assert "--resume goes on" in err
        assert ColumnModel.from_state(container.read(model)).crf.rounds >= 2


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_raising_handler_ends_the_command_line(tmp_path, threads):
    """The exception is the user's own, and so is its traceback; it is no crash."""
    data, draw = column_file(tmp_path), random.Random(6)
    for _ in range(MOMENTS):
        command = [sys.executable, "-c", COMMAND_LINE, "train", data, "-o", tmp_path / "model"]
        options = ["--rounds", "1000000", "--threads", str(threads), "--force"]
        with Child([*command, *options]) as child:
            child.wait_until_ready()
            child.send(signal.SIGUSR1, after=draw.uniform(0, 1.0))
            _, err = child.end()
            assert child.code == 1
            assert err.rstrip().endswith("Stop")


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGUSR1])
def test_interrupts_of_spacy_train(tmp_path, sent):
    for part, size, seed in [("train", 60, 0), ("dev", 10, 1)]:
        DocBin(docs=word_docs(size, seed)).to_disk(tmp_path / f"words.{part}.spacy")
    endless = {"training.max_steps": "100000", "training.patience": "0"}
    draw = random.Random(5)
    for _ in range(MOMENTS):
        command = [sys.executable, "-c", SPACY, "train", CONFIGS / "ner.cfg", "--output", "model"]
        with Child([*command, *options("ner", **endless)], folder=tmp_path) as child:
            child.wait_until_ready()
            child.send(sent, after=draw.uniform(0, 1.0))
            out, err = child.end()
            assert child.code in (1, 130, -signal.SIGINT), out + err
        assert (tmp_path / "model" / "model-last" / "treecrf" / "model").exists()


# The command line, which says when its second round is done.
COMMAND_LINE = (
    HANDLERS
    + """
import sys
from spacy_treecrf.cli.app import main
from spacy_treecrf.columnar.model import TrainingCurve

def add(curve, *args, add=TrainingCurve.add):
    add(curve, *args)
    if len(curve.seconds) == 2:
        print("ready", flush=True)

handle_signals()
TrainingCurve.add = add
main()
"""
)
# The command line of spaCy, which says when its second step is done.
SPACY = (
    HANDLERS
    + """
from spacy.cli import setup_cli
from spacy_treecrf.pipeline.learning import Learner

steps = []

def step(learner, rounds, step=Learner.step):
    step(learner, rounds)
    steps.append(rounds)
    if len(steps) == 2:
        print("\\nready", flush=True)

handle_signals()
Learner.step = step
setup_cli()
"""
)
