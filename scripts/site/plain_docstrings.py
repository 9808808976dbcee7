"""Docstrings that say `name: what it is` in a line for each parameter, as lists for the site."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXTENSION = re.compile(r"(?<![`\w.])(\w+\._\.\w+)")  # token._.name: Markdown would see emphasis
LINE = re.compile(r"^(\w+(?:, \w+)*): (?=\S)")


class PlainDocstrings(griffe.Extension):
    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        _rewrite(func, {parameter.name for parameter in func.parameters})

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        names = {name for name, member in cls.members.items() if member.is_attribute}
        names |= {parameter.name for parameter in cls.parameters}
        _rewrite(cls, names)


def _rewrite(thing: griffe.Object, names: set[str]) -> None:
    if thing.docstring is None:
        return
    lines: list[str] = []
    for line in EXTENSION.sub(r"`\1`", thing.docstring.value).splitlines():
        found = LINE.match(line)
        if found and names.issuperset(found[1].split(", ")):
            listed = ", ".join(f"`{name}`" for name in found[1].split(", "))
            starts = not lines or not lines[-1].strip() or not lines[-1].startswith(("- ", " "))
            lines += [""] * starts + [f"- {listed}: {line[found.end() :]}"]
        else:
            lines.append(line)
    thing.docstring.value = "\n".join(lines)
