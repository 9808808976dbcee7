"""What is attacked: ours as an estimator and as a pipe, python-crfsuite, and spaCy's own NER."""

from __future__ import annotations

import random
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAMES = ["Ann", "Bob", "Carla"]
CITIES = ["Paris", "Rome"]
PLAIN = ["saw", "left", "the", "old", "house", "in", "."]
RARE = [f"word{i}" for i in range(2000)]
Labels = list[list[str]]


def sentences(n: int, seed: int = 0) -> tuple[list[list[str]], Labels]:
    """Words, and the label of each: U-PERSON, U-CITY or O."""
    rng = random.Random(seed)
    words = []
    for _ in range(n):
        sentence = rng.choices(NAMES + CITIES + PLAIN, k=8) + rng.choices(RARE, k=6)
        rng.shuffle(sentence)
        words.append(sentence)
    return words, [[_label(word) for word in sentence] for sentence in words]


def _label(word: str) -> str:
    return "U-PERSON" if word in NAMES else "U-CITY" if word in CITIES else "O"


def feature_dicts(words: Sequence[Sequence[str]]) -> list[list[dict[str, str]]]:
    return [
        [
            {
                "word": word,
                "suffix": word[-2:],
                "before": sentence[t - 1] if t else "",
                "after": sentence[t + 1] if t + 1 < len(sentence) else "",
            }
            for t, word in enumerate(sentence)
        ]
        for sentence in words
    ]


class Side(ABC):
    """One of those under attack. A model is whatever its methods make of one."""

    small: int  # rounds, iterations or epochs of a training that takes a moment
    large: int  # of one that takes some seconds

    def __init__(self, n_sentences: int = 300) -> None:
        self.words, self.labels = sentences(n_sentences)
        self.unseen = sentences(40, seed=1)[0]

    @abstractmethod
    def training(self, size: int, threads: int = 1) -> Callable[[], Any]:
        """The training alone, with everything prepared; it returns a model."""

    def train(self, size: int, threads: int = 1) -> Any:
        return self.training(size, threads)()

    @abstractmethod
    def save(self, model: Any, path: Path) -> None: ...

    @abstractmethod
    def load(self, path: Path) -> Any: ...

    @abstractmethod
    def predict(self, model: Any) -> Labels:
        """Labels of sentences that training has not seen."""

    def files(self, path: Path) -> list[Path]:
        """The files that hold the model."""
        return [path]


class DictSide(Side):
    """A side that takes any feature dicts."""

    @abstractmethod
    def train_wide(self, n_flags: int, n_rows: int) -> None:
        """Train on rows of which one has very many features."""


def wide_rows(n_flags: int, n_rows: int) -> tuple[list[list[dict[str, Any]]], Labels]:
    X: list[list[dict[str, Any]]] = [[{"w": "ab"[i % 2]}] for i in range(n_rows)]
    X[3] = [{f"f{i}": True for i in range(n_flags)}]
    return X, [["AB"[i % 2]] for i in range(n_rows)]


class Estimator(DictSide):
    """Our `BoostedCRF` on feature dicts."""

    small, large = 4, 10**6

    def training(self, size: int, threads: int = 1) -> Callable[[], Any]:
        from spacy_treecrf import BoostedCRF

        crf = BoostedCRF(rounds=size, threads=threads, min_count=1)
        X = feature_dicts(self.words)
        return lambda: crf.fit(X, self.labels)

    def save(self, model: Any, path: Path) -> None:
        model.save(path)

    def load(self, path: Path) -> Any:
        from spacy_treecrf import BoostedCRF

        return BoostedCRF.load(path)

    def predict(self, model: Any) -> Labels:
        found: Labels = model.predict(feature_dicts(self.unseen))
        return found

    def train_wide(self, n_flags: int, n_rows: int) -> None:
        from spacy_treecrf import BoostedCRF

        BoostedCRF(rounds=2, threads=1, min_count=1).fit(*wide_rows(n_flags, n_rows))


class Pipeline(Side):
    """A spaCy pipeline of one pipe for entities."""

    pipe: str
    batch_size: int  # of an update

    @abstractmethod
    def new(self, threads: int) -> Any:
        """An untrained pipeline."""

    def training(self, size: int, threads: int = 1) -> Callable[[], Any]:
        from spacy.training import Example
        from spacy.util import fix_random_seed, minibatch

        fix_random_seed(0)
        nlp = self.new(threads)
        examples = [
            Example.from_dict(nlp.make_doc(" ".join(words)), {"entities": labels})
            for words, labels in zip(self.words, self.labels, strict=True)
        ]
        optimizer = nlp.initialize(lambda: examples)

        def update() -> Any:
            for _ in range(size):
                for batch in minibatch(examples, self.batch_size):
                    nlp.update(batch, sgd=optimizer)
            return nlp

        return update

    def save(self, model: Any, path: Path) -> None:
        model.to_disk(path)

    def load(self, path: Path) -> Any:
        import spacy

        return spacy.load(path)

    def predict(self, model: Any) -> Labels:
        docs = model.pipe(" ".join(words) for words in self.unseen)
        return [[token.ent_type_ for token in doc] for doc in docs]

    def files(self, path: Path) -> list[Path]:
        return sorted(file for file in (path / self.pipe).rglob("*") if not file.is_dir())


class TreeCRFPipe(Pipeline):
    pipe, batch_size, small, large = "treecrf", 10**6, 4, 10**6  # an update is a round

    def new(self, threads: int) -> Any:
        import spacy

        nlp = spacy.blank("xx")
        model = {"@architectures": "spacy_treecrf.BoostedCRF.v1", "threads": threads}
        nlp.add_pipe("treecrf", config={"task": "ents", "model": model})
        return nlp


class SpacyNER(Pipeline):
    """The network of `spacy init config --pipeline ner`, with a width of 32."""

    pipe, batch_size, small, large = "ner", 20, 3, 10**6

    def new(self, threads: int) -> Any:
        import spacy

        nlp = spacy.blank("xx")
        network = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None}
        network |= {"width": 32, "depth": 2, "embed_size": 500, "window_size": 1}
        network |= {"maxout_pieces": 3, "subword_features": True}
        model = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner"}
        model |= {"extra_state_tokens": False, "hidden_width": 32, "maxout_pieces": 2}
        model |= {"use_upper": True, "tok2vec": network}
        nlp.add_pipe("ner", config={"model": model})
        return nlp


class CRFsuite(DictSide):
    """python-crfsuite. Only its training writes a model, so saving one is training it again."""

    small, large = 4, 400

    def __init__(self, n_sentences: int = 300) -> None:
        super().__init__(n_sentences)
        self.folder = tempfile.TemporaryDirectory()

    def trainer(self, X: Any, y: Labels, iterations: int) -> Any:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        for items, labels in zip(X, y, strict=True):
            trainer.append(pycrfsuite.ItemSequence(items), labels)
        # no early end: an interrupt has to end it
        trainer.set_params({"max_iterations": iterations, "epsilon": 0.0, "delta": 0.0})
        return trainer

    def training(self, size: int, threads: int = 1) -> Callable[[], Any]:
        trainer = self.trainer(feature_dicts(self.words), self.labels, size)
        path = Path(self.folder.name) / "model"

        def train() -> Any:
            trainer.train(str(path))
            return trainer, self.load(path)[1]

        return train

    def save(self, model: Any, path: Path) -> None:
        model[0].train(str(path))

    def load(self, path: Path) -> Any:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(str(path))
        return None, tagger

    def predict(self, model: Any) -> Labels:
        return [list(model[1].tag(items)) for items in feature_dicts(self.unseen)]

    def train_wide(self, n_flags: int, n_rows: int) -> None:
        self.trainer(*wide_rows(n_flags, n_rows), 2).train(f"{self.folder.name}/wide")


SIDES: dict[str, type[Side]] = {
    "BoostedCRF": Estimator,
    "treecrf pipe": TreeCRFPipe,
    "python-crfsuite": CRFsuite,
    "spaCy ner": SpacyNER,
}
