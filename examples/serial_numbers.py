"""Learn to split serial numbers such as "AB-1293-77x" into maker, number, check and suffix."""

from __future__ import annotations

import random

from spacy_treecrf import BoostedCRF


def serial_number(rng: random.Random) -> tuple[str, list[str]]:
    """A random serial number and the part each of its characters belongs to."""
    number = "".join(rng.choices("0123456789", k=rng.randint(3, 6)))
    parts = [("MAKER", "".join(rng.choices("ABCDEFGH", k=rng.randint(2, 3))))]
    parts += [("SEP", rng.choice(["-", "/", ""]))]
    parts += [("NUMBER", number)]
    # Check digits follow a separator, or the number directly if it begins with 9.
    parts += [("SEP", "-" if number[0] != "9" else ""), ("CHECK", f"{rng.randrange(100):02d}")]
    parts += [("SUFFIX", rng.choice(["", "x", "rev"]))]
    text = "".join(part for _, part in parts)
    return text, [label for label, part in parts for _ in part]


def features(text: str) -> list[dict[str, str | float]]:
    """The characters around each position, and how far it is from the end."""
    padded = "^^^" + text + "$$$"
    return [
        {f"char[{d}]": padded[i + 3 + d] for d in range(-3, 4)} | {"to end": len(text) - i}
        for i in range(len(text))
    ]


def main() -> None:
    rng = random.Random(0)
    train = [serial_number(rng) for _ in range(2000)]
    test = [serial_number(rng) for _ in range(500)]
    model = BoostedCRF(rounds=40, verbose=True)
    model.fit([features(text) for text, _ in train], [labels for _, labels in train])
    score = model.score([features(text) for text, _ in test], [labels for _, labels in test])
    print(f"\n{score:.2%} of the characters in 500 unseen serial numbers get the right part.\n")
    for text in ("AB-1293-77x", "CDE90412", "FG/4821-03rev"):
        (labels, probability), *_ = model.predict_nbest([features(text)], n=1)[0]
        parts: list[tuple[str, str]] = []
        for char, label in zip(text, labels, strict=True):
            if parts and parts[-1][1] == label:
                parts[-1] = (parts[-1][0] + char, label)
            else:
                parts.append((char, label))
        shown = "  ".join(f"{part} {label}" for part, label in parts)
        print(f"{text:<15} {shown}   (probability {probability:.3f})")


if __name__ == "__main__":
    main()
