"""Settings on the command line: some have an option of their own, `--set` reaches all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Annotated, Any, Optional, get_type_hints

import typer

from spacy_treecrf.engine.setting import Choice, Integer, SettingsBase

Command = Callable[..., None]

SET_HELP = "Any setting by its name; may be repeated. `spacy-treecrf settings` shows all of them."


def takes_settings(
    kind: type[SettingsBase], options: Sequence[str]
) -> Callable[[Command], Command]:
    """Let a command take settings; it gets those that the user gave as a dict `settings`.

    options: Names of settings with an option of their own, in the order of the help. The others
    are reached by `--set name=value`.
    """

    def decorate(command: Command) -> Command:
        types = get_type_hints(kind)
        taken = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None,  # so that the command knows what was given
                annotation=Annotated[Optional[types[name]], typer.Option(help=_help(kind, name))],  # noqa: UP045
            )
            for name in options
        ]
        assignments = Parameter(
            "assignments",
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                list[str] | None, typer.Option("--set", metavar="name=value", help=SET_HELP)
            ],
        )

        @functools.wraps(command)
        def wrapped(assignments: Sequence[str] | None = None, **values: Any) -> None:
            given = {name: values.pop(name, None) for name in options}
            settings = {name: value for name, value in given.items() if value is not None}
            for name, value in assigned(kind, assignments or ()).items():
                if name in settings:
                    raise _twice(name)
                settings[name] = value
            command(**values, settings=settings)

        own = signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for parameter in own.parameters.values():
            here = [*taken, assignments] if parameter.name == "settings" else [parameter]
            parameters += (each.replace(kind=Parameter.KEYWORD_ONLY) for each in here)
        wrapped.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
        return wrapped

    return decorate


def assigned(kind: type[SettingsBase], assignments: Iterable[str]) -> dict[str, Any]:
    """The settings that texts such as "leaves=16" give, each of its type and within its range."""
    settings: dict[str, Any] = {}
    known = kind.names()
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ValueError(f"treecrf: --set has {assignment!r}; use name=value, as in leaves=16")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"do you mean {close[0]!r}? " if close else ""
            raise ValueError(
                f"treecrf: --set has {assignment!r}, and there is no setting {name!r}; {hint}"
                "`spacy-treecrf settings` shows all"
            )
        if name in settings:
            raise _twice(name)
        settings[name] = kind.parsed(name, text)
    return settings


def _twice(name: str) -> ValueError:
    return ValueError(f"treecrf: setting {name!r} is given twice; give it once")


def _help(kind: type[SettingsBase], name: str) -> str:
    """The help of a setting, its choices, and its default."""
    setting, default = kind.settings()[name], kind.defaults()[name]
    choices = ", ".join(setting.choices) + "; " if isinstance(setting, Choice) else ""
    words = setting.words if isinstance(setting, Integer) else ()
    meaning = next((word.means for word in words if word.value == default), str(default))
    return f"{setting.help}  [{choices}default: {meaning}]"
