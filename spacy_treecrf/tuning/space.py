"""The space of settings to try: lists of values, and ranges to draw from."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

Settings = dict[str, Any]  # by dotted name


@dataclass(frozen=True)
class Choice:
    values: list[Any]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(self.values)


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included.

    log: Whether equal factors are equally probable, instead of equal differences.
    """

    low: float
    high: float
    log: bool
    integer: bool

    def draw(self, rng: random.Random) -> float | int:
        if self.integer and not self.log:
            return rng.randint(int(self.low), int(self.high))
        if self.log:
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = rng.uniform(self.low, self.high)
        if self.integer:
            return round(value)
        # Four digits say all that a search can find out, and read well in a config.
        return float(f"{value:.4g}")


Space = Mapping[str, Choice | Range]


def parse_space(texts: list[str]) -> dict[str, Choice | Range]:
    """The space written as texts: name=a,b,c or name=low..high or name=low..high:log."""
    space: dict[str, Choice | Range] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not name or not values.strip():
            raise ValueError(
                f"treecrf: --set {text!r}: expected name=values, e.g. "
                "components.treecrf.model.leaves=16,64 or "
                "components.treecrf.model.shrinkage=0.1..1.0:log"
            )
        if name in space:
            raise ValueError(f"treecrf: --set names {name!r} twice; put all values into one")
        space[name] = _parse_values(text, values.strip())
    if not space:
        raise ValueError("treecrf: no setting to tune; name at least one by --set name=values")
    return space


def grid(space: Space) -> list[Settings]:
    """All combinations of settings."""
    for name, own in space.items():
        if isinstance(own, Range):
            raise ValueError(
                f"treecrf: --set {name} is a range, which a grid cannot list; give its values "
                "(name=a,b,c), or search at random by --random N"
            )
    values = [own.values for own in space.values() if isinstance(own, Choice)]
    return [dict(zip(space, row, strict=True)) for row in itertools.product(*values)]


def draws(space: Space, n: int, seed: int) -> list[Settings]:
    """n different combinations drawn at random; fewer if there are no more.

    The first draws are the same for any n, so that a search can be extended.
    """
    rng = random.Random(seed)
    found: dict[str, Settings] = {}
    for _ in range(100 * n):
        settings = {name: own.draw(rng) for name, own in space.items()}
        found.setdefault(key_of(settings), settings)
        if len(found) == n:
            break
    return list(found.values())


def unknown_setting(name: str, owner: str, known: Collection[str]) -> ValueError:
    """The error about a setting that its owner, e.g. the config, does not have."""
    near = get_close_matches(name, known, 3, 0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; check {owner}"
    return ValueError(f"treecrf: {owner} has no setting {name!r}{hint}")


def key_of(settings: Settings) -> str:
    """A text that is the same for the same settings, in whatever order they are."""
    return json.dumps(settings, sort_keys=True, ensure_ascii=False)


def _parse_values(text: str, values: str) -> Choice | Range:
    low, dots, rest = values.partition("..")
    if dots and _number(low) is not None:
        high, _, scale = rest.partition(":")
        numbers = _number(low), _number(high)
        if numbers[0] is None or numbers[1] is None or scale not in ("", "log"):
            raise ValueError(
                f"treecrf: --set {text!r}: expected a range low..high or low..high:log"
            )
        first, last = numbers[0], numbers[1]
        if first > last or (scale and first <= 0):
            raise ValueError(
                f"treecrf: --set {text!r}: expected low <= high"
                + (", both above 0 on a log scale" if scale else "")
            )
        integer = isinstance(first, int) and isinstance(last, int)
        return Range(float(first), float(last), bool(scale), integer)
    try:
        parsed = json.loads(f"[{values}]")
    except ValueError:  # texts need no quotes
        parsed = [_value(part.strip()) for part in values.split(",") if part.strip()]
    return Choice(parsed)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(text: str) -> int | float | None:
    value = _value(text.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) else None
