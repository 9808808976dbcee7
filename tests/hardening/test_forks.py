"""Forks while other threads predict: no child waits for a lock that died with its thread."""

from __future__ import annotations

import json
import os

import pytest

from tests.hardening.children import Child
from tests.pipeline.tiny_pipes import TINY_MODEL

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")

SAVING = """
import json
import sys
import spacy
from tests.pipeline.tiny_pipes import CORPUS, TINY_FEATURES, corpus, train, words_of

nlp = spacy.blank("xx")
model = json.loads(sys.argv[1])
nlp.add_pipe("treecrf", config={"task": "ents", "model": model, "features": TINY_FEATURES})
examples = corpus(nlp)
nlp.initialize(lambda: examples)
train(nlp, examples, 2)
nlp.to_disk(sys.argv[2])
texts = [" ".join(words_of(sentence)) for sentence in CORPUS] * 4
print(json.dumps([[text, [ent.text for ent in nlp(text).ents]] for text in texts]))
"""
PREDICTING = """
import json
import multiprocessing
import sys
import threading
import spacy

multiprocessing.set_start_method("fork")
nlp = spacy.load(sys.argv[1])
texts, expected = zip(*json.loads(sys.argv[2]))
done = threading.Event()

def predict():
    while not done.is_set():
        for text in texts:
            nlp(text)

threads = [threading.Thread(target=predict) for _ in range(4)]
for thread in threads:
    thread.start()
try:
    for _ in range(int(sys.argv[3])):
        docs = nlp.pipe(texts, n_process=2, batch_size=3)
        assert [[ent.text for ent in doc.ents] for doc in docs] == list(expected)
finally:
    done.set()
    for thread in threads:
        thread.join()
print("done")
"""
MODELS = {
    "BoostedCRF": TINY_MODEL,
    "MEMM": {**TINY_MODEL, "@architectures": "spacy_treecrf.MEMM.v1"},
    "SECOC": {"@architectures": "spacy_treecrf.SECOC.v1", "base": TINY_MODEL},
    "Perceptron": {"@architectures": "spacy_treecrf.Perceptron.v1", "threads": 1},
}


def fork_under_load(model, folder, times, runs):
    with Child.script(SAVING, json.dumps(model), folder) as child:
        expected, err = child.end()
        assert child.code == 0, err
    for _ in range(runs):
        with Child.script(PREDICTING, folder, expected, str(times)) as child:
            out, err = child.end()
            assert child.code == 0, err
            assert out == "done\n"


IMPORTING = """
import json
import sys
import spacy

nlp = spacy.load(sys.argv[1])
before = set(sys.modules)
for text, _ in json.loads(sys.argv[2]):
    nlp(text)
print(*sorted(name for name in set(sys.modules) - before if name.startswith("spacy")))
"""


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_pipeline_has_imported_what_predicts(tmp_path, name):
    """A child that is forked in the midst of an import never gets the module."""
    with Child.script(SAVING, json.dumps(MODELS[name]), tmp_path) as child:
        expected, err = child.end()
        assert child.code == 0, err
    with Child.script(IMPORTING, tmp_path, expected) as child:
        out, err = child.end()
        assert child.code == 0, err
        assert out == "\n"


def test_processes_forked_while_threads_predict(tmp_path):
    fork_under_load(MODELS["BoostedCRF"], tmp_path, times=12, runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_processes_forked_while_threads_predict_for_the_first_time(tmp_path, name):
    fork_under_load(MODELS[name], tmp_path, times=2, runs=10)


HALF_FILLED = """
import os
import threading
import numpy as np
from spacy.tokens import Doc
from spacy.vocab import Vocab
from spacy_treecrf.features.token_features import create_token_features

vocab = Vocab()
doc = Doc(vocab, words=["one", "two", "three"])
other = Doc(vocab, words=["three", "two", "one"])
offsets = np.array([0, 3])
features = create_token_features(attrs={"LOWER": [0]}, prefixes=[], suffixes=[1])
columns = features.fit([doc], offsets, min_count=1, max_bins=255)
expected = create_token_features(attrs={"LOWER": [0]}, prefixes=[], suffixes=[1])
expected = expected.encode([other], offsets, columns)[0]

reading, forked = threading.Event(), threading.Event()
for source in features.sources:
    def numbered(batch, positions, known, numbered=source.numbered):
        if threading.current_thread() is not threading.main_thread():
            reading.set()
            assert forked.wait(60)
        return numbered(batch, positions, known)
    source.numbered = numbered
thread = threading.Thread(target=features.encode, args=([doc], offsets, columns))
thread.start()
assert reading.wait(60)  # its words have rows that are not filled yet
child = os.fork()
if not child:
    found = features.encode([other], offsets, columns)[0]
    os._exit(0 if np.array_equal(found, expected) else 1)
assert os.waitpid(child, 0)[1] == 0
forked.set()
thread.join()
assert np.array_equal(features.encode([other], offsets, columns)[0], expected)
print("done")
"""


def test_a_child_does_not_use_rows_that_were_being_filled_at_the_fork():
    with Child.script(HALF_FILLED) as child:
        out, err = child.end()
        assert child.code == 0, err
        assert out == "done\n"


FORKING = """
import os
import threading
import time
import spacy_treecrf.engine.kernel

end = time.monotonic() + 3.0

def fork():
    while time.monotonic() < end:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)

threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
"""


def test_several_threads_may_fork_at_once():
    with Child.script(FORKING) as child:
        assert child.line() == "done"
