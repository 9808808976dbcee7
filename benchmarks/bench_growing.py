"""What does a model learn of new text, and what does it forget, when it goes on with it?

A model of news (CoNLL-2003) goes on with messages (WNUT-17, its types mapped to those of the news):
with and without new words, alone and with a part of the old text. F1 of spans on held-out parts of
both. CPU seconds are those of all threads.
"""

from __future__ import annotations

import argparse
import re
from copy import copy

from spacy_treecrf import BoostedCRF

from corpora import Labelled, chunking_items, corpus, read_conll2003, span_f1
from timing import cpu_timed, report

ROUNDS = 40
FURTHER = 30  # rounds, of which the first ones are linear: they weigh all new words at once
FURTHER_LINEAR = 10
OLD_DOCS = 250
TYPES = {
    "person": "PER",
    "location": "LOC",
    "corporation": "ORG",
    "group": "ORG",
    "product": "MISC",
    "creative-work": "MISC",
}


def news(part: str, limit: int) -> Labelled:
    """Sentences of the first documents."""
    X, y = [], []
    for document in read_conll2003(part, limit):
        starts = [i for i, begins in enumerate(document.starts) if begins]
        for first, last in zip(starts, [*starts[1:], len(document.words)], strict=True):
            X.append(items(document.words[first:last]))
            y.append(document.entities[first:last])
    return X, y


def messages(quick: bool) -> tuple[Labelled, Labelled]:
    """Training and test messages: every fifth is held out."""
    text = corpus("wnut17", "wnut17train.conll").read_text(encoding="utf-8")
    blocks = re.split(r"\n\s*\n", text.strip())[: 600 if quick else None]
    rows = [[line.split("\t") for line in block.splitlines()] for block in blocks]
    X = [items([row[0] for row in block]) for block in rows]
    y = [[mapped(row[1].strip()) for row in block] for block in rows]
    parts = [[i for i in range(len(X)) if (i % 5 == 0) == held_out] for held_out in (False, True)]
    train, test = (([X[i] for i in part], [y[i] for i in part]) for part in parts)
    return train, test


def items(words: list[str]) -> list[dict[str, str]]:
    made = chunking_items(words, ["-"] * len(words))
    return [{key: v for key, v in item.items() if not key.startswith("tag")} for item in made]


def mapped(label: str) -> str:
    letter, _, name = label.partition("-")
    return f"{letter}-{TYPES[name]}" if name else label


def going_on(model: BoostedCRF, data: Labelled, grow: bool) -> BoostedCRF:
    model = copy(model)
    if grow:
        model.add_features(data[0])
    done = model.rounds_
    model.set_params(warm_start=True, rounds=done + FURTHER, linear_rounds=done + FURTHER_LINEAR)
    return model.fit(*data)


def joined(one: Labelled, other: Labelled) -> Labelled:
    return one[0] + other[0], one[1] + other[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    quick = parser.parse_args().quick
    old = news("eng.train", 40 if quick else OLD_DOCS)
    old_test = news("eng.testa", 20 if quick else 100)
    new, new_test = messages(quick)
    some_old = old[0][::4], old[1][::4]
    model = BoostedCRF(rounds=ROUNDS).fit(*old)
    ways = {
        "the model of the news": lambda: model,
        "on with messages, new words unknown": lambda: going_on(model, new, grow=False),
        "on with messages, new words learned": lambda: going_on(model, new, grow=True),
        "on with messages and a quarter of the news": lambda: going_on(
            model, joined(new, some_old), grow=True
        ),
        "trained anew on both": lambda: BoostedCRF(rounds=ROUNDS + FURTHER).fit(*joined(old, new)),
    }
    for name, train in ways.items():
        trained, times = cpu_timed(train)
        report(
            "growing",
            model=name,
            **times,
            features=len(trained.model_.columns.feature_names),
            f1_news=span_f1(old_test[1], trained.predict(old_test[0])),
            f1_messages=span_f1(new_test[1], trained.predict(new_test[0])),
        )


if __name__ == "__main__":
    main()
